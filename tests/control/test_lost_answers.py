"""The connection is lost right after a commit, so that nobody heard of it: it is tried again, and was done once."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest
from sqlalchemy import Connection

from clew.control.issues import open_issue
from clew.control.projects import add_project
from clew.control.runs import rerun
from clew.control.threads import list_threads, open_chat
from clew.control.wakes import poke, say
from clew.protocol.orders import Order
from clew.protocol.requests import NewChat, NewIssue, NewProject, Poke, Words
from clew.store.engine.pipeline import Pipeline
from clew.store.engine.postgres import PostgresDatabase
from clew.store.engine.statement import POSTGRESQL
from clew.store.faults import NameTaken
from clew.store.schema.tables import agents, journal, runs, threads, wakes
from tests.control.kit import USER, Office, office
from tests.store.kit import Daemon

on_postgresql = pytest.mark.parametrize("address", [POSTGRESQL], indirect=True)


def has_written(connection: Connection) -> bool:
    """Whatever writes hints at it."""
    return bool(connection.info.get("clew-hints"))


async def comments(at: Office) -> None:
    await say(at.services, USER, "issue-1", Words("once"))


async def asks_for_a_fresh_start(at: Office) -> None:
    await say(at.services, USER, "issue-1", Words("once", fresh=True, key="k"))


async def pokes(at: Office) -> None:
    await poke(at.services, USER, Poke("ada", text="once", thread="issue-1"))


async def opens_an_issue(at: Office) -> None:
    await open_issue(at.services, USER, NewIssue("Another", body="once", assignee="ada"))


async def opens_a_chat(at: Office) -> None:
    await open_chat(at.services, USER, NewChat("ada"))


async def runs_again(at: Office) -> None:
    (run,) = Daemon(at.services._database).rows(runs)  # noqa: SLF001 - the only one there is
    await rerun(at.services, USER, run.id)


@on_postgresql
@pytest.mark.case("L13")
@pytest.mark.parametrize(
    ("asks", "opened", "said"),
    [
        (comments, 0, 1),
        (asks_for_a_fresh_start, 0, 1),
        (pokes, 0, 1),
        (runs_again, 0, 1),
        (opens_an_issue, 1, 1),
        (opens_a_chat, 1, 0),
    ],
)
def test_what_was_done_is_not_done_again(
    database: PostgresDatabase,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    asks: Callable[[Office], Awaitable[None]],
    opened: int,
    said: int,
) -> None:
    lost: list[Any] = []
    publish = PostgresDatabase._publish  # noqa: SLF001 - what comes right after a commit

    def is_lost(self: PostgresDatabase, connection: Connection) -> None:
        if not lost and has_written(connection):
            lost.append(connection)
            raise psycopg.OperationalError("the connection was lost")
        publish(self, connection)

    async def story() -> None:
        async with office(database, tmp_path) as at:
            await at.agent()
            await open_issue(at.services, USER, NewIssue("Mend it", assignee="ada"))
            await at.finish(await _prompted(at))
            before = len(await list_threads(at.services, USER))
            monkeypatch.setattr(PostgresDatabase, "_publish", is_lost)
            await asks(at)
            assert lost
            assert len(await list_threads(at.services, USER)) == before + opened
            rows = Daemon(database)
            assert [row.body for row in rows.rows(journal, "seq")].count("once") == said * (asks is not runs_again)
            assert len(rows.rows(wakes, state="pending")) == said
            assert len(await at.claim()) == said

    asyncio.run(story())


@on_postgresql
@pytest.mark.case("L13")
def test_words_that_were_taken_are_not_refused_because_of_what_came_after(
    database: PostgresDatabase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lost: list[Any] = []

    def is_lost(self: PostgresDatabase, connection: Connection) -> None:
        # Closed by somebody else, before it is tried again.
        if not lost and has_written(connection):
            lost.append(connection)
            Daemon(self).put(threads, {"kind": "issue"}, state="closed")
            raise psycopg.OperationalError("the connection was lost")

    async def story() -> None:
        async with office(database, tmp_path) as at:
            await at.agent()
            await open_issue(at.services, USER, NewIssue("Mend it", assignee="ada"))
            await at.finish(await _prompted(at))
            monkeypatch.setattr(PostgresDatabase, "_publish", is_lost)
            spoken = await say(at.services, USER, "issue-1", Words("once"))
            assert lost
            assert spoken.wake is not None
            assert (spoken.entry, spoken.wake.state, spoken.wake.repeated) == (3, "pending", False)
            assert [row.body for row in Daemon(database).rows(journal, "seq")].count("once") == 1

    asyncio.run(story())


async def says_it_to_nobody(at: Office) -> None:
    spoken = await say(at.services, USER, "issue-1", Words("once", wakes=False))
    assert (spoken.entry, spoken.wake) == (3, None)


async def adds_an_agent(at: Office) -> None:
    assert (await at.agent("bob")).name == "bob"


async def adds_a_project(at: Office) -> None:
    assert (await add_project(at.services, USER, NewProject("maze", "https://example.org/maze.git"))).name == "maze"


@on_postgresql
@pytest.mark.case("L13")
def test_the_same_words_said_before_are_not_taken_for_those_that_were_lost(
    database: PostgresDatabase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lost: list[Any] = []
    commit = Pipeline.commit

    def is_lost(wire: Pipeline) -> None:
        # Before it reaches the server; nothing but these words is written now.
        if not lost:
            lost.append(wire)
            raise psycopg.OperationalError("the connection was lost")
        commit(wire)

    async def story() -> None:
        async with office(database, tmp_path) as at:
            await at.agent()
            await open_issue(at.services, USER, NewIssue("Mend it", assignee="ada"))
            assert (await say(at.services, USER, "issue-1", Words("yes", wakes=False))).entry == 2
            monkeypatch.setattr(Pipeline, "commit", is_lost)
            assert (await say(at.services, USER, "issue-1", Words("yes", wakes=False))).entry == 3
            assert lost

    asyncio.run(story())


@on_postgresql
@pytest.mark.case("L13")
@pytest.mark.parametrize("asks", [says_it_to_nobody, adds_an_agent, adds_a_project])
def test_what_wakes_nobody_is_done_once_too_and_not_refused(
    database: PostgresDatabase,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    asks: Callable[[Office], Awaitable[None]],
) -> None:
    lost: list[Any] = []
    on_kept = PostgresDatabase._on_kept  # noqa: SLF001 - where every write goes

    def is_lost(self: PostgresDatabase, operation: Any, which: Any) -> Any:
        answer = on_kept(self, operation, which)
        if not lost:
            lost.append(answer)
            raise psycopg.OperationalError("the connection was lost")
        return answer

    async def story() -> None:
        async with office(database, tmp_path) as at:
            await at.agent()
            await open_issue(at.services, USER, NewIssue("Mend it", assignee="ada"))
            await at.finish(await _prompted(at))
            monkeypatch.setattr(PostgresDatabase, "_on_kept", is_lost)
            await asks(at)
            assert lost
            rows = Daemon(database)
            assert [row.body for row in rows.rows(journal, "seq")].count("once") == (asks is says_it_to_nobody)
            assert len(rows.rows(agents)) == 1 + (asks is adds_an_agent)
            # Whoever asks for the same a second time is answered for that.
            if asks is says_it_to_nobody:
                assert (await say(at.services, USER, "issue-1", Words("once", wakes=False))).entry == 4
            else:
                with pytest.raises(NameTaken):
                    await asks(at)

    asyncio.run(story())


async def _prompted(at: Office) -> Order:
    order = await at.claim_one()
    await at.prompt(order, "n-1")
    return order
