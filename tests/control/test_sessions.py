"""Adopting: a session that a person has already goes on in a thread, where it is."""

import asyncio
from pathlib import Path

import pytest
from sqlalchemy import update

from clew.control.faults import BadRequest, NoSuchSession, NotNow
from clew.control.issues import open_issue
from clew.control.sessions import adopt_found, adopt_session, found_sessions, list_sessions, release_thread
from clew.control.threads import list_threads, open_chat
from clew.control.wakes import say
from clew.kernel import NativeId, Outcome
from clew.protocol.requests import Adopt, AdoptFound, NewChat, NewIssue, Words
from clew.store.engine.database import Database
from clew.store.faults import SessionHeld
from clew.store.schema.tables import sessions
from tests.control.kit import LOOM, USER, WHEEL, office, session_of


def test_an_adopted_session_goes_on_in_its_own_directory(database: Database, tmp_path: Path) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            await at.agent()
            at.laptop.found[LOOM] = [session_of("n-7"), session_of("n-8", None)]
            first, second = await found_sessions(at.services, USER)
            assert (first.native_id, first.directory, first.thread) == ("n-7", "/srv/mine", None)
            assert (second.directory, second.provider, second.turns) == (None, "loom", 3)
            await open_chat(at.services, USER, NewChat("ada"))
            adopted = await adopt_session(at.services, USER, "chat-1", Adopt("ada", LOOM, "n-7"))
            assert (adopted.generation, adopted.turns, adopted.thread) == (1, 3, "chat-1")
            assert await adopt_session(at.services, USER, "chat-1", Adopt("ada", LOOM, "n-7")) == adopted
            assert (await found_sessions(at.services, USER))[0].thread == "chat-1"
            await say(at.services, USER, "chat-1", Words("go on"))
            order = await at.claim_one()
            assert (order.plan.outcome, order.plan.native_id) == (Outcome.RESUME, "n-7")
            assert order.plan.workspace is not None
            assert order.plan.workspace.directory.path == "/srv/mine"

    asyncio.run(story())


def test_a_found_session_goes_on_in_a_new_chat_and_one_that_is_gone_leaves_none(
    database: Database, tmp_path: Path
) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            await at.agent()
            at.laptop.found[LOOM] = [session_of("n-7")]
            with pytest.raises(NoSuchSession):
                await adopt_found(at.services, USER, AdoptFound("ada", LOOM, "n-9"))
            assert await list_threads(at.services, USER, kind="chat") == ()
            adopted = await adopt_found(at.services, USER, AdoptFound("ada", LOOM, "n-7"))
            assert adopted.thread == "chat-1"
            assert await adopt_found(at.services, USER, AdoptFound("ada", LOOM, "n-7", "chat-1")) == adopted

    asyncio.run(story())


def test_a_thread_without_an_agent_is_given_to_the_one_that_adopts(database: Database, tmp_path: Path) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            await at.agent()
            await at.agent("bob", provider="wheel")
            at.laptop.found[LOOM] = [session_of("n-7")]
            await open_issue(at.services, USER, NewIssue("Mend it"))
            await adopt_session(at.services, USER, "issue-1", Adopt("ada", LOOM, "n-7"))
            spoken = await say(at.services, USER, "issue-1", Words("go on"))
            assert spoken.wake is not None
            assert (spoken.wake.agent, (await at.claim_one()).plan.native_id) == ("ada", "n-7")
            assert await found_sessions(at.services, USER, "bob") == ()
            assert [each.native_id for each in await found_sessions(at.services, USER, "ada")] == ["n-7"]

    asyncio.run(story())


def test_a_damaged_session_hides_no_other(database: Database, tmp_path: Path) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            await at.agent()
            for number in (1, 2):
                await open_chat(at.services, USER, NewChat("ada"))
                await say(at.services, USER, f"chat-{number}", Words("hello"))
                await at.serve(f"n-{number}")
            at.database.do(
                lambda tx: tx.execute(update(sessions).where(sessions.c.native_id == "n-1").values(also="broken"))
            )
            for shown in (
                await list_sessions(at.services, USER),
                await list_sessions(at.services, USER, "chat-1") + await list_sessions(at.services, USER, "chat-2"),
            ):
                assert {each.native_id: each.state for each in shown} == {"n-1": "damaged", "n-2": "healthy"}
            at.database.do(
                lambda tx: tx.execute(update(sessions).where(sessions.c.native_id == "n-1").values(also="[]"))
            )

    asyncio.run(story())


@pytest.mark.case("R14")
def test_sessions_that_are_kept_open_are_let_go(database: Database, tmp_path: Path) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            await at.agent()
            await open_chat(at.services, USER, NewChat("ada"))
            await say(at.services, USER, "chat-1", Words("hello"))
            await at.serve("n-1")
            at.laptop.warm = {(LOOM, NativeId("n-1")), (LOOM, NativeId("n-other"))}
            released = await release_thread(at.services, USER, "chat-1")
            assert (released.thread, released.released, released.busy) == ("chat-1", ("n-1",), ())
            assert at.laptop.warm == {(LOOM, "n-other")}
            await say(at.services, USER, "chat-1", Words("again"))
            order = await at.claim_one()
            released = await release_thread(at.services, USER, "chat-1")
            assert (released.released, released.busy) == ((), (order.run,))

    asyncio.run(story())


def test_what_cannot_be_adopted_is_said(database: Database, tmp_path: Path) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            await at.agent()
            await at.agent("bob", provider="wheel")
            at.laptop.found[LOOM] = [session_of("n-7"), session_of("n-8", None)]
            for _ in range(2):
                await open_chat(at.services, USER, NewChat("ada"))
            await adopt_session(at.services, USER, "chat-1", Adopt("ada", LOOM, "n-7"))
            with pytest.raises(SessionHeld):
                await adopt_session(at.services, USER, "chat-2", Adopt("ada", LOOM, "n-7"))
            with pytest.raises(NoSuchSession):
                await adopt_session(at.services, USER, "chat-2", Adopt("ada", WHEEL, "n-7"))
            with pytest.raises(NotNow, match="which directory"):
                await adopt_session(at.services, USER, "chat-2", Adopt("ada", LOOM, "n-8"))
            with pytest.raises(BadRequest, match="another provider"):
                await adopt_session(at.services, USER, "chat-2", Adopt("bob", LOOM, "n-7"))

    asyncio.run(story())
