"""Builders for store tests: two agents, two machines, what people say to them, and a daemon that serves them."""

import json
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from threading import Event
from typing import Any, Self, TypeVar

import psycopg
from sqlalchemy import Connection, Table, delete, insert, select, update

from clew.kernel import (
    HUMAN,
    NOTHING_SEEN,
    USES_EARLIER_SESSION,
    AgentId,
    Attestation,
    Author,
    AuthorKind,
    Capabilities,
    Cursor,
    Evidence,
    FailureKind,
    MachineId,
    NativeId,
    Outcome,
    Patience,
    PermissionMode,
    Plan,
    ProviderName,
    RunId,
    RuntimeId,
    Sent,
    ThreadId,
    WakeId,
    WakeReason,
    capabilities_to_record,
    digest_of,
    lane_id,
    runtime_id,
)
from clew.protocol.orders import ClaimRequest, Order
from clew.protocol.reports import (
    Completed,
    End,
    Failed,
    Finish,
    Finished,
    Landed,
    NewSession,
    Prompted,
    Report,
    Reported,
    Stopped,
    StoreAnswer,
    StoreAsked,
    new_prompt_id,
)
from clew.protocol.wakes import Accepted, Said, WakeRequest
from clew.store.engine.database import Database
from clew.store.engine.pipeline import Answer
from clew.store.engine.statement import POSTGRESQL, Call, pipeline_of
from clew.store.operations.claim import claim
from clew.store.operations.finish import finish
from clew.store.operations.ids import new_id
from clew.store.operations.report import report
from clew.store.operations.search_index import clear_index
from clew.store.operations.wakes import accept_wake
from clew.store.schema.tables import (
    UNKNOWN_RUNTIME,
    agents,
    journal,
    lanes,
    machines,
    meta,
    metadata,
    projects,
    runs,
    runtimes,
    sessions,
    threads,
    wakes,
)

Result = TypeVar("Result")

ADA, BOB = AgentId("ada"), AgentId("bob")
THREAD, OTHER_THREAD = ThreadId("issue-7"), ThreadId("issue-8")
LANE, OTHER_LANE = lane_id(ADA, THREAD), lane_id(ADA, OTHER_THREAD)
BOBS_LANE = lane_id(BOB, THREAD)
LOOM = ProviderName("loom")
RUNTIME = runtime_id(MachineId("laptop"), LOOM, "/srv/home")
ELSEWHERE = runtime_id(MachineId("server"), LOOM, "/srv/home")
PERSON = Author(AuthorKind.HUMAN, "a person")

GONE, REFUSED = "no-such-session", "session-refused"
ABLE = Capabilities(
    resume=True,
    fork=True,
    reapply_mode=True,
    hears=True,
    modes=frozenset(PermissionMode),
    missing_signals=frozenset({GONE}),
    rejection_signals=frozenset({REFUSED}),
)

AT_ONCE = Patience(lease=0.0, offline_after=0.0, grace=0.0)
"""No patience at all: what is not heard of is gone."""


def said(evidence: Evidence, reply: str = "") -> Attestation:
    """What an agent's own store says of a prompt."""
    return Attestation(evidence, f"the store says {evidence}", reply if evidence is Evidence.FINISHED else "")


TRANSIENT = Failed(FailureKind.TRANSIENT, "the provider was overloaded", heard=said(Evidence.CUT_OFF))
PERMANENT = Failed(FailureKind.PERMANENT, "the prompt is too long", heard=said(Evidence.CUT_OFF))
STOPPED = Stopped("enough", heard=said(Evidence.CUT_OFF))
"""Ends of a turn that had begun: the agent's own store was asked, and has the prompt and part of the turn."""


def empty(connection: Connection) -> None:
    """Everything goes but what belongs to the schema."""
    for table in reversed(metadata.sorted_tables):
        if table is machines or table is runtimes:
            connection.execute(delete(table).where(table.c.id != UNKNOWN_RUNTIME))
        elif table is not meta:
            connection.execute(delete(table))
    clear_index(connection)


def furnish(connection: Connection) -> None:
    """Two machines with a runtime each, two agents that live on the first, and two threads."""
    able = json.dumps(capabilities_to_record(ABLE))
    for machine, runtime in (("laptop", RUNTIME), ("server", ELSEWHERE)):
        connection.execute(insert(machines).values(id=machine, name=machine))
        row = {"id": runtime, "machine_id": machine, "provider": LOOM, "home": "/srv/home", "max_live": 4}
        connection.execute(insert(runtimes).values(**row, capabilities=able))
    for agent in (ADA, BOB):
        connection.execute(
            insert(agents).values(id=agent, name=agent, provider=LOOM, runtime_id=RUNTIME, home=f"/srv/{agent}")
        )
    for thread in (THREAD, OTHER_THREAD):
        connection.execute(insert(threads).values(id=thread, kind="issue", created_at=0.0))


def request(**changes: Any) -> WakeRequest:
    plain = WakeRequest(
        id=WakeId(new_id("wk")),
        agent=ADA,
        reason=WakeReason.COMMENT,
        origin=HUMAN,
        thread=THREAD,
        said=Said(PERSON, "look at this", 3),
    )
    return replace(plain, **changes)


