"""Ports: what the parts of Clew know of one another."""
