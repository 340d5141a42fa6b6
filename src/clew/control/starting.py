"""At the start: every agent's program is looked for and offered."""

import asyncio
from collections.abc import Sequence

from sqlalchemy import Connection

from clew.control.desk import Desk
from clew.control.programs import read_settings
from clew.kernel import RuntimeId
from clew.ports.fault import Fault
from clew.protocol.runtimes import Registration
from clew.protocol.views import CheckView
from clew.store.engine.statement import Row
from clew.store.faults import Busy
from clew.store.operations.agents import change_agent
from clew.store.operations.runtimes import register_runtime
from clew.store.queries.agents import list_agents as read_agents
from clew.store.queries.agents import read_agent


async def offer_agents(desk: Desk) -> tuple[CheckView, ...]:
    """What became of each. One whose program is gone stays as it is and says so; it stops no other. A database that
    somebody holds is no word about any of them: then all are to be offered again."""
    rows = await desk.read(read_agents)
    # Together: a program that takes its time to answer keeps no other agent waiting.
    unknown = _Unknown(rows)
    return tuple(await asyncio.gather(*(_offer(desk, row, unknown) for row in rows)))


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


async def _offer(desk: Desk, row: Row, unknown: _Unknown) -> CheckView:
    name, program = f"agent {row['name']}", read_settings(row["settings"], row["provider"])
    try:
        try:
            looked = await desk.here().discover(program)
            if looked.registration is None:
                return CheckView(name, "missing", looked.missing or f"{program.provider} was not found.", _REMEDY)
            runtime = await _register(desk, row, looked.registration)
        finally:
            unknown.looked_at(row)
        await unknown.none_in(runtime)
        await desk.here().offer(runtime, program)
    except Busy:
        raise
    except Fault as fault:
        return CheckView(name, "failed", fault.words, fault.remedy)
    return CheckView(name, "ok", f"{program.provider} {looked.version}".strip())


_REMEDY = "Install it again, or move the agent to another: `clew agent edit`."


async def _register(desk: Desk, row: Row, found: Registration) -> RuntimeId:
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

    return await desk.write(do)
