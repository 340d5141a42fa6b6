"""Files of messages: kept with the message, sent once, carried along, and never lost or shown elsewhere."""

import asyncio
import base64
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from sqlalchemy import select, update

from clew.control.actor import MachineDaemon, Person
from clew.control.daemon_api import DaemonApi
from clew.control.faults import BadRequest, NotNow
from clew.control.files import MOST_UNSENT, read_file, upload_file
from clew.control.queue import edit_message, order_queue, show_queue
from clew.control.threads import open_chat, show_thread
from clew.control.wakes import cancel_wake, say
from clew.kernel import MachineId
from clew.protocol.control import FileWanted
from clew.protocol.files import LARGEST_FILE, LARGEST_TOGETHER, MOST_FILES, SentFile
from clew.protocol.orders import Order
from clew.protocol.requests import MessageEdit, NewChat, QueueOrder, Words
from clew.protocol.views import EntryView
from clew.store.engine.database import Database
from clew.store.faults import FileElsewhere, NoSuchFile
from clew.store.operations.files import EXPIRES
from clew.store.schema.tables import files
from tests.control.kit import USER, Office, office

Story = Callable[[Office], Awaitable[None]]


@pytest.fixture
def play(database: Database, tmp_path: Path) -> Callable[[Story], None]:
    """A story in an office with an agent and its chat, chat-1."""

    def played(story: Story) -> None:
        async def within() -> None:
            async with office(database, tmp_path) as at:
                await at.agent()
                await open_chat(at.services, USER, NewChat("ada"))
                await story(at)

        asyncio.run(within())

    return played


async def uploaded(at: Office, content: bytes = b"\0\xff log", name: str = "build.log") -> SentFile:
    return await upload_file(at.services, USER, name, "text/plain; charset=utf-8", content)


async def entries(at: Office, ref: str = "chat-1") -> tuple[EntryView, ...]:
    return (await show_thread(at.services, USER, ref)).entries


async def ids(at: Office) -> dict[str, str | None]:
    found = await at.services.read(lambda tx: tx.execute(select(files.c.id, files.c.thread_id)).all())
    return {row.id: row.thread_id for row in found}


async def age(at: Office, by: float) -> None:
    older = update(files).values(created_at=files.c.created_at - by)
    await at.services.write(lambda tx: tx.execute(older).rowcount)


def test_a_file_goes_with_its_message_and_the_daemon_of_the_run_gets_it(play: Callable[[Story], None]) -> None:
    async def story(at: Office) -> None:
        sent = await uploaded(at)
        assert (sent.name, sent.kind, sent.size) == ("build.log", "text/plain", 6)
        await say(at.services, USER, "chat-1", Words("What is wrong?", files=(sent.id,)))
        assert [each.files for each in await entries(at)] == [(sent,)]
        assert await read_file(at.services, USER, sent.id) == (sent, b"\0\xff log")
        order = await at.claim_one()
        assert [each.files for each in order.entries] == [(sent,)]
        wanted = FileWanted(order.run, order.attempt, sent.id)
        assert base64.b64decode((await at.plane.file(wanted)).content) == b"\0\xff log"
        with pytest.raises(BadRequest, match="'laptop'"):
            await DaemonApi(at.services, MachineDaemon(MachineId("desktop"))).file(wanted)
        unsent = await uploaded(at)
        with pytest.raises(BadRequest, match="not sent in the thread"):
            await at.plane.file(FileWanted(order.run, order.attempt, unsent.id))

    play(story)


@pytest.mark.case("U10")
def test_a_message_that_is_sent_again_has_its_files_once(play: Callable[[Story], None]) -> None:
    async def story(at: Office) -> None:
        sent = await uploaded(at)
        words = Words("What is wrong?", key="k-1", files=(sent.id, sent.id))
        first = await say(at.services, USER, "chat-1", words)
        again = await say(at.services, USER, "chat-1", words)
        assert again.wake is not None
        assert (again.entry, again.wake.repeated) == (first.entry, True)
        assert [each.files for each in await entries(at)] == [(sent,)]
        # What a repeated request names besides is not taken: it goes like everything that was not sent.
        other = await uploaded(at, b"other")
        await say(at.services, USER, "chat-1", Words("What is wrong?", key="k-1", files=(other.id,)))
        assert [each.files for each in await entries(at)] == [(sent,)]
        assert (await ids(at))[other.id] is None

    play(story)


def test_a_note_and_a_message_without_a_text_have_files_too(play: Callable[[Story], None]) -> None:
    async def story(at: Office) -> None:
        one, two = await uploaded(at), await uploaded(at, name="screen.png")
        await say(at.services, USER, "chat-1", Words("Look.", wakes=False, files=(one.id,)))
        await say(at.services, USER, "chat-1", Words(" ", files=(one.id, two.id)))
        assert [(each.text, each.files) for each in await entries(at)] == [
            ("Look.", (one,)),
            ("build.log, screen.png", (one, two)),
        ]

    play(story)


