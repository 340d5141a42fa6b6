"""Any agent that speaks the Agent Client Protocol: a preset, or a command line."""

from clew.ports.provider import Provider, Settings
from clew.providers.acp.logins import NamedAcpProvider
from clew.providers.acp.options import agent_of, home_of

__all__ = ["make"]


def make(settings: Settings) -> Provider:
    return NamedAcpProvider(agent_of(settings), settings, home_of(settings))
