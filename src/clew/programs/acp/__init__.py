"""Agents that speak the Agent Client Protocol: one client for all of them, over newline-delimited JSON-RPC 2.0."""
