"""Builders for store tests: one agent on one machine, and what people say to it."""

from dataclasses import replace
from typing import Any

from sqlalchemy import Connection, insert, select

from clew.kernel import (
    HUMAN,
    AgentId,
    Author,
    AuthorKind,
    MachineId,
    ProviderName,
    ThreadId,
    WakeId,
    WakeReason,
    runtime_id,
)
from clew.store.accept import Said, WakeRequest
from clew.store.naming import new_id
from clew.store.tables import agents, journal, machines, runs, runtimes, threads, wakes

ADA, BOB = AgentId("ada"), AgentId("bob")
THREAD, OTHER_THREAD = ThreadId("issue-7"), ThreadId("issue-8")
RUNTIME = runtime_id(MachineId("laptop"), ProviderName("loom"), "/srv/home")
PERSON = Author(AuthorKind.HUMAN, "a person")


def furnish(connection: Connection) -> None:
    """A machine, a runtime, two agents and two threads."""
    connection.execute(insert(machines).values(id="laptop", name="laptop"))
    connection.execute(
        insert(runtimes).values(id=RUNTIME, machine_id="laptop", provider="loom", home="/srv/home", max_live=4)
    )
    for agent in (ADA, BOB):
        connection.execute(
            insert(agents).values(id=agent, name=agent, provider="loom", runtime_id=RUNTIME, home=f"/srv/{agent}")
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
