"""Outside subjects: every event of one lands in its own thread, and is told as what it is."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from clew.control.faults import BadRequest
from clew.control.projects import add_project
from clew.control.threads import close_thread, list_threads, show_thread
from clew.control.wakes import poke, say
from clew.kernel import Outcome, read_subject
from clew.protocol.requests import NewProject, Poke, Words
from clew.store.engine.database import Database
from clew.store.faults import NoSuchProject, NoSuchThread, ThreadClosed
from tests.control.kit import USER, office

PULL = "github:acme/app#12"


@pytest.mark.case("W14")
def test_every_event_of_a_subject_lands_in_its_thread(database: Database, tmp_path: Path) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            await at.agent()
            first = await poke(at.services, USER, Poke("ada", text="A review is wanted.", subject=PULL))
            assert (first.reason, first.origin, first.thread) == ("event", "outside", read_subject(PULL).thread)
            order = await at.serve("n-1")
            assert (order.thread.kind, order.thread.title) == ("subject", PULL)
            second = await poke(at.services, USER, Poke("ada", text="It was pushed to.", subject=PULL))
            assert second.thread == first.thread
            again = await at.serve("n-1")
            assert (again.plan.outcome, again.lane) == (Outcome.RESUME, order.lane)
            other = await poke(at.services, USER, Poke("ada", text="Another one.", subject="github:acme/app#13"))
            assert other.thread != first.thread
            page = await show_thread(at.services, USER, PULL)
            assert (page.thread.title, page.thread.assignee, page.thread.kind) == (PULL, "ada", "subject")
            # Whoever wrote it is not the user.
            assert (page.entries[0].author_kind, page.entries[0].author) == ("outside", PULL)
            assert {each.title for each in await list_threads(at.services, USER, kind="subject")} == {
                PULL,
                "github:acme/app#13",
            }
            # What a person says there is a person's.
            spoken = await say(at.services, USER, PULL, Words("Leave it alone."))
            assert spoken.wake is not None
            assert (spoken.wake.agent, spoken.wake.origin) == ("ada", "human")

    asyncio.run(story())


@pytest.mark.case("W14")
def test_events_that_come_at_once_make_one_thread(database: Database, tmp_path: Path) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            for name in ("ada", "bob"):
                await at.agent(name)
            asked = [Poke(("ada", "bob")[number % 2], text=f"Event {number}.", subject=PULL) for number in range(8)]
            woken = await asyncio.gather(*(poke(at.services, USER, each) for each in asked))
            assert len({each.thread for each in woken}) == 1
            page = await show_thread(at.services, USER, PULL)
            assert sorted(entry.text for entry in page.entries) == [f"Event {number}." for number in range(8)]
            assert {lane.agent for lane in page.lanes} == {"ada", "bob"}

    asyncio.run(story())


@pytest.mark.case("W14")
def test_a_subject_is_worked_on_in_the_project_of_its_first_event(database: Database, tmp_path: Path) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            await at.agent()
            for name in ("maze", "web"):
                (tmp_path / name / ".git").mkdir(parents=True)
                await add_project(at.services, USER, NewProject(name, str(tmp_path / name)))
            await poke(at.services, USER, Poke("ada", text="one", subject=PULL, project="maze"))
            assert (await at.claim_one()).project is not None
            await poke(at.services, USER, Poke("ada", text="two", subject=PULL, project="maze"))
            await poke(at.services, USER, Poke("ada", text="three", subject=PULL))
            with pytest.raises(BadRequest, match="is not in project 'web'"):
                await poke(at.services, USER, Poke("ada", text="four", subject=PULL, project="web"))
            with pytest.raises(NoSuchProject):
                await poke(at.services, USER, Poke("ada", text="five", subject=PULL, project="none"))
            assert len((await show_thread(at.services, USER, PULL)).entries) == 3

    asyncio.run(story())


@pytest.mark.case("W14")
@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"subject": "acme/app#12"}, "has no colon"),
        ({"subject": "GitHub:x"}, "cannot be the source"),
        ({"subject": "github:"}, "cannot be the name"),
        ({"subject": "github:\ud800"}, "cannot be stored"),
        ({"subject": PULL, "thread": "chat-1"}, "its own thread"),
        ({"subject": PULL, "text": " "}, "needs a text"),
        ({"project": "maze"}, "for the thread of a subject"),
    ],
)
def test_what_names_no_subject_is_refused(database: Database, tmp_path: Path, how: dict[str, Any], words: str) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            await at.agent()
            with pytest.raises(BadRequest, match=words):
                await poke(at.services, USER, Poke(**{"agent": "ada", "text": "one", **how}))
            assert not await list_threads(at.services, USER, kind="subject")

    asyncio.run(story())


@pytest.mark.case("W14")
def test_a_subject_that_is_closed_or_was_never_heard_of_is_said_to_be(database: Database, tmp_path: Path) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            await at.agent()
            with pytest.raises(NoSuchThread, match="There is no thread for"):
                await show_thread(at.services, USER, PULL)
            with pytest.raises(NoSuchThread, match="cannot be the source"):
                await show_thread(at.services, USER, "GitHub:x")
            await poke(at.services, USER, Poke("ada", text="one", subject=PULL))
            await close_thread(at.services, USER, PULL)
            with pytest.raises(ThreadClosed, match=PULL):
                await poke(at.services, USER, Poke("ada", text="two", subject=PULL))

    asyncio.run(story())
