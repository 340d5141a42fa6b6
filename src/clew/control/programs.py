"""An agent's program: looked for on the machine, and kept as the agent's settings."""

import dataclasses
import json
from collections.abc import Mapping

from clew.control.desk import Desk
from clew.control.faults import BadRequest, NotInstalled
from clew.protocol.machine import AgentProgram, Machine
from clew.protocol.runtimes import Registration

_MOST = 100
GUIDE = "guide"
"""The agent that comes with Clew: its program is Clew itself."""

_ALWAYS_NAMED = frozenset({"acp", "command"})
"""Providers that run whatever program an agent names; without one there is nothing to look for."""


async def with_own_program(machine: Machine) -> list[str]:
    """The providers that know which program they are for, whoever brought them along."""
    return sorted(name for name in await machine.providers() if name not in _ALWAYS_NAMED)


async def find_program(desk: Desk, program: AgentProgram) -> Registration:
    """What the machine says of it; a fault that says what to do where it is not there."""
    machine = desk.here()
    there = await machine.providers()
    if program.provider not in there:
        raise BadRequest(f"There is no provider {program.provider!r}.", f"Name one of {', '.join(sorted(there))}.")
    looked = await machine.discover(program)
    if looked.registration is None:
        missing = looked.missing or "It was not found."
        raise NotInstalled(
            f"{program.provider} cannot be used on this machine: {missing}",
            "`clew doctor` shows what was looked at. The guide agent is always there.",
        )
    return looked.registration


def write_settings(program: AgentProgram) -> str:
    return json.dumps(dataclasses.asdict(program))


def read_settings(text: str, provider: str) -> AgentProgram:
    """What cannot be read is left out: an agent can always be shown, and changed."""
    try:
        kept = json.loads(text)
    except ValueError:
        kept = {}
    kept = kept if isinstance(kept, dict) else {}
    words = kept.get("program")
    return AgentProgram(
        provider=provider,
        program=tuple(map(str, words)) if isinstance(words, list) else (),
        options=_texts(kept.get("options")),
        home=_texts(kept.get("home")),
        environment=_texts(kept.get("environment")),
    )


def _texts(value: object) -> Mapping[str, str]:
    return {str(name): str(text) for name, text in value.items()} if isinstance(value, dict) else {}


def changed(kept: Mapping[str, str], change: Mapping[str, str] | None) -> Mapping[str, str]:
    """What is given is set, what is given as nothing is taken away, and the rest stays."""
    return kept if change is None else {name: text for name, text in {**kept, **change}.items() if text}


def check_program(program: AgentProgram) -> AgentProgram:
    for what, given in (("option", program.options), ("home", program.home), ("environment", program.environment)):
        if len(given) > _MOST:
            raise BadRequest(f"{len(given)} variables of {what} are too many.", f"Give up to {_MOST}.")
        for name, text in given.items():
            if not name or "=" in name or "\0" in name + text:
                raise BadRequest(f"{name!r} cannot be the name of a variable ({what}).", "Leave out = and NUL.")
    if program.program and program.provider == GUIDE:
        # Started in its place, any other would be said to be missing or broken.
        raise BadRequest("The guide takes no program: it is one, and comes with Clew.", "Leave those words out.")
    if program.program and not program.program[0].strip():
        raise BadRequest("No program is named: the first word of its command line is empty.", "Put its name first.")
    if len(program.program) > _MOST or any("\0" in word for word in program.program):
        raise BadRequest("That command line cannot be run.", f"Give up to {_MOST} words without NUL.")
    return program