def said_in(connection: Connection, thread: ThreadId = THREAD) -> list[tuple[int, str]]:
    rows = connection.execute(
        select(journal.c.seq, journal.c.body).where(journal.c.thread_id == thread).order_by(journal.c.seq)
    )
    return [(row.seq, row.body) for row in rows]


def states(connection: Connection) -> list[tuple[str, str]]:
    return [
        (row.state, row.code) for row in connection.execute(select(wakes.c.state, wakes.c.code).order_by(wakes.c.id))
    ]


def queued(connection: Connection) -> list[Any]:
    return list(connection.execute(select(runs).where(runs.c.state == "queued")))


def pin_of(plan: Plan, native: str, **changes: Any) -> NewSession:
    """What a daemon writes down of the session it has opened as planned."""
    assert plan.workspace is not None
    assert plan.mode is not None
    here, begins = plan.situation.here, plan.catch_up.after
    new = NewSession(
        cursor=Cursor(1, NativeId(native)),
        directory=plan.workspace.directory,
        account=here.account,
        begins=NOTHING_SEEN if plan.outcome in USES_EARLIER_SESSION else begins,
        seen=begins if plan.outcome in USES_EARLIER_SESSION else NOTHING_SEEN,
        also=tuple(entry for entry in (*plan.kept, *plan.act_on) if entry <= begins),
        floor=plan.new_floor,
        model=plan.model,
        mode=plan.mode.value,
        instructions=here.instructions,
        tools=here.tools,
        credential=here.credential,
    )
    return replace(new, **changes)


def prompted_of(order: Order, native: str | None = None, **changes: Any) -> Prompted:
    """The prompt that is about to go out. The session it goes to has the name that it is pinned by, or would be."""
    plan = order.plan
    cursor = plan.session.cursor if plan.outcome is Outcome.RESUME and plan.session is not None else None
    resumed = cursor.native_id if isinstance(cursor, Cursor) else None
    plain = Prompted(
        Sent(new_prompt_id(), digest_of("what the session has not seen")),
        pin_of(plan, native or resumed or f"n-{order.session}"),
        tuple(wake.id for wake in order.wakes),
        plan.situation.here.capabilities.hears,
        late=plan.told_late or None,
    )
    return replace(plain, **changes)


def resumes(order: Order) -> bool:
    return order.plan.outcome is Outcome.RESUME


@dataclass(frozen=True, slots=True)
class Daemon:
    """A daemon on one runtime, and whatever else a test does to the database it works for."""

    database: Database
    runtime: RuntimeId = RUNTIME
    by: str = "daemon-1"
    patience: Patience = field(default_factory=Patience)

    def write(self, operation: Callable[[Connection], Result]) -> Result:
        return self.database.write(operation).result(30)

    def accept(self, **changes: Any) -> Accepted:
        asked = request(**changes)
        return self.write(lambda connection: accept_wake(connection, asked))

    def say(self, text: str, **changes: Any) -> Accepted:
        return self.accept(said=Said(PERSON, text, len(text)), **changes)

    def claim(self, most: int = 1) -> tuple[Order, ...]:
        asked = ClaimRequest(self.by, (self.runtime,), most, self.patience)
        return self.write(lambda connection: claim(connection, asked))

    def claim_one(self) -> Order:
        (order,) = self.claim()
        return order

    def report(self, order: Order, **said: Any) -> Reported:
        told = Report(order.run, order.attempt, patience=self.patience, **said)
        return self.write(lambda connection: report(connection, told))

    def prompt(self, order: Order, native: str | None = None, **said: Any) -> Reported:
        """Opened as planned, and the prompt about to go out; with `native` its session is pinned along with it."""
        pin = None if native is None else pin_of(order.plan, native)
        landed = Landed('{"native_id": "as planned"}', "started")
        told, prompted = order.plan.situation.head, prompted_of(order, native)
        plain = {"opens": True, "landed": landed, "told": told, "prompted": prompted, "pin": pin}
        return self.report(order, **{**plain, **said})

    def finish(self, order: Order, end: End | None = None, **said: Any) -> Finished:
        ended = Finish(order.run, order.attempt, end or Completed("done"), **said)
        return self.write(lambda connection: finish(connection, ended))

    def answer(
        self, order: Order, evidence: Evidence | None, reply: str = "", steered: Evidence | None = None
    ) -> Finished:
        """What the agent's store says of all that the order asks for; None of what it does not ask."""
        assert order.questions
        answers = tuple(
            StoreAnswer(
                question.run,
                None if question.prompt is None or evidence is None else said(evidence, reply),
                None if question.steered is None or steered is None else said(steered),
            )
            for question in order.questions
        )
        return self.finish(order, StoreAsked(answers))

    def serve(self, native: str | None = None, end: End | None = None) -> Order:
        """One run from its claim to its end, in a session of that name; without one its agent names none."""
        order = self.claim_one()
        named = native is not None or resumes(order) or end is not None
        unnamed = {} if named else {"prompted": prompted_of(order, session=None)}
        assert self.prompt(order, native, **unnamed).may_prompt
        assert self.finish(order, end).taken
        return order

    def put(self, table: Table, where: Mapping[str, Any] | None = None, **values: Any) -> None:
        """Change rows behind everybody's back."""
        matching = [table.c[name] == value for name, value in (where or {}).items()]
        changed = self.write(
            lambda connection: connection.execute(update(table).where(*matching).values(values)).rowcount
        )
        assert changed, f"no such row of {table.name}: {where}"

    def make_room(self) -> None:
        """For more runs at once than any test has."""
        self.put(agents, max_live=50)
        for runtime in (RUNTIME, ELSEWHERE):
            self.put(runtimes, {"id": runtime}, max_live=50)

    def put_capability(self, name: str, value: Any) -> None:
        """What the provider declares on every machine."""
        able = capabilities_to_record(replace(ABLE, **{name: value}))
        self.put(runtimes, {"provider": LOOM}, capabilities=json.dumps(able))

    def add(self, table: Table, **values: Any) -> None:
        self.write(lambda connection: connection.execute(insert(table).values(values)).rowcount)

    def rows(self, table: Table, *order: str, **where: Any) -> Sequence[Any]:
        matching = [table.c[name] == value for name, value in where.items()]
        by = [table.c[name] for name in (order or ("id",))]
        return self.database.read(
            lambda connection: connection.execute(select(table).where(*matching).order_by(*by)).all()
        )

    def run(self, run: RunId) -> Any:
        (row,) = self.rows(runs, id=run)
        return row

    def wake(self, wake: WakeId) -> Any:
        (row,) = self.rows(wakes, id=wake)
        return row

    def sessions(self) -> list[tuple[int, str, str]]:
        """The lane's generations: number, the agent's own id, state."""
        rows = self.rows(sessions, "generation", lane_id=LANE, scope_run="")
        return [(row.generation, row.native_id, row.state) for row in rows]

    def lane(self) -> Any:
        (row,) = self.rows(lanes, id=LANE)
        return row


