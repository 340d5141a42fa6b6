"""Deliveries: the ways by which a reply reaches its route, found by entry point."""
