"""An agent's program: looked for on the machine, and kept as the agent's settings."""

import asyncio
import dataclasses
import json
from collections.abc import Mapping, Sequence

from sqlalchemy import Connection

from clew.control.faults import BadRequest, NotInstalled
from clew.control.services import Services
from clew.kernel import RuntimeId
from clew.ports.fault import Fault
from clew.protocol.machine import AgentProgram, Machine
from clew.protocol.runtimes import Registration
from clew.protocol.views import CheckView
from clew.store.engine.statement import Row
from clew.store.faults import Busy
from clew.store.operations.agents import change_agent
from clew.store.operations.runtimes import register_runtime
from clew.store.queries.agents import list_agents as read_agents
from clew.store.queries.agents import read_agent

_MOST = 100
GUIDE = "guide"
"""The agent that comes with Clew: its program is Clew itself."""

_ALWAYS_NAMED = frozenset({"acp", "command"})
"""Providers that run whatever program an agent names; without one there is nothing to look for."""


async def with_own_program(machine: Machine) -> list[str]:
    """The providers that know which program they are for, whoever brought them along."""
    return sorted(name for name in await machine.providers() if name not in _ALWAYS_NAMED)


async def find_program(services: Services, program: AgentProgram) -> Registration:
    """What the machine says of it; a fault that says what to do where it is not there."""
    machine = services.here()
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


async def offer_agents(services: Services) -> tuple[CheckView, ...]:
    """What became of each. One whose program is gone stays as it is and says so; it stops no other. A database that
    somebody holds is no word about any of them: then all are to be offered again."""
    rows = await services.read(read_agents)
    # Together: a program that takes its time to answer keeps no other agent waiting.
    unknown = _Unknown(rows)
    return tuple(await asyncio.gather(*(_offer(services, row, unknown) for row in rows)))


class _Unknown:
    """Agents whose program was never registered, by their runtime: those of an older database. Until they are, they are
    taken for whatever program was registered there last, so their runtime is offered only then."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self._left: dict[str | None, set[str]] = {}
        self._known: dict[str | None, asyncio.Event] = {}
        for row in rows:
            if not row["program"]:
                self._left.setdefault(row["runtime_id"], set()).add(row["id"])
                self._known.setdefault(row["runtime_id"], asyncio.Event())

    def looked_at(self, row: Row) -> None:
        left = self._left.get(row["runtime_id"], set())
        left.discard(row["id"])
        if not left and row["runtime_id"] in self._known:
            self._known[row["runtime_id"]].set()

    async def none_in(self, runtime: str | None) -> None:
        known = self._known.get(runtime)
        if known is not None:
            await known.wait()


async def _offer(services: Services, row: Row, unknown: _Unknown) -> CheckView:
    name, program = f"agent {row['name']}", read_settings(row["settings"], row["provider"])
    try:
        try:
            looked = await services.here().discover(program)
            if looked.registration is None:
                return CheckView(name, "missing", looked.missing or f"{program.provider} was not found.", _REMEDY)
            runtime = await _register(services, row, looked.registration)
        finally:
            unknown.looked_at(row)
        await unknown.none_in(runtime)
        await services.here().offer(runtime, program)
    except Busy:
        raise
    except Fault as fault:
        return CheckView(name, "failed", fault.words, fault.remedy)
    return CheckView(name, "ok", f"{program.provider} {looked.version}".strip())


_REMEDY = "Install it again, or move the agent to another: `clew agent edit`."


async def _register(services: Services, row: Row, found: Registration) -> RuntimeId:
    def do(connection: Connection) -> RuntimeId:
        runtime = register_runtime(connection, found)
        agent = read_agent(connection, row["id"])
        # Its home may have another name since, or the data came from another machine. Whoever has changed the agent
        # meanwhile has registered what it is now.
        if agent is not None and (agent["settings"], agent["provider"]) == (row["settings"], row["provider"]):
            now = {"runtime_id": runtime, "program": found.program}
            changed = {name: value for name, value in now.items() if value != agent[name]}
            if changed:
                change_agent(connection, agent, changed)
        return runtime

    return await services.write(do)
