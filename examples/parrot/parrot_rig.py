"""Puts the parrot on trial: what the contract tests in a checkout of Clew need to know of it."""

import json
from collections.abc import Sequence
from typing import NoReturn

from clew_parrot import HOME, Parrot

from clew.ports.provider import Provider, Settings
from tests.providers.rig import SECRET, NotPlayed, Rig


class Telling(Parrot):
    """In place of a model: it says which prompts it remembers, so that the tests can compare."""

    def reply(self, prompts: Sequence[str]) -> str:
        first, last = prompts[0], prompts[-1]
        if last.startswith("SAY: "):
            return last.removeprefix("SAY: ")
        return f"SAW users={len(prompts)} first={json.dumps(first)} last={json.dumps(last)}"


def never(*_: object) -> NoReturn:
    raise NotPlayed("a parrot has no tools, takes no instructions, and has always ended")


class ParrotRig(Rig):
    name = "parrot"
    starts_programs = False

    run = write = slow = hang = heard = never

    def settings(self, home: str) -> Settings:
        return Settings(home={HOME: str(self.root / home)}, environment=SECRET)

    def make(self, settings: Settings) -> Provider:
        return Telling(settings)


RIGS = (ParrotRig,)
