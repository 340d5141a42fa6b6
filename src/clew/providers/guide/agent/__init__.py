"""The guide itself, a program that speaks the Agent Client Protocol: `python -m clew.providers.guide.agent`."""
