"""Two operations on one lane at the same moment, each with each: no wake is lost, none is served twice, nobody hangs.

The second begins when the first has done everything but its commit. On PostgreSQL it runs into whatever the first
has locked, with a view from before; on SQLite it waits for its turn.
"""

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pytest
from sqlalchemy import Connection, update

from clew.kernel import (
    Answer,
    ApprovalId,
    Cursor,
    Directory,
    EntrySeq,
    NativeId,
    Patience,
    RunOutcome,
    ThreadId,
    WakeId,
)
from clew.protocol.orders import ClaimRequest, Order
from clew.protocol.reports import Asked, Completed, End, Finish, NewSession, Report, Steered
from clew.protocol.wakes import WakeRequest
from clew.store.engine import postgres
from clew.store.operations.approvals import answer_approval
from clew.store.operations.cancel import cancel_run, cancel_wake, reassign
from clew.store.operations.claim import claim
from clew.store.operations.finish import finish
from clew.store.operations.leases import end_orphans, expire
from clew.store.operations.moves import move_lane
from clew.store.operations.report import report
from clew.store.operations.sessions import Adoption, adopt_session
from clew.store.operations.wakes import accept_wake
from clew.store.schema.promises import RUNS, SESSIONS, WAKES
from clew.store.schema.tables import agents, runs, runtimes, threads, wakes
from tests.store.kit import ADA, BOB, ELSEWHERE, RUNTIME, TRANSIENT, Daemon, overlapping, pin_of, request

HOLD = 0.05


@dataclass(frozen=True, slots=True)
class Scene:
    """A lane: its run, and a wake that no run has taken yet."""

    thread: ThreadId
    order: Order | None
    waiting: WakeId
    request: WakeRequest


Act = Callable[[Connection, Scene], Any]


def _act(act: Act, scene: Scene, connection: Connection) -> Any:
    return act(connection, scene)


def _ordered(scene: Scene) -> Order:
    assert scene.order is not None
    return scene.order


def _finish(connection: Connection, scene: Scene, end: End) -> Any:
    order = _ordered(scene)
    return finish(connection, Finish(order.run, order.attempt, end))


def _pin(connection: Connection, scene: Scene) -> Any:
    order = _ordered(scene)
    pin = pin_of(order.plan, f"n-{scene.thread}-2")
    return report(connection, Report(order.run, order.attempt, pin=pin, asks=(Asked(_question(scene, 2), "And?"),)))


def _steer(connection: Connection, scene: Scene, **said: Any) -> Any:
    order = _ordered(scene)
    return report(connection, Report(order.run, order.attempt, **said))


def _cancel(connection: Connection, scene: Scene, why: RunOutcome) -> Any:
    run = scene.order.run if scene.order is not None else _run_of(connection, scene)
    return cancel_run(connection, run, why)


def _run_of(connection: Connection, scene: Scene) -> Any:
    waiting = wakes.select().where(wakes.c.id == scene.waiting)
    lane = connection.execute(waiting).one().lane_id
    found = runs.select().where(runs.c.lane_id == lane).order_by(runs.c.queued_at)
    return connection.execute(found).first().id  # type: ignore[union-attr]


def _move(connection: Connection, scene: Scene) -> Any:
    lane = connection.execute(wakes.select().where(wakes.c.id == scene.waiting)).one().lane_id
    return move_lane(connection, lane, ELSEWHERE, "its machine is gone")


def _adopt(connection: Connection, scene: Scene) -> Any:
    session = NewSession(Cursor(1, NativeId(f"n-{scene.thread}-own")), Directory("/srv/ada"))
    return adopt_session(connection, Adoption(ADA, scene.thread, RUNTIME, session))


def _question(scene: Scene, number: int = 1) -> ApprovalId:
    return ApprovalId(f"ap-{scene.thread}-{number}")


ANY_TIME: Mapping[str, Act] = {
    "accept": lambda connection, scene: accept_wake(connection, scene.request),
    "claim": lambda connection, _: claim(connection, ClaimRequest("daemon-2", (RUNTIME, ELSEWHERE))),
    "cancel run": lambda connection, scene: _cancel(connection, scene, RunOutcome.BY_USER),
    "interrupt": lambda connection, scene: _cancel(connection, scene, RunOutcome.INTERRUPTED),
    "cancel wake": lambda connection, scene: cancel_wake(connection, scene.waiting),
    "reassign": lambda connection, scene: reassign(connection, scene.thread, ADA, BOB),
    "move": _move,
    "adopt": _adopt,
}
WHILE_IT_GOES: Mapping[str, Act] = {
    "complete": lambda connection, scene: _finish(connection, scene, Completed("done")),
    "fail": lambda connection, scene: _finish(connection, scene, TRANSIENT),
    "pin": _pin,
    "answer": lambda connection, scene: answer_approval(connection, _question(scene), Answer.APPROVE, "a person"),
    "expire": lambda connection, _: expire(connection, 0.0, Patience(0.0, 0.0, 0.0)),
    "restart": lambda connection, _: end_orphans(connection, "daemon-1", [RUNTIME]),
    "steer": lambda connection, scene: _steer(connection, scene, steers=True),
    "not steered": lambda connection, scene: _steer(connection, scene, steered=Steered(False, EntrySeq(2))),
}


