"""Codex, through its app-server."""

from clew.ports.provider import Provider, Settings
from clew.providers.codex.provider import CodexProvider


def make(settings: Settings) -> Provider:
    return CodexProvider(settings)
