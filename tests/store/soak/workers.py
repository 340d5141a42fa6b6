"""The workers of one server process: producers, daemons, a sweeper, and a person who changes their mind."""

import random
import threading
import time
import traceback
from collections.abc import Callable
from concurrent.futures import CancelledError
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import Connection, func, select, text, update

from clew.kernel import (
    HUMAN,
    ApprovalId,
    Attestation,
    EntrySeq,
    Evidence,
    FailureKind,
    Freshness,
    Origin,
    OriginKind,
    Outcome,
    PromptId,
    RunId,
    RunOutcome,
    RunState,
    WakeId,
    WakeReason,
)
from clew.protocol.control import Held
from clew.protocol.orders import ClaimRequest, Order
from clew.protocol.reports import (
    Asked,
    Completed,
    End,
    Failed,
    Finish,
    NewSession,
    Prompted,
    Report,
    Returned,
    RunEventRecord,
    Stopped,
    StoreAnswer,
    StoreAsked,
    read_prompted,
)
from clew.protocol.wakes import Said, WakeRequest
from clew.store.engine.database import Database
from clew.store.engine.dialect import read_clock
from clew.store.faults import KeyConflict
from clew.store.operations.cancel import cancel_run, cancel_wake, reassign
from clew.store.operations.claim import claim
from clew.store.operations.evidence import attest_by_person
from clew.store.operations.finish import finish
from clew.store.operations.ids import new_id
from clew.store.operations.leases import end_orphans, expire, renew
from clew.store.operations.report import report
from clew.store.operations.retry import go_now
from clew.store.operations.schedules import tick_due
from clew.store.operations.wakes import accept_wake
from clew.store.schema.tables import UNHEARD, lanes, runs, wakes
from tests.store.kit import PERSON, pin_of, prompted_of
from tests.store.soak.agents import Agents, Delivery
from tests.store.soak.notes import Notes
from tests.store.soak.scene import AGENTS, PATIENCE, RETRIES, RUNTIMES, THREADS

Result = TypeVar("Result")

BACKLOG = 60
"""How many wakes may be open before producers wait."""

ORIGINS = (HUMAN, HUMAN, Origin(OriginKind.OUTSIDE), Origin(OriginKind.AGENT, AGENTS[0], 2))


@dataclass
class Server:
    """What the workers of a process share. `noted` is the directory of their notes; `name` is this life's alone, while
    `place` goes on to the server that follows it, and with it the names of its daemons."""

    database: Database
    noted: Path
    name: str
    place: str
    seed: int
    closing: threading.Event

    @cached_property
    def agents(self) -> Agents:
        return Agents(self.noted)

    def chance(self, worker: str) -> random.Random:
        return random.Random(f"{self.seed}/{self.name}/{worker}")

    def write(self, operation: Callable[..., Result], *arguments: Any) -> Result:
        asked = operation if not arguments else lambda connection: operation(connection, *arguments)
        return self.database.write(asked).result(120)


def start(server: Server) -> list[threading.Thread]:
    workers: dict[str, Callable[[Server, str], None]] = {
        "producer-a": produce,
        "producer-b": produce,
        "daemon-a": serve,
        "daemon-b": serve,
        "daemon-c": serve,
        "sweeper": sweep,
        "person": meddle,
    }
    started = [
        threading.Thread(target=_guarded, args=(server, name, work), name=name, daemon=True)
        for name, work in workers.items()
    ]
    for each in started:
        each.start()
    return started


def _guarded(server: Server, name: str, work: Callable[[Server, str], None]) -> None:
    try:
        work(server, name)
    except CancelledError:
        pass
    except BaseException:  # noqa: BLE001 - whatever it is, the verdict shall know of it
        said = traceback.format_exc().replace("\n", "\\n")
        Notes(server.noted / f"fault-{server.name}").write(name, said)


# ---------------------------------------------------------------- producers


def produce(server: Server, name: str) -> None:
    """Wakes, each noted once it was answered for; now and then the same one again, as a caller who heard nothing."""
    chance, answered = server.chance(name), Notes(server.noted / f"answered-{server.name}-{name}", safe=True)
    asked: list[WakeRequest] = []
    while not server.closing.wait(chance.uniform(0.0, 0.02)):
        if server.database.read(_open_wakes) > BACKLOG:
            server.closing.wait(0.05)
            continue
        again = bool(asked) and chance.random() < 0.1
        request = chance.choice(asked) if again else _some_request(chance)
        try:
            accepted = server.write(accept_wake, request)
        except KeyConflict:
            continue
        if again and accepted.wake != request.id and request.dedupe_key is None:
            raise AssertionError(f"{request.id} became {accepted.wake}")
        asked = [*asked[-50:], request]
        answered.write(accepted.wake)


def _open_wakes(connection: Connection) -> int:
    return connection.execute(select(func.count()).where(wakes.c.ended_at.is_(None))).scalar_one()


