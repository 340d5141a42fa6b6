"""The lineage of a thread: which session each decision continues, and on which machine it was."""

import asyncio
from pathlib import Path

from clew.control.lineage import show_lineage
from clew.control.threads import open_chat
from clew.control.wakes import say
from clew.protocol.requests import NewChat, Words
from clew.store.engine.database import Database
from tests.control.kit import USER, office


def test_each_decision_names_the_session_that_it_continues(database: Database, tmp_path: Path) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            await at.agent()
            await open_chat(at.services, USER, NewChat("ada"))
            for text, native in (("one", "n-1"), ("two", None), ("three", "n-3")):
                await say(at.services, USER, "chat-1", Words(text, fresh=text == "three"))
                await at.serve(native)
            view = await show_lineage(at.services, USER, "chat-1")
            old, new = sorted(view.sessions, key=lambda each: each.generation)
            continued = [(each.outcome, each.session) for each in view.decisions]
            assert continued == [("blank", None), ("resume", old.id), ("blank", None)]
            assert [run.session for run in view.runs] == [new.id, old.id, old.id]
            assert set(view.machines) == {old.runtime}
            assert not view.more

    asyncio.run(story())
