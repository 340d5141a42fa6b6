"""What is measured: an agent that can resume, and one wake's way from the door to its end."""

import json
from collections.abc import Iterable
from functools import partial
from itertools import count
from typing import NamedTuple

from sqlalchemy import Connection, insert

from clew.kernel import (
    HUMAN,
    AgentId,
    Author,
    AuthorKind,
    Capabilities,
    Cursor,
    FailureKind,
    MachineId,
    NativeId,
    Outcome,
    PermissionMode,
    ProviderName,
    RunId,
    RuntimeId,
    Sent,
    ThreadId,
    WakeId,
    WakeReason,
    capabilities_to_record,
    digest_of,
    runtime_id,
)
from clew.protocol.control import Registration
from clew.protocol.orders import ClaimRequest, Order
from clew.protocol.reports import Completed, Failed, Finish, Landed, NewSession, Prompted, Report, new_prompt_id
from clew.protocol.wakes import Said, WakeRequest
from clew.store.engine.database import Database
from clew.store.operations.claim import claim
from clew.store.operations.finish import finish
from clew.store.operations.ids import new_id
from clew.store.operations.report import report
from clew.store.operations.runtimes import register_runtime
from clew.store.operations.wakes import accept_wake
from clew.store.schema.tables import agents, threads

ADA = AgentId("ada")
HOME = f"/srv/{ADA}"
LAPTOP, PROVIDER = MachineId("laptop"), ProviderName("loom")
RUNTIME = runtime_id(LAPTOP, PROVIDER, "/srv/home")
PERSON = Author(AuthorKind.HUMAN, "a person")

PLACES = 64
"""How many runs may go at once: more than there are callers, so that no limit is measured."""

ABLE = Capabilities(
    resume=True, reapply_mode=True, modes=frozenset(PermissionMode), missing_signals=frozenset({"gone"})
)
ASKS = ClaimRequest("bench", (RUNTIME,))

_numbers = count()


class Place(NamedTuple):
    """A runtime, and the agent that works there."""

    runtime: RuntimeId
    agent: AgentId


def furnish(database: Database, suffix: str = "") -> Place:
    """A machine, a runtime and an agent."""
    able = json.dumps(capabilities_to_record(ABLE))
    machine, name = MachineId(f"{LAPTOP}{suffix}"), AgentId(f"{ADA}{suffix}")
    runtime = runtime_id(machine, PROVIDER, "/srv/home")
    laptop = Registration(machine, machine, PROVIDER, "/srv/home", capabilities=able, max_live=PLACES)
    agent = insert(agents).values(id=name, name=name, provider=PROVIDER, runtime_id=runtime, home=HOME, max_live=PLACES)
    database.do(lambda connection: register_runtime(connection, laptop))
    database.do(lambda connection: connection.execute(agent))
    return Place(runtime, name)


def new_threads(database: Database, wanted: int) -> list[ThreadId]:
    named = [ThreadId(f"bench-{next(_numbers)}") for _ in range(wanted)]
    rows = [{"id": name, "kind": "issue", "created_at": 0.0} for name in named]
    database.do(lambda connection: connection.execute(insert(threads), rows))
    return named


def request_in(thread: ThreadId, agent: AgentId = ADA) -> WakeRequest:
    said = Said(PERSON, "look at this", 3)
    return WakeRequest(WakeId(new_id("wk")), agent, WakeReason.COMMENT, HUMAN, thread=thread, said=said)


def accept_all(database: Database, places: Iterable[ThreadId], agent: AgentId = ADA) -> None:
    """A wake in each of them, in one transaction: what comes before is not what is measured."""
    requests = [request_in(thread, agent) for thread in places]

    def operation(connection: Connection) -> None:
        for request in requests:
            accept_wake(connection, request)

    database.do(operation)


def accept_one(database: Database, thread: ThreadId) -> None:
    request = request_in(thread)
    database.do(partial(accept_wake, request=request))


def claim_one(database: Database) -> Order:
    while True:
        # Another caller may hold the very run for a moment.
        for order in database.do(lambda connection: claim(connection, ASKS)):
            return order


def prompts(order: Order) -> Report:
    """That the prompt goes out: what was opened, how far it tells, and the new session where there is one."""
    plan, resumes = order.plan, order.plan.outcome is Outcome.RESUME
    assert plan.workspace is not None
    native, begins = NativeId(order.session), plan.catch_up.after
    at = NewSession(Cursor(1, native), plan.workspace.directory, begins=begins, floor=plan.new_floor, mode="read")
    return Report(
        order.run,
        order.attempt,
        opens=True,
        landed=Landed("{}", "resumed"),
        told=plan.situation.head,
        prompted=Prompted(Sent(new_prompt_id(), digest_of("look at this")), at, tuple(each.id for each in order.wakes)),
        pin=None if resumes else at,
    )


def tell(database: Database, order: Order) -> None:
    assert database.do(partial(report, said=prompts(order))).may_prompt


def complete(database: Database, order: Order) -> None:
    assert database.do(partial(finish, said=Finish(order.run, order.attempt, Completed("done", 1)))).taken


def give_up(database: Database, run: RunId, attempt: int) -> None:
    said = Finish(run, attempt, Failed(FailureKind.PERMANENT, "it cannot be done"))
    assert database.do(lambda connection: finish(connection, said)).taken