def _some_request(chance: random.Random) -> WakeRequest:
    key = f"key-{chance.randrange(40)}" if chance.random() < 0.1 else None
    return WakeRequest(
        WakeId(new_id("wk")),
        chance.choice(AGENTS),
        chance.choice((WakeReason.COMMENT, WakeReason.MENTION, WakeReason.ASSIGNMENT, WakeReason.MANUAL)),
        chance.choice(ORIGINS),
        chance.choice((*THREADS, None)),
        said=Said(PERSON, "look at this", 3) if chance.random() < 0.8 else None,
        freshness=Freshness.FRESH if chance.random() < 0.1 else Freshness.FOLLOW_POLICY,
        priority=chance.choice((0, 0, 0, 3)),
        dedupe_key=key,
        isolated=chance.random() < 0.1,
    )


# ---------------------------------------------------------------- daemons


def serve(server: Server, name: str) -> None:
    """A daemon: it settles what it had before, then takes what there is and brings it to some end."""
    chance = server.chance(name)
    by, ledger = f"{server.place}/{name}", Notes(server.noted / f"served-{server.name}-{name}")
    if chance.random() < 0.7:
        server.write(end_orphans, by, RUNTIMES, (), RETRIES)
    while not server.closing.is_set():
        asked = ClaimRequest(by, RUNTIMES, chance.randint(1, 3), PATIENCE)
        orders = server.write(claim, asked)
        if not orders:
            server.closing.wait(chance.uniform(0.0, 0.03))
        for order in orders:
            _see_through(server, chance, ledger, order)


def _see_through(server: Server, chance: random.Random, ledger: Notes, order: Order) -> None:
    """One run. A daemon may fall silent at any point, and tell anything twice."""
    if chance.random() < 0.02:
        return
    if order.questions:
        end_it(server, ledger, order, StoreAsked(answers_to(server, order, chance)))
        return
    pin = new_session(order) if chance.random() < 0.5 else None
    if not tell(server, Report(order.run, order.attempt, opens=True, pin=pin)).goes_on:
        return
    if chance.random() < 0.03:
        end_it(server, ledger, order, Returned("not now", "hold:later"))
        return
    prompt = _prompted(server, chance, ledger, order)
    if prompt is None or not _at_work(server, chance, order):
        return
    end = _some_end(chance, server.agents, prompt)
    if end is None or chance.random() < 0.03:
        return
    end_it(server, ledger, order, end)
    if chance.random() < 0.1:
        end_it(server, ledger, replace(order, attempt=order.attempt - 1), Completed("too late"))


def _prompted(server: Server, chance: random.Random, ledger: Notes, order: Order) -> PromptId | None:
    """The prompt, once the agent has it and the daemon is still there."""
    prompt = prompting(order, hears=chance.random() < 0.95)
    assert prompt.prompted is not None
    name = prompt.prompted.sent.id
    if not tell(server, prompt).may_prompt or chance.random() < 0.05:
        return None
    if chance.random() < 0.05:
        # The agent was away when it was to be told.
        end_it(server, ledger, order, Failed(FailureKind.TRANSIENT, "it is away", heard=server.agents.heard(name)))
        return None
    has_it = server.agents.take(name, delivery(order, prompt.prompted))
    return name if has_it and chance.random() > 0.05 else None


def _at_work(server: Server, chance: random.Random, order: Order) -> bool:
    """Whether the daemon is still there, and need not stop it."""
    steps = [
        Report(order.run, order.attempt, tool_ran=True, pin=new_session(order), events=(_line(1), _line(2))),
        Report(order.run, order.attempt, asks=(Asked(ApprovalId(f"{order.run}-{order.attempt}"), "may I?"),)),
        Report(order.run, order.attempt, answered=True),
    ]
    for said in steps[: chance.choice((0, 0, 1, 1, 3))]:
        if chance.random() < 0.02 or not tell(server, said).goes_on:
            return False
        if chance.random() < 0.1:
            tell(server, said)
        if chance.random() < 0.1:
            held = (Held(order.run, order.attempt),)
            server.write(renew, RUNTIMES, held, PATIENCE)
    return True


@dataclass(frozen=True)
class Heard:
    """Whether the daemon still holds the run and need not stop it, and whether its prompt may go out."""

    goes_on: bool
    may_prompt: bool


def tell(server: Server, said: Report) -> Heard:
    answer = server.write(report, replace(said, patience=PATIENCE))
    goes_on = answer.held and answer.stop is None
    return Heard(goes_on, goes_on and answer.may_prompt)


def prompting(order: Order, hears: bool = True) -> Report:
    return Report(
        order.run,
        order.attempt,
        told=EntrySeq(order.plan.situation.head),
        prompted=prompted_of(order, f"n-{order.session}", hears=hears),
        events=(_line(1),),
    )


def delivery(order: Order, prompted: Prompted) -> Delivery:
    assert prompted.session is not None
    native, plan = prompted.session.cursor.native_id, order.plan
    entries = tuple(entry.seq for entry in order.entries)
    return Delivery(order.run, prompted.wakes, native, order.thread.id, entries, plan.already_told)


