"""Ports: the interfaces between the parts of Clew."""
