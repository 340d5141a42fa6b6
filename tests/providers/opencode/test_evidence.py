"""Whether the real OpenCode took a prompt, asked of its own database: in every way in which a prompt can go astray."""

import asyncio
import os
import signal
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest

from clew.kernel import Cursor, Evidence, NativeId
from clew.ports.events import Done, Ending, ErrorCode, Event, Failed, Text, ToolStarted
from clew.providers.opencode.messages import message_id
from tests.providers.contract.stage import eventually
from tests.providers.opencode.evidence_kit import Prompt, answer_within, heard, new_id, seen_by_model, told
from tests.providers.opencode.kit import Lab, hurry, rest, turn, upto
from tests.providers.opencode.proxy import Spoil, between

POST = r"POST /session/\w+/prompt_async"
READ_FIRST = r"GET /session/\w+"


def database(lab: Lab, home: str = "a") -> Path:
    return Path(lab.at(home)._store)  # noqa: SLF001 - as the provider itself finds it


# ---------------------------------------------------------------- what went well


@pytest.mark.case("C35", "L13")
def test_a_finished_turn_gives_its_reply_also_when_no_server_runs(lab: Lab) -> None:
    async def scene() -> None:
        one, two = Prompt("SAY: same words"), Prompt("SAY: same words")
        session = await lab.open()
        replies = [(await told(session, one)).reply, (await told(session, two)).reply]
        never = Prompt("SAY: same words")
        for alive in (True, False):
            if not alive:
                lab.rig.kill("a")
            answers = [await heard(lab, session.address, each) for each in (one, two, never)]
            assert [answer.evidence for answer in answers] == [Evidence.FINISHED, Evidence.FINISHED, Evidence.UNSENT]
            assert [answer.reply for answer in answers[:2]] == replies == ["same words"] * 2

    lab.play(scene())


@pytest.mark.case("P19")
def test_prompts_keep_their_order_whenever_their_ids_were_made(lab: Lab) -> None:
    async def scene() -> None:
        session, now = await lab.open(), time.time()
        # Two in one millisecond, one made long before it goes out, one by a clock that is ahead.
        for number, at in enumerate((now, now, now - 3600, now + 3600, None)):
            turned = await told(session, Prompt(f"prompt {number}", new_id(at)))
            assert (turned.seen.users, turned.seen.last) == (number + 1, f"prompt {number}")
        assert lab.model.work[-1].prompts == tuple(f"prompt {number}" for number in range(5))
        roles = [each["info"]["role"] for each in await lab.messages(_cursor(session.cursor))]
        assert roles == ["user", "assistant"] * 5

    lab.play(scene())


@pytest.mark.case("P19", "C35")
def test_words_within_a_turn_are_told_apart_and_their_replies_are_the_turns(lab: Lab) -> None:
    async def scene() -> None:
        session = await lab.open()
        first, second = Prompt("SLOW: 1\nSAY: the first answer"), Prompt("SAY: the second answer")
        events = session.turn(first.text, first.id)
        await upto(events, Text)
        assert (await heard(lab, session.address, first)).evidence is Evidence.UNKNOWN, "a turn is going on"
        assert await session.steer(second.text, second.id)
        turned = await rest(events)
        answers = [await heard(lab, session.address, each) for each in (first, second)]
        assert [answer.evidence for answer in answers] == [Evidence.FINISHED] * 2
        assert [answer.reply for answer in answers] == [turned.reply, "the second answer"]
        # Told while a tool runs, its answer is the only one, and both prompts have it.
        first, second = Prompt("RUN: sleep 1\nSAY: never said"), Prompt("SAY: said instead")
        events = session.turn(first.text, first.id)
        await upto(events, ToolStarted)
        assert await session.steer(second.text, second.id)
        turned = await rest(events)
        answers = [await heard(lab, session.address, each) for each in (first, second)]
        assert [(each.evidence, each.reply) for each in answers] == [(Evidence.FINISHED, turned.reply)] * 2

    lab.play(scene())


# ---------------------------------------------------------------- the server dies