def in_project(daemon: Daemon, machine: str = "laptop") -> None:
    daemon.add(projects, id="maze", name="maze", source="/src/maze", machine_id=machine)
    daemon.put(threads, {"id": THREAD}, project_id="maze")
    daemon.put(machines, {"id": "laptop"}, root="/srv/work")


def bodies(order: Order) -> list[str]:
    return [entry.body for entry in order.entries]


def numbers(order: Order) -> list[int]:
    return [entry.seq for entry in order.entries]


def overlapping(
    database: Database, first: Callable[[Connection], Any], second: Callable[[Connection], Any], hold: float = 0.1
) -> tuple[Future[Any], Future[Any]]:
    """Both at once: the second begins while the first has done all it does but for its commit."""
    done = Event()

    def held(connection: Connection) -> Any:
        result = first(connection)
        if connection.dialect.name == POSTGRESQL:
            # What was left for the commit is sent now.
            pipeline_of(connection).ask(())
        done.set()
        time.sleep(hold)
        return result

    one = database.write(held)
    while not (done.wait(0.01) or one.done()):
        pass
    return one, database.write(second)


def sent(database: Database, operation: Callable[[Connection], Result]) -> tuple[Result, list[str]]:
    """What an operation answers, and every statement that it sent to the database on the way, by the driver's word."""
    texts: list[str] = []

    def traced(connection: Connection) -> Result:
        texts.clear()
        with _overheard(connection, texts):
            return operation(connection)

    result = database.write(traced).result(30)
    return result, [text for text in texts if not text.startswith(("BEGIN", "SAVEPOINT", "RELEASE", "COMMIT"))]


@contextmanager
def _overheard(connection: Connection, texts: list[str]) -> Iterator[None]:
    raw: Any = connection.connection.driver_connection
    if isinstance(raw, sqlite3.Connection):
        # What begins with "--" the database says to itself. What a trigger does is said in the words of the statement
        # that it belongs to.
        raw.set_trace_callback(
            lambda text: None if text.startswith("--") or texts[-1:] == [text] else texts.append(text)
        )
        try:
            yield
        finally:
            raw.set_trace_callback(None)
        return

    class Overheard(psycopg.Cursor[Any]):
        def execute(self, query: Any, *values: Any, **how: Any) -> Self:
            texts.append(str(query))
            return super().execute(query, *values, **how)

        def executemany(self, query: Any, *values: Any, **how: Any) -> None:
            texts.append(str(query))
            super().executemany(query, *values, **how)

    pipeline = pipeline_of(connection)
    trip, defer = pipeline.ask, pipeline.defer

    def overheard(calls: Sequence[Call]) -> list[Answer]:
        texts.extend(statement.sql.decode() for statement, _ in calls)
        return trip(calls)

    def left(call: Call) -> None:
        texts.append(call[0].sql.decode())
        defer(call)

    before, raw.cursor_factory = raw.cursor_factory, Overheard
    pipeline.ask, pipeline.defer = overheard, left  # type: ignore[method-assign]
    try:
        yield
    finally:
        del pipeline.ask, pipeline.defer
        raw.cursor_factory = before
