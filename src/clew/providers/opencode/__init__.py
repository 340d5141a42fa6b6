"""OpenCode, through the HTTP interface of its own server."""

from clew.ports.provider import Provider, Settings
from clew.providers.opencode.provider import OpenCodeProvider


def make(settings: Settings) -> Provider:
    return OpenCodeProvider(settings)