@pytest.mark.proof
@pytest.mark.case("P19", "L13")
@pytest.mark.parametrize("seconds", [0.0, 0.03, 0.2])
@pytest.mark.parametrize("resumed", [False, True], ids=["new", "resumed"])
def test_a_server_killed_just_after_the_post_tells_the_truth(lab: Lab, resumed: bool, seconds: float) -> None:
    """Whether it was taken by then differs from try to try. The model's log and the next turn are the witnesses."""

    async def scene() -> None:
        session = await lab.open(await lab.begun("first") if resumed else None)
        prompt = Prompt(f"SLOW: 0.3\nSAY: word {time.time()}")
        killing = asyncio.create_task(_kill_after(lab, session, seconds))
        turned = await told(session, prompt)
        await killing
        answer = await heard(lab, session.address, prompt)
        assert answer.evidence is not Evidence.UNKNOWN, answer
        assert (turned.done.ending, turned.failed.retryable) == (Ending.FAILED, True)
        held = answer.evidence is not Evidence.UNSENT
        assert held or not seen_by_model(lab, prompt.text), "the model saw what was called unsent"
        await session.close()
        await lab.goes_on(_cursor(session.address), f"next {time.time()}")
        assert lab.model.work[-1].prompts.count(prompt.text) == int(held), (answer, lab.model.work[-1].prompts)

    lab.play(scene())


@pytest.mark.case("P19", "L13")
def test_a_prompt_that_the_model_was_asked_and_has_not_answered_is_taken(lab: Lab) -> None:
    async def scene() -> None:
        session, prompt = await lab.open(), Prompt(f"anything {time.time()}")
        lab.model.hang(mute=True)
        telling = asyncio.create_task(rest(session.turn(prompt.text, prompt.id)))
        assert await eventually(lambda: seen_by_model(lab, prompt.text) == 1, 30)
        lab.rig.kill("a")
        assert (await telling).failed.code is ErrorCode.PROGRAM_ENDED
        lab.model.ok()
        assert (await heard(lab, session.address, prompt)).evidence is Evidence.TAKEN
        # What comes later is not its answer.
        assert (await told(session, Prompt("SAY: on"))).reply == "on"
        assert (await heard(lab, session.address, prompt)).evidence is Evidence.TAKEN

    lab.play(scene())


@pytest.mark.case("P19", "L13")
@pytest.mark.parametrize(("text", "kind"), [("HANG", Text), ("RUN: sleep 30", ToolStarted)], ids=["text", "tool"])
def test_a_turn_that_is_cut_off_within_says_so(lab: Lab, text: str, kind: type[Event]) -> None:
    async def scene() -> None:
        session, prompt = await lab.open(), Prompt(text)
        events = session.turn(prompt.text, prompt.id)
        await upto(events, kind)
        lab.rig.kill("a")
        assert (await rest(events)).failed.code is ErrorCode.PROGRAM_ENDED
        answer = await heard(lab, session.address, prompt)
        assert (answer.evidence, answer.reply) == (Evidence.CUT_OFF, ""), answer
        assert (await told(session, Prompt("SAY: on"))).reply == "on"
        assert (await heard(lab, session.address, prompt)).evidence is Evidence.CUT_OFF

    lab.play(scene())


@pytest.mark.case("P19")
def test_a_failed_and_an_interrupted_turn_are_held_by_the_session(lab: Lab) -> None:
    async def scene() -> None:
        session = await lab.open()
        lab.model.fail(401)
        failed = Prompt("will fail")
        assert (await told(session, failed)).failed.code is ErrorCode.NOT_ALLOWED
        lab.model.ok()
        answer = await heard(lab, session.address, failed)
        assert (answer.evidence, "APIError" in answer.detail) == (Evidence.TAKEN, True)
        stopped = Prompt("RUN: sleep 30")
        events = session.turn(stopped.text, stopped.id)
        await upto(events, ToolStarted)
        stopping = asyncio.create_task(session.interrupt())
        assert (await rest(events)).done.ending is Ending.INTERRUPTED
        await stopping
        assert (await heard(lab, session.address, stopped)).evidence is Evidence.CUT_OFF

    lab.play(scene())


# ---------------------------------------------------------------- the connection