def test_a_message_that_waits_keeps_its_files_when_it_is_edited_and_moved(play: Callable[[Story], None]) -> None:
    async def story(at: Office) -> None:
        order = await _busy(at)
        one, two = await uploaded(at), await uploaded(at, name="screen.png")
        wakes = []
        for text, file in (("First.", one), ("Second.", two)):
            spoken = await say(at.services, USER, "chat-1", Words(text, files=(file.id,)))
            assert spoken.wake is not None
            wakes.append(spoken.wake.id)
        await edit_message(at.services, USER, wakes[0], MessageEdit("First, edited."))
        await order_queue(at.services, USER, "chat-1", QueueOrder(tuple(reversed(wakes))))
        waiting = await show_queue(at.services, USER, "chat-1")
        assert [(each.text, each.files) for each in waiting] == [("Second.", (two,)), ("First, edited.", (one,))]
        assert (await at.finish(order)).taken
        told = (await at.claim_one()).entries
        assert [(each.body, each.files) for each in told if each.files] == [
            ("Second.", (two,)),
            ("First, edited.", (one,)),
        ]

    play(story)


def test_a_message_that_is_taken_back_keeps_its_file_in_the_journal(play: Callable[[Story], None]) -> None:
    async def story(at: Office) -> None:
        await _busy(at)
        sent = await uploaded(at)
        spoken = await say(at.services, USER, "chat-1", Words("Look.", files=(sent.id,)))
        assert spoken.wake is not None
        await cancel_wake(at.services, USER, spoken.wake.id)
        assert [each.files for each in await entries(at)][-2:] == [(sent,), ()]
        assert (await read_file(at.services, USER, sent.id))[1]

    play(story)


async def _busy(at: Office) -> Order:
    await say(at.services, USER, "chat-1", Words("Begin."))
    order = await at.claim_one()
    await at.prompt(order)
    return order


def test_what_was_not_sent_expires_and_what_was_sent_stays(play: Callable[[Story], None]) -> None:
    async def story(at: Office) -> None:
        sent, unsent = await uploaded(at), await uploaded(at)
        await say(at.services, USER, "chat-1", Words("Look.", files=(sent.id,)))
        await age(at, EXPIRES - 60)
        await uploaded(at)
        assert unsent.id in await ids(at)
        await age(at, 120)
        last = await uploaded(at)
        there = await ids(at)
        assert {sent.id, last.id} < set(there)
        assert unsent.id not in there
        with pytest.raises(NoSuchFile, match="Upload it again"):
            await say(at.services, USER, "chat-1", Words("Look.", files=(unsent.id,)))
        assert len(await entries(at)) == 1

    play(story)


def test_limits_are_refused_and_nothing_is_written(play: Callable[[Story], None]) -> None:
    async def story(at: Office) -> None:
        with pytest.raises(BadRequest, match="larger than 10 MB"):
            await uploaded(at, bytes(LARGEST_FILE + 1))
        many = tuple(str(number) for number in range(MOST_FILES + 1))
        with pytest.raises(BadRequest, match="11 files are too many"):
            await say(at.services, USER, "chat-1", Words("Look.", files=many))
        large = [(await uploaded(at, bytes(LARGEST_TOGETHER // 3 + 1))).id for _ in range(3)]
        with pytest.raises(BadRequest, match="a message has up to 25 MB"):
            await say(at.services, USER, "chat-1", Words("Look.", files=tuple(large)))
        assert await entries(at) == ()
        assert set((await ids(at)).values()) == {None}

    play(story)


def test_nobody_fills_the_disk_with_what_is_never_sent(
    play: Callable[[Story], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("clew.control.files.MOST_UNSENT", 1_000)
    assert MOST_UNSENT == 10 * LARGEST_TOGETHER

    async def story(at: Office) -> None:
        await uploaded(at, bytes(900))
        with pytest.raises(NotNow, match="uploaded and not sent"):
            await uploaded(at, bytes(200))
        assert len(await ids(at)) == 1

    play(story)


def test_a_file_is_its_owners_and_stays_in_its_thread(play: Callable[[Story], None]) -> None:
    async def story(at: Office) -> None:
        await open_chat(at.services, USER, NewChat("ada"))
        sent = await uploaded(at)
        with pytest.raises(NoSuchFile):
            await say(at.services, Person("another"), "chat-1", Words("Look.", files=(sent.id,)))
        await say(at.services, USER, "chat-1", Words("Look.", files=(sent.id,)))
        with pytest.raises(FileElsewhere, match="another thread"):
            await say(at.services, USER, "chat-2", Words("Look.", files=(sent.id,)))
        # In its own thread it may be sent again.
        await say(at.services, USER, "chat-1", Words("Look again.", files=(sent.id,)))
        assert [each.files for each in await entries(at)] == [(sent,), (sent,)]

    play(story)
