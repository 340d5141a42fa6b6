"""A small world: a store, the control plane over it, a machine with agents, and a daemon that serves them."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import Connection, Table, insert, select, update

from clew.context import JournalEngine
from clew.control.actor import MachineDaemon
from clew.control.daemon_api import DaemonApi
from clew.control.services import Services
from clew.daemon import Daemon, Limits, LocalMachine
from clew.kernel import (
    HUMAN,
    RUN_ENDS,
    AgentId,
    Author,
    AuthorKind,
    MachineId,
    RuntimeId,
    SilenceLimits,
    ThreadId,
    WakeId,
    WakeReason,
    WakeState,
)
from clew.ports.context import ContextEngine
from clew.ports.plugins import Providers
from clew.ports.provider import Deadlines, Provider, Settings
from clew.protocol.control import ControlPlane
from clew.protocol.machine import AgentProgram
from clew.protocol.views import RunView
from clew.protocol.wakes import Accepted, Said, WakeRequest
from clew.providers import acp, command, guide
from clew.store.engine.database import Database
from clew.store.engine.open import open_database
from clew.store.operations.ids import new_id
from clew.store.operations.wakes import accept_wake
from clew.store.queries.runs import list_runs
from clew.store.schema.tables import agents, decisions, events, journal, projects, runs, sessions, threads, wakes
from clew.store.schema.version import upgrade
from clew.workspaces import GitWorkspaces
from tests.daemon.scripted import Loom

T = TypeVar("T")

MACHINE = MachineId("mc_1")
PERSON = Author(AuthorKind.HUMAN, "a person")
QUICK = Limits(
    workspace=30.0,
    probe=10.0,
    open=10.0,
    interrupt=3.0,
    close=3.0,
    cancel=2.0,
    retry=0.01,
    retry_most=0.1,
    pace=0.02,
    last_delivery=1.0,
    backlog=5.0,
    silence=SilenceLimits(flag_after=30.0, end_after=60.0),
)
DEADLINES = Deadlines(start=20.0, answer=10.0, silence=30.0, close=3.0)
TRUE = AgentProgram("command", ("/bin/true",))
LOOM = AgentProgram("loom")


def run(scene: Coroutine[Any, Any, T], seconds: float = 90.0) -> T:
    async def within() -> T:
        async with asyncio.timeout(seconds):
            return await scene

    return asyncio.run(within())


async def until(met: Callable[[], bool], what: str, seconds: float = 40.0) -> None:
    deadline = time.monotonic() + seconds
    while not met():
        assert time.monotonic() < deadline, f"it never came to this: {what}"
        await asyncio.sleep(0.005)


class World:
    """What a server has. Daemons come and go."""

    def __init__(
        self,
        place: Path,
        limits: Limits = QUICK,
        context: ContextEngine | None = None,
        deadlines: Deadlines = DEADLINES,
    ) -> None:
        self.place, self.limits, self.deadlines = place.resolve(), limits, deadlines
        self.context = context or JournalEngine()
        self.database: Database = open_database(str(self.place / "clew.db"))
        self.database.do(upgrade)
        self.services = Services(self.database, self.place)
        self.plane: ControlPlane = DaemonApi(self.services, MachineDaemon(MACHINE))
        self.loom = Loom()
        self.programs: list[AgentProgram] = []
        self.daemon = self.new_daemon()

    def new_daemon(self) -> Daemon:
        makers: Mapping[str, Callable[[Settings], Provider]] = {
            "acp": acp.make,
            "command": command.make,
            "guide": guide.make,
            "loom": self.loom.make,
        }
        self.workspaces = GitWorkspaces(self.place / "workspaces", self.place / "homes")
        self.machine = LocalMachine(
            MACHINE,
            "here",
            Providers("provider", "open", makers, {}),
            self.workspaces,
            self.place / "state",
            self.place / "workspaces",
            deadlines=self.deadlines,
        )
        return Daemon(self.plane, self.machine, self.context, self.place / "outbox.db", self.limits)

    # ---------------------------------------------------------------- what people do

    async def start(self) -> None:
        await self.daemon.start(self.programs)

    async def restart(self, finish: bool = False) -> None:
        await self.daemon.stop(finish)
        await self.workspaces.close()
        self.daemon = self.new_daemon()
        await self.start()

    async def add_agent(self, name: str = "ada", program: AgentProgram = LOOM, **columns: Any) -> AgentId:
        looked = await self.machine.discover(program)
        assert looked.registration is not None, looked.missing
        runtime = await self.plane.register(looked.registration)
        row = {
            "id": name,
            "name": name,
            "provider": looked.registration.provider,
            "runtime_id": runtime,
            "mode": "full",
            "home": str(self.place / "homes" / name),
            "settings": json.dumps(asdict(program)),
            "program": looked.registration.program,
            **columns,
        }
        self.write(lambda connection: connection.execute(insert(agents).values(row)))
        if program not in self.programs:
            self.programs.append(program)
            await self.machine.offer(runtime, program)
        return AgentId(name)

    def add_thread(self, name: str = "chat-1", kind: str = "chat", **columns: Any) -> ThreadId:
        row = {"id": name, "kind": kind, "created_at": 0.0, **columns}
        self.write(lambda connection: connection.execute(insert(threads).values(row)))
        return ThreadId(name)

    def add_project(self, name: str, source: Path, **settings: Any) -> str:
        row = {"id": name, "name": name, "source": str(source), "machine_id": MACHINE, "settings": json.dumps(settings)}
        self.write(lambda connection: connection.execute(insert(projects).values(row)))
        return name

    def wake(self, agent: str, thread: str | None = None, text: str | None = None, **changes: Any) -> Accepted:
        asked = WakeRequest(
            id=WakeId(new_id("wk")),
            agent=AgentId(agent),
            reason=WakeReason.COMMENT,
            origin=HUMAN,
            thread=None if thread is None else ThreadId(thread),
            said=None if text is None else Said(PERSON, text),
        )
        asked = replace(asked, **changes)
        return self.write(lambda connection: accept_wake(connection, asked))

    def say(self, text: str, agent: str = "ada", thread: str = "chat-1", **changes: Any) -> Accepted:
        return self.wake(agent, thread, text, **changes)

    async def served(self, accepted: Accepted, seconds: float = 40.0) -> Any:
        """The run of that wake, once both have come to an end."""
        await until(lambda: self.wake_row(accepted).state in _WAKE_ENDS, f"wake {accepted.wake} ends", seconds)
        run_id = self.wake_row(accepted).run_id
        await until(lambda: self.run_row(run_id).state in _RUN_ENDS, f"run {run_id} ends", seconds)
        return self.run_row(run_id)

    async def tell(self, text: str, agent: str = "ada", thread: str = "chat-1", **changes: Any) -> Any:
        return await self.served(self.say(text, agent, thread, **changes))

    # ---------------------------------------------------------------- what there is

    def write(self, operation: Callable[[Connection], T]) -> T:
        return self.database.do(operation)

    def put(self, table: Table, where: Mapping[str, Any], **values: Any) -> None:
        matching = [table.c[name] == value for name, value in where.items()]
        self.write(lambda connection: connection.execute(update(table).where(*matching).values(values)))

    def rows(self, table: Table, *order: str, **where: Any) -> list[Any]:
        matching = [table.c[name] == value for name, value in where.items()]
        by = [table.c[name] for name in (order or ("id",))]
        return list(self.database.read(lambda link: link.execute(select(table).where(*matching).order_by(*by)).all()))

    def wake_row(self, accepted: Accepted) -> Any:
        (row,) = self.rows(wakes, id=accepted.wake)
        return row

    def run_row(self, run_id: str) -> Any:
        (row,) = self.rows(runs, id=run_id)
        return row

    def runs(self) -> list[Any]:
        return self.rows(runs, "queued_at")

    def waits(self) -> RunView:
        """The newest run as people see it."""
        return self.database.read(lambda tx: list_runs(tx, None, None, None, 1, None))[0]

    def sessions(self) -> list[Any]:
        return self.rows(sessions, "generation")

    def said(self, thread: str = "chat-1") -> list[tuple[str, str]]:
        return [(row.author_kind, row.body) for row in self.rows(journal, "seq", thread_id=thread)]

    def log(self, run_id: str) -> list[tuple[str, dict[str, Any]]]:
        return [(row.kind, json.loads(row.body)) for row in self.rows(events, "seq", run_id=run_id)]

    def steps(self, run_id: str) -> list[str]:
        return [body["what"] for kind, body in self.log(run_id) if kind == "step"]

    def outcomes(self, run_id: str) -> list[tuple[str, str]]:
        return [(row.outcome, row.code) for row in self.rows(decisions, "attempt", "step", run_id=run_id)]

    def runtime(self) -> RuntimeId:
        return self.machine.offered[0]

    async def close(self) -> None:
        await self.daemon.stop()
        await self.workspaces.close()
        await self.services.close()
        self.database.close()


_WAKE_ENDS = {WakeState.SERVED.value, WakeState.CANCELLED.value, WakeState.SKIPPED.value}
_RUN_ENDS = {state.value for state in RUN_ENDS}


@asynccontextmanager
async def world(
    place: Path, limits: Limits = QUICK, context: ContextEngine | None = None, deadlines: Deadlines = DEADLINES
) -> AsyncIterator[World]:
    made = World(place, limits, context, deadlines)
    try:
        await made.start()
        yield made
    finally:
        await made.close()