@pytest.mark.proof("True")
@pytest.mark.case("P19", "L13")
@pytest.mark.parametrize("how", Spoil, ids=lambda how: how.name)
@pytest.mark.parametrize("resumed", [False, True], ids=["new", "resumed"])
def test_a_spoiled_post_fails_the_turn_and_the_session_tells_whether_it_came(
    lab: Lab, how: Spoil, resumed: bool
) -> None:
    async def scene() -> None:
        session = await lab.open(await lab.begun("first") if resumed else None)
        prompt = Prompt(f"RUN: sleep 60 # {time.time()}")
        server = await lab.at()._shared.running()  # noqa: SLF001
        async with between(server) as proxy:
            proxy.spoil(POST, how)
            answer_within(session, 1.5)
            began = time.monotonic()
            turned = await told(session, prompt)
            assert time.monotonic() - began < 20
            answer_within(session, 30.0)
        assert proxy.spoiled == 1
        assert [type(event) for event in turned.events[-2:]] == [Failed, Done]
        assert (turned.done.ending, turned.failed.retryable) == (Ending.FAILED, True)
        answer = await heard(lab, session.address, prompt)
        await asyncio.sleep(0.5)
        seen = seen_by_model(lab, prompt.text)
        if how in (Spoil.CUT_AFTER, Spoil.MUTE):
            # It may have been withdrawn in time. What did come is not going on any more.
            assert answer.evidence in (Evidence.UNSENT, Evidence.TAKEN, Evidence.CUT_OFF), answer
            assert answer.evidence is not Evidence.UNSENT or not seen
        else:
            assert (answer.evidence, seen) == (Evidence.UNSENT, 0), answer
        assert await heard(lab, session.address, prompt) == answer
        after = await told(session, Prompt("SAY: goes on"))
        assert after.reply == "goes on"
        assert lab.model.work[-1].prompts.count(prompt.text) == int(answer.evidence is not Evidence.UNSENT)

    lab.play(scene())


@pytest.mark.case("P19")
@pytest.mark.parametrize("how", [Spoil.ERROR, Spoil.HTML, Spoil.CUT_BEFORE, Spoil.DEAF], ids=lambda how: how.name)
def test_a_call_that_fails_before_the_post_is_no_reason_to_give_the_words_up(lab: Lab, how: Spoil) -> None:
    async def scene() -> None:
        session, prompt = await lab.open(), Prompt("SAY: said once")
        server = await lab.at()._shared.running()  # noqa: SLF001
        async with between(server) as proxy:
            proxy.spoil(READ_FIRST, how)
            answer_within(session, 1.5)
            turned = await told(session, prompt)
            answer_within(session, 30.0)
            assert proxy.spoiled == 1
            assert (turned.done.ending, turned.failed.retryable) == (Ending.FAILED, True)
            assert (await heard(lab, session.address, prompt)).evidence is Evidence.UNSENT
            assert (await told(session, prompt)).reply == "said once"
        assert (await heard(lab, session.address, prompt)).evidence is Evidence.FINISHED

    lab.play(scene())


@pytest.mark.case("P19")
def test_a_withdrawn_prompt_stays_out_however_late_it_comes(lab: Lab) -> None:
    async def scene() -> None:
        session, late = await lab.open(), Prompt("SAY: too late")
        await turn(session, "first")
        answer = await heard(lab, session.address, late)
        assert answer.evidence is Evidence.UNSENT
        # As a post that was on its way meanwhile.
        asked = {"messageID": message_id(late.id), "parts": [{"type": "text", "text": late.text}]}
        await (await lab.api()).prompt(_cursor(session.cursor).native_id, asked)
        await asyncio.sleep(1.0)
        assert await heard(lab, session.address, late) == answer
        assert not seen_by_model(lab, late.text)
        # Sent once more, it is wanted.
        assert (await told(session, late)).reply == "too late"
        assert seen_by_model(lab, late.text) == 1

    lab.play(scene())


@pytest.mark.case("P19")
def test_a_prompt_that_is_posted_twice_is_kept_once(lab: Lab) -> None:
    async def scene() -> None:
        session, prompt = await lab.open(), Prompt("SAY: once")
        await told(session, prompt)
        hurry(session)
        answer_within(session, 2.0)
        await told(session, prompt)
        answer_within(session, 30.0)
        assert seen_by_model(lab, prompt.text) == 1
        await told(session, Prompt("next"))
        assert lab.model.work[-1].prompts == (prompt.text, "next")

    lab.play(scene())


@pytest.mark.proof
@pytest.mark.case("P19")
@pytest.mark.parametrize("how", [Spoil.CUT_BEFORE, Spoil.CUT_AFTER, Spoil.MUTE], ids=lambda how: how.name)
def test_steered_words_whose_answer_was_lost_are_taken_or_never_come(lab: Lab, how: Spoil) -> None:
    async def scene() -> None:
        session, prompt = await lab.open(), Prompt("RUN: sleep 4\nSAY: done")
        words = Prompt("SAY: heard you")
        events = session.turn(prompt.text, prompt.id)
        await upto(events, ToolStarted)
        async with between(await lab.at()._shared.running()) as proxy:  # noqa: SLF001
            proxy.spoil(POST, how)
            answer_within(session, 1.5)
            taken = await session.steer(words.text, words.id)
            answer_within(session, 30.0)
        assert proxy.spoiled == 1
        turned = await rest(events)
        assert turned.done.ending is Ending.COMPLETED
        assert turned.reply == ("heard you" if taken else "done")
        assert taken is (how is Spoil.MUTE) or how is Spoil.CUT_AFTER, "cut just after, it may come too late or not"
        answer = await heard(lab, session.address, words)
        assert answer.evidence is (Evidence.FINISHED if taken else Evidence.UNSENT)

    lab.play(scene())