def answers_to(server: Server, order: Order, chance: random.Random | None = None) -> tuple[StoreAnswer, ...]:
    """What the agents' own store says; now and then it cannot tell."""
    return tuple(
        StoreAnswer(
            question.run,
            Attestation(Evidence.UNKNOWN, "it is locked")
            if chance is not None and chance.random() < 0.1
            else server.agents.heard(question.prompt.id),
        )
        for question in order.questions
        if question.prompt is not None
    )


def end_it(server: Server, ledger: Notes, order: Order, end: End, twice: bool = True) -> None:
    said = Finish(order.run, order.attempt, end, new_session(order), RETRIES)
    if isinstance(end, Returned | StoreAsked):
        said = replace(said, pin=None)
    ended = server.write(finish, said)
    if ended.taken and ended.state is RunState.SUCCEEDED and isinstance(end, Completed):
        for wake in order.wakes:
            ledger.write(wake.id, order.run)
    if twice and ended.taken and ended.state is RunState.SUCCEEDED:
        again = server.write(finish, said)
        if not again.taken or again.state is not ended.state:
            raise AssertionError(f"told twice, the end of {order.run} was {ended} and then {again}")


def new_session(order: Order) -> NewSession | None:
    """The session a new run is in, the same one however often it is told; one that is resumed is known already."""
    if order.plan.outcome in (Outcome.RESUME, Outcome.HOLD):
        return None
    return pin_of(order.plan, f"n-{order.session}")


def _line(seq: int) -> RunEventRecord:
    return RunEventRecord(seq, "text", "…")


def _some_end(chance: random.Random, agents: Agents, prompt: PromptId) -> End | None:
    """As the agent ended, and mostly its store was asked; None where it came to another end meanwhile."""
    drawn = chance.random()
    if drawn < 0.80:
        return Completed("done" if chance.random() < 0.7 else None, 2) if agents.finish(prompt) else None
    heard = None if chance.random() < 0.3 else agents.heard(prompt)
    if heard is not None and heard.evidence is Evidence.FINISHED:
        return Completed("read back", 2, read_back=True)
    ends: tuple[tuple[float, End], ...] = (
        (0.88, Failed(FailureKind.TRANSIENT, "the provider is away", heard=heard)),
        (0.91, Failed(FailureKind.USAGE_LIMIT, "enough for now", reset_at=time.time() + 0.2, heard=heard)),
        (0.93, Failed(FailureKind.CRASHED, "it died", poisons=True, heard=heard)),
        (0.95, Failed(FailureKind.PERMANENT, "no such model", heard=heard)),
        (0.98, Stopped("a person stopped it", heard=heard)),
    )
    refused = Failed(FailureKind.RESUME_REJECTED, "it was refused", heard=heard)
    return next((end for limit, end in ends if drawn < limit), refused)


# ---------------------------------------------------------------- the server itself, and a person


def sweep(server: Server, name: str) -> None:
    chance = server.chance(name)
    since = server.database.read(read_clock)
    while not server.closing.wait(chance.uniform(0.01, 0.1)):
        server.write(expire, since, PATIENCE, RETRIES)
        server.write(tick_due)
        if chance.random() < 0.2:
            server.write(time_passes)


def time_passes(connection: Connection) -> None:
    """What was put off for half a minute is due: nobody here has that long."""
    for table in (runs, wakes):
        connection.execute(
            update(table).where(table.c.ended_at.is_(None), table.c.not_before > 2.0).values(not_before=1.0)
        )


def decide(connection: Connection, agents: Agents) -> None:
    """A person looks at what only a person can tell of, and says what is so."""
    for row in connection.execute(select(runs.c.lane_id, runs.c.prompt).where(text(UNHEARD))).all():
        prompted = read_prompted(row.prompt)
        if not prompted.hears:
            attest_by_person(connection, row.lane_id, agents.heard(prompted.sent.id).evidence is not Evidence.UNSENT)
            (thread,) = connection.execute(select(lanes.c.thread_id).where(lanes.c.id == row.lane_id)).scalars()
            go_now(connection, row.lane_id, thread)


def meddle(server: Server, name: str) -> None:
    """A person who cancels and reassigns, and decides what is left to them."""
    chance = server.chance(name)
    while not server.closing.wait(chance.uniform(0.1, 0.6)):
        server.write(decide, server.agents)
        run, wake = server.database.read(_open_run_and_wake)
        drawn = chance.random()
        if drawn < 0.5 and run is not None:
            why = chance.choice((RunOutcome.BY_USER, RunOutcome.INTERRUPTED, RunOutcome.INTERRUPTED))
            server.write(cancel_run, run, why)
        elif drawn < 0.9 and wake is not None:
            server.write(cancel_wake, wake)
        elif drawn >= 0.9:
            old, new = chance.sample(AGENTS, 2)
            thread = chance.choice(THREADS)
            server.write(reassign, thread, old, new)


def _open_run_and_wake(connection: Connection) -> tuple[RunId | None, WakeId | None]:
    any_run = select(runs.c.id).where(runs.c.ended_at.is_(None)).order_by(func.random()).limit(1)
    any_wake = select(wakes.c.id).where(wakes.c.state == "pending").order_by(func.random()).limit(1)
    return connection.execute(any_run).scalar(), connection.execute(any_wake).scalar()
