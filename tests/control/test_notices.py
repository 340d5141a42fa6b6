"""Notices: what needs a person and what was done, by thread, without content and without heartbeats."""

import asyncio
from pathlib import Path

import pytest

from clew.control.notices import list_notices
from clew.control.threads import open_chat
from clew.control.wakes import poke, say
from clew.kernel import FailureKind, WaitsFor
from clew.protocol.notices import NoticeView
from clew.protocol.reports import Failed, Returned
from clew.protocol.requests import NewChat, Poke, Words
from clew.store.engine.database import Database
from tests.control.kit import USER, office


@pytest.mark.case("U11")
def test_what_is_done_has_failed_or_waits_is_named_by_its_thread(database: Database, tmp_path: Path) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            await at.agent()
            for _ in range(3):
                await open_chat(at.services, USER, NewChat("ada"))
            assert await list_notices(at.services, USER) == ()
            await say(at.services, USER, "chat-1", Words("Do it."))
            done = await at.serve()
            await poke(at.services, USER, Poke("ada"))
            await at.serve()
            await say(at.services, USER, "chat-2", Words("Do it."))
            failed = await at.serve(end=Failed(FailureKind.PERMANENT, "no"))
            await say(at.services, USER, "chat-3", Words("Do it."))
            held = await at.claim_one()
            await at.finish(held, Returned("It is not allowed.", "place:refused", WaitsFor.PERSON))
            assert await list_notices(at.services, USER) == (
                NoticeView(f"{held.run}-held", "needs", "chat-3"),
                NoticeView(failed.run, "needs", "chat-2"),
                NoticeView(done.run, "done", "chat-1"),
            )

    asyncio.run(story())