@pytest.fixture(autouse=True)
def roomy(daemon: Daemon, monkeypatch: pytest.MonkeyPatch) -> None:
    daemon.make_room()
    # Two that wait for each other would only be slow; here they are to be seen.
    races = frozenset(postgres._RACES) - {"40P01"}  # noqa: SLF001 - the codes after which an operation is run again
    monkeypatch.setattr(postgres, "_RACES", races)


def queued_scene(daemon: Daemon, name: str) -> Scene:
    thread = ThreadId(name)
    daemon.add(threads, id=thread, kind="issue", created_at=0.0)
    return Scene(thread, None, daemon.say("one", thread=thread).wake, request(thread=thread))


def going_scene(daemon: Daemon, name: str) -> Scene:
    scene = queued_scene(daemon, name)
    order = daemon.claim_one()
    asked = (Asked(_question(scene), "May I?"),)
    assert daemon.prompt(order, f"n-{name}", asks=asked).may_prompt
    daemon.put(runs, {"id": order.run}, lease_until=1.0)
    waiting = daemon.say("two", thread=scene.thread).wake
    daemon.put(wakes, {"id": waiting}, code="accepted:steered")
    return replace(scene, order=order, waiting=waiting)


def race(daemon: Daemon, first: str, acts: Mapping[str, Act], scene_of: Callable[[Daemon, str], Scene]) -> None:
    for second, act in acts.items():
        scene = scene_of(daemon, f"{first}-{second}".replace(" ", "-"))
        both = overlapping(daemon.database, partial(_act, acts[first], scene), partial(_act, act, scene), HOLD)
        for each in both:
            each.result(30)
        assert daemon.database.read(broken) == [], f"{first}, then {second}"
        drain(daemon)
        ended = [row.state for row in daemon.rows(wakes, thread_id=scene.thread)]
        assert set(ended) <= {"served", "cancelled"}, f"{first}, then {second}"
        assert [row for row in daemon.rows(runs) if row.ended_at is None] == [], f"{first}, then {second}"


def broken(connection: Connection) -> list[str]:
    """The promises that a race could break; the rest is asked for at the end."""
    promises = (*WAKES, *RUNS, *SESSIONS)
    return [f"{promise.name}: {row}" for promise in promises for row in promise.broken(connection)]


def drain(daemon: Daemon) -> None:
    """Whoever has work finishes it, until there is none."""
    for _ in range(5):
        daemon.write(lambda connection: expire(connection, 0.0, Patience(0.0, 0.0, 0.0)))
        left = daemon.rows(runs, ended_at=None)
        if not left:
            return
        for row in left:
            if row.lease_until is not None:
                daemon.write(partial(finish, said=Finish(row.id, row.attempt, TRANSIENT)))
        daemon.write(come_back)
        for order in (*daemon.claim(most=5), *replace(daemon, runtime=ELSEWHERE).claim(most=5)):
            daemon.prompt(order, order.plan.native_id or f"n-{order.run}")
            daemon.finish(order)


def come_back(connection: Connection) -> None:
    """Every delay is over."""
    connection.execute(update(runs).where(runs.c.state == "queued").values(not_before=None))
    connection.execute(update(wakes).where(wakes.c.state == "pending").values(not_before=None))


@pytest.mark.proof("postgresql")
@pytest.mark.case("L03")
@pytest.mark.parametrize("first", ANY_TIME)
def test_a_lane_that_waits(daemon: Daemon, first: str) -> None:
    race(daemon, first, ANY_TIME, queued_scene)


@pytest.mark.proof("postgresql")
@pytest.mark.case("L03")
@pytest.mark.parametrize("first", [*ANY_TIME, *WHILE_IT_GOES])
def test_a_lane_that_is_going(daemon: Daemon, first: str) -> None:
    race(daemon, first, {**ANY_TIME, **WHILE_IT_GOES}, going_scene)


@pytest.mark.case("R01")
def test_many_who_claim_several_at_once_do_not_wait_for_each_other(daemon: Daemon) -> None:
    daemon.put(runtimes, {"id": RUNTIME}, max_live=8)
    homes = [f"a-{number}" for number in range(4)]
    for agent in homes:
        where = {"provider": "loom", "runtime_id": RUNTIME, "home": "/srv/home", "max_live": 3}
        daemon.add(agents, id=agent, name=agent, **where)
    for number in range(8):
        daemon.add(threads, id=f"t-{number}", kind="issue", created_at=0.0)
        # Each thread in another order, so that no two claims want the agents in the same one.
        for at in range(4):
            daemon.accept(agent=homes[(at + number) % 4], thread=f"t-{number}")

    def work(number: int) -> int:
        mine, served = replace(daemon, by=f"d-{number}"), 0
        while daemon.rows(runs, ended_at=None):
            for order in mine.claim(most=4):
                mine.prompt(order, f"n-{order.lane}")
                mine.finish(order)
                served += 1
        return served

    with ThreadPoolExecutor(6) as pool:
        assert sum(pool.map(work, range(6))) == 32
    assert {row.state for row in daemon.rows(wakes)} == {"served"}
