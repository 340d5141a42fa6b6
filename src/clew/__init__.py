"""Clew: a control plane for coding agents that keeps every wake in its right conversation."""

__version__ = "0.1.0"
