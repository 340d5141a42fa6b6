"""The queue of a thread: what waits and why, and changes of it until an agent has a message."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from clew.control.actor import Outside
from clew.control.decisions import explain
from clew.control.faults import BadRequest
from clew.control.issues import open_issue
from clew.control.queue import edit_message, order_queue, show_queue, steer_message
from clew.control.runs import show_run
from clew.control.threads import open_chat, show_thread
from clew.control.wakes import cancel_wake, poke, say
from clew.kernel import WaitsFor
from clew.protocol.reports import Returned, Steered
from clew.protocol.requests import MessageEdit, NewChat, NewIssue, Poke, QueueOrder, Words
from clew.protocol.views import WakeView
from clew.store.engine.database import Database
from clew.store.faults import MessageTaken, NotAMessage
from tests.control.kit import USER, Office, office
from tests.control.test_steering import at_work


async def said(at: Office, text: str, ref: str = "chat-1", **how: Any) -> WakeView:
    spoken = await say(at.services, USER, ref, Words(text, **how))
    assert spoken.wake is not None
    return spoken.wake


async def texts(at: Office, ref: str = "chat-1") -> list[str]:
    return [waiting.text for waiting in await show_queue(at.services, USER, ref)]


@pytest.mark.case("W17")
def test_what_waits_is_shown_in_order_with_why_and_what_can_be_done(database: Database, tmp_path: Path) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            going = await show_run(at.services, USER, (await at_work(at)).run)
            assert await show_queue(at.services, USER, "chat-1") == ()
            first, steered = await said(at, "two"), await said(at, "three", overlap="steer")
            await poke(at.services, USER, Poke("ada", "chat-1"))
            silent, one, other = await show_queue(at.services, USER, "chat-1")
            assert (silent.text, silent.entry, silent.reason, silent.can) == ("", None, "manual", ("take back",))
            assert (one.wake, one.text, one.author, one.entry, one.run) == (first.id, "two", "user", 2, going.ref)
            assert one.words == f"Queued behind {going.ref}: ada is told when that one ends."
            assert one.can == ("edit", "move", "steer", "take back")
            assert (other.wake, other.can) == (steered.id, ("edit", "move", "take back"))
            assert other.words == f"ada is told during this turn ({going.ref}), or at the start of the next."

    asyncio.run(story())


@pytest.mark.case("W17", "R13")
def test_what_waits_for_more_than_a_turn_says_for_what(database: Database, tmp_path: Path) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            await at.agent()
            await open_chat(at.services, USER, NewChat("ada"))
            await said(at, "one")
            (waiting,) = await show_queue(at.services, USER, "chat-1")
            assert (waiting.words, waiting.can) == (
                "It is next, and starts within seconds.",
                ("edit", "move", "take back"),
            )
            await at.finish(await at.claim_one(), Returned("the branch is gone", "workspace:gone", WaitsFor.PERSON))
            (waiting,) = await show_queue(at.services, USER, "chat-1")
            assert waiting.words.startswith(f"the branch is gone. Once that is fixed, run `clew retry {waiting.run}`")

    asyncio.run(story())


@pytest.mark.case("W17")
def test_a_message_is_edited_moved_and_taken_back_until_the_agent_has_it(database: Database, tmp_path: Path) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            order = await at_work(at)
            two, three, four = [await said(at, text) for text in ("two", "three", "four")]
            queue = await edit_message(at.services, USER, two.id[:-4], MessageEdit("two!", entry=2))
            assert [each.text for each in queue] == ["two!", "three", "four"]
            queue = await order_queue(at.services, USER, "chat-1", QueueOrder((four.id, two.id)))
            assert [each.text for each in queue] == ["four", "two!", "three"]
            done = await cancel_wake(at.services, USER, three.id)
            assert (done.taken, done.state, done.words) == (True, "cancelled", "Taken back: ada is not told.")
            assert await texts(at) == ["four", "two!"]
            await at.finish(order)
            taken = await at.claim_one()
            assert [entry.body for entry in taken.entries if entry.facts.author.name == "user"] == ["four", "two!"]
            for change in (
                edit_message(at.services, USER, two.id, MessageEdit("x")),
                order_queue(at.services, USER, "chat-1", QueueOrder((two.id, four.id))),
                steer_message(at.services, USER, two.id),
                cancel_wake(at.services, USER, two.id),
            ):
                with pytest.raises(MessageTaken, match=r"ada has it: run-\d+, which started"):
                    await change
            page = await show_thread(at.services, USER, "chat-1")
            fates = {entry.text: (entry.replaced_by is not None, entry.taken_back) for entry in page.entries}
            assert fates["two"] == (True, False)
            assert fates["three"] == (True, True)
            assert fates["four"] == fates["two!"] == (False, False)
            receipt = await explain(at.services, USER, three.id)
            assert receipt.headline == ("cancelled: The message was taken back (by user). [cancelled:taken-back]")

    asyncio.run(story())


@pytest.mark.case("W17", "W13")
def test_one_message_is_promoted_into_the_turn(database: Database, tmp_path: Path) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            order = await at_work(at)
            await said(at, "two")
            three = await said(at, "three")
            queue = await steer_message(at.services, USER, three.id)
            assert [(each.text, each.code) for each in queue] == [
                ("three", "accepted:steered"),
                ("two", "accepted:queued"),
            ]
            reported = await at.report(order, steers=True)
            assert reported.steer is not None
            assert [entry.body for entry in reported.steer.entries] == ["three"]
            await at.report(order, steered=Steered(True, reported.steer.through))
            assert await texts(at) == ["two"]

    asyncio.run(story())


@pytest.mark.case("W17")
def test_the_text_of_a_new_issue_can_be_edited_before_its_agent_begins(database: Database, tmp_path: Path) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            await at.agent()
            await open_issue(at.services, USER, NewIssue("A door", "It is stuk.", assignee="ada"))
            (waiting,) = await show_queue(at.services, USER, "issue-1")
            await edit_message(at.services, USER, waiting.wake, MessageEdit("It is stuck."))
            order = await at.claim_one()
            assert ([entry.body for entry in order.entries], order.plan.act_on) == (["It is stuck."], (2,))

    asyncio.run(story())


@pytest.mark.case("W17")
def test_what_makes_no_sense_is_refused(database: Database, tmp_path: Path) -> None:
    async def story() -> None:
        async with office(database, tmp_path) as at:
            await at_work(at)
            two = await said(at, "two")
            await open_chat(at.services, USER, NewChat("ada"))
            with pytest.raises(BadRequest, match="The message is empty"):
                await edit_message(at.services, USER, two.id, MessageEdit("  "))
            with pytest.raises(BadRequest, match="is not of chat-2"):
                await order_queue(at.services, USER, "chat-2", QueueOrder((two.id,)))
            with pytest.raises(BadRequest, match="0 wakes are named"):
                await order_queue(at.services, USER, "chat-1", QueueOrder(()))
            with pytest.raises(BadRequest, match="Only a person"):
                await edit_message(at.services, Outside("github", "x"), two.id, MessageEdit("x"))
            await poke(at.services, USER, Poke("ada", "chat-1"))
            silent, _ = await show_queue(at.services, USER, "chat-1")
            with pytest.raises(NotAMessage, match=r"The wake \(manual\) has no message"):
                await steer_message(at.services, USER, silent.wake)

    asyncio.run(story())