# ---------------------------------------------------------------- what cannot be told


@pytest.mark.case("P19")
def test_what_cannot_be_read_is_unknown(lab: Lab) -> None:
    async def scene() -> None:
        home, prompt = "unreadable", Prompt("SAY: here")
        session = await lab.open(home=home)
        await told(session, prompt)
        address = _cursor(session.address)
        await session.close()
        await lab.end(home)
        assert (await heard(lab, address, prompt, home)).evidence is Evidence.FINISHED
        store = database(lab, home)
        with closing(sqlite3.connect(store)) as writer:
            writer.execute("PRAGMA locking_mode = EXCLUSIVE")
            writer.execute("BEGIN EXCLUSIVE")
            began = time.monotonic()
            answer = await heard(lab, address, prompt, home)
            assert (answer.evidence, answer.able, "locked" in answer.detail) == (Evidence.UNKNOWN, True, True), answer
            assert time.monotonic() - began < 1.0
        assert (await heard(lab, address, prompt, home)).evidence is Evidence.FINISHED
        assert (await heard(lab, Cursor(1, NativeId("ses_nobody")), prompt, home)).evidence is Evidence.UNSENT
        assert (await heard(lab, Cursor(1, NativeId("../x")), prompt, home)).evidence is Evidence.UNKNOWN
        whole = store.read_bytes()
        store.write_bytes(whole[:4096] + os.urandom(len(whole) - 4096))
        assert (await heard(lab, address, prompt, home)).evidence is Evidence.UNKNOWN
        store.rename(store.with_name("elsewhere.db"))
        assert (await heard(lab, address, prompt, home)).evidence is Evidence.UNKNOWN

    lab.play(scene())


@pytest.mark.case("P19")
def test_a_server_that_does_not_answer_is_unknown_until_it_does(lab: Lab) -> None:
    async def scene() -> None:
        session, prompt = await lab.open(), Prompt("never posted")
        await turn(session, "first")
        pid = (await lab.at()._shared.running())._program.pid  # noqa: SLF001
        os.kill(pid, signal.SIGSTOP)
        try:
            assert (await heard(lab, session.address, prompt)).evidence is Evidence.UNKNOWN
        finally:
            os.kill(pid, signal.SIGCONT)
        assert (await heard(lab, session.address, prompt)).evidence is Evidence.UNSENT

    lab.play(scene())


@pytest.mark.proof
@pytest.mark.case("P19")
def test_a_message_without_its_text_is_unsent_as_no_model_sees_it(lab: Lab) -> None:
    async def scene() -> None:
        home, prompt = "textless", Prompt("lost on the way")
        session = await lab.open(home=home)
        await told(session, prompt)
        address = _cursor(session.address)
        await session.close()
        await lab.end(home)
        # As a server leaves it that is killed between the two.
        with closing(sqlite3.connect(database(lab, home))) as writer, writer:
            writer.execute("DELETE FROM part")
            writer.execute("DELETE FROM message WHERE id != ?", (message_id(prompt.id),))
        assert (await heard(lab, address, prompt, home)).evidence is Evidence.UNSENT
        turned = await lab.goes_on(address, home=home)
        assert (turned.seen.users, turned.seen.first) == (1, "next")
        await lab.end(home)

    lab.play(scene())


@pytest.mark.case("P19")
def test_what_a_person_took_back_is_theirs_to_decide(lab: Lab) -> None:
    async def scene() -> None:
        session, prompt = await lab.open(), Prompt("SAY: undone")
        await turn(session, "first")
        await told(session, prompt)
        cursor, server = _cursor(session.cursor), (await lab.api()).server
        await server.call("POST", f"/session/{cursor.native_id}/revert", {"messageID": message_id(prompt.id)})
        assert (await heard(lab, cursor, prompt)).evidence is Evidence.UNKNOWN
        assert (await turn(session, "next")).seen.users == 2
        assert (await heard(lab, cursor, prompt)).evidence is Evidence.UNKNOWN

    lab.play(scene())


async def _kill_after(lab: Lab, session: object, seconds: float) -> None:
    """After the prompt was handed over."""
    assert await eventually(lambda: getattr(getattr(session, "_turn", None), "handed", False))
    await asyncio.sleep(seconds)
    lab.rig.kill("a")


def _cursor(cursor: Cursor | None) -> Cursor:
    assert cursor is not None
    return cursor
