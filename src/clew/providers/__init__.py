"""Providers: one adapter for each kind of agent, found by entry point and never importing one another."""
