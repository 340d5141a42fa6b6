"""The connection is lost right after a commit, so that nobody heard of it: it is tried again, and was done once."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest
from sqlalchemy import Connection

from clew.control.chats import open_chat
from clew.control.issues import open_issue
from clew.control.speaking import say
from clew.control.threads import list_threads
from clew.control.wakes import poke
from clew.store.postgres import PostgresDatabase
from clew.store.statement import POSTGRESQL
from clew.store.tables import journal, wakes
from clew.wire.asks import NewChat, NewIssue, Poke, Words
from tests.control.kit import Office, office
from tests.store.kit import Daemon

on_postgresql = pytest.mark.parametrize("address", [POSTGRESQL], indirect=True)


async def comments(at: Office) -> None:
    await say(at.desk, "issue-1", Words("once"))


async def asks_for_a_fresh_start(at: Office) -> None:
    await say(at.desk, "issue-1", Words("once", fresh=True, key="k"))


async def pokes(at: Office) -> None:
    await poke(at.desk, Poke("ada", text="once", thread="issue-1"))


async def opens_an_issue(at: Office) -> None:
    await open_issue(at.desk, NewIssue("Another", body="once", assignee="ada"))


async def opens_a_chat(at: Office) -> None:
    await open_chat(at.desk, NewChat("ada"))


@on_postgresql
@pytest.mark.case("L13")
@pytest.mark.parametrize(
    ("asks", "opened", "said"),
    [
        (comments, 0, 1),
        (asks_for_a_fresh_start, 0, 1),
        (pokes, 0, 1),
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
        publish(self, connection)
        if not lost:
            lost.append(connection)
            raise psycopg.OperationalError("the connection was lost")

    async def story() -> None:
        async with office(database, tmp_path) as at:
            await at.agent()
            await open_issue(at.desk, NewIssue("Mend it", assignee="ada"))
            first = await at.claim_one()
            await at.prompt(first, "n-1")
            await at.finish(first)
            before = len(await list_threads(at.desk))
            monkeypatch.setattr(PostgresDatabase, "_publish", is_lost)
            await asks(at)
            assert lost
            assert len(await list_threads(at.desk)) == before + opened
            rows = Daemon(database)
            assert [row.body for row in rows.rows(journal, "seq")].count("once") == said
            assert len(rows.rows(wakes, state="pending")) == said
            assert len(await at.claim()) == said

    asyncio.run(story())
