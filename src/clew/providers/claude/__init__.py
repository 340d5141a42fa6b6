"""Claude Code: the program `claude`, spoken to over its lines, with its sessions in its own home."""

from clew.ports.provider import Provider, Settings
from clew.providers.claude.provider import Claude


def make(settings: Settings) -> Provider:
    return Claude(settings)
