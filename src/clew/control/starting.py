"""At the start: every agent's program is looked for and offered."""

import asyncio
from functools import partial

from clew.control.desk import Desk
from clew.control.programs import read_settings
from clew.kernel import RuntimeId
from clew.ports.fault import Fault
from clew.store.agents import change_agent
from clew.store.faults import Busy
from clew.store.reading.agents import list_agents as read_agents
from clew.store.register import register_runtime
from clew.store.statement import Row
from clew.wire.runtimes import Registration
from clew.wire.views import CheckView


async def offer_agents(desk: Desk) -> tuple[CheckView, ...]:
    """What became of each. One whose program is gone stays as it is and says so; it stops no other. A database that
    somebody holds is no word about any of them: then all are to be offered again."""
    rows = await desk.read(read_agents)
    # Together: a program that takes its time to answer keeps no other agent waiting.
    return tuple(await asyncio.gather(*(_offer(desk, row) for row in rows)))


async def _offer(desk: Desk, row: Row) -> CheckView:
    name, program = f"agent {row['name']}", read_settings(row["settings"], row["provider"])
    try:
        looked = await desk.here().look(program)
        if looked.registration is None:
            return CheckView(name, "missing", looked.missing or f"{program.provider} was not found.", _REMEDY)
        runtime = await _register(desk, row, looked.registration)
        await desk.here().offer(runtime, program)
    except Busy:
        raise
    except Fault as fault:
        return CheckView(name, "failed", fault.words, fault.remedy)
    return CheckView(name, "ok", f"{program.provider} {looked.version}".strip())


_REMEDY = "Install it again, or move the agent to another: `clew agent edit`."


async def _register(desk: Desk, row: Row, found: Registration) -> RuntimeId:
    runtime = await desk.write(partial(register_runtime, registration=found))
    if runtime != row["runtime_id"]:
        # Its home has another name since, or the data came from another machine.
        await desk.write(lambda connection: change_agent(connection, row, {"runtime_id": runtime}))
    return runtime
