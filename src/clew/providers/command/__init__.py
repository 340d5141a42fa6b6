"""Any program that takes a prompt and ends: one process per turn, and as much continuity as its user declares."""

from clew.ports.provider import Provider, Settings
from clew.providers.command.provider import CommandProvider
from clew.providers.command.recipe import recipe_of

__all__ = ["make"]


def make(settings: Settings) -> Provider:
    return CommandProvider(settings, recipe_of(settings))
