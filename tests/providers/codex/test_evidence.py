"""Whether the real Codex took a prompt: asked of its files, and compared with what its model was asked."""

import asyncio
import json
import os
import signal
import time
import uuid
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from clew import kernel
from clew.kernel import Cursor, Evidence, PromptId, Sent, digest_of
from clew.ports.events import Ending, ErrorCode, Event, SessionNamed, Text, ToolStarted
from clew.ports.provider import Settings
from clew.providers.codex import turn as turn_module
from clew.providers.codex.provider import CodexProvider
from tests.providers.codex.kit import Lab, lines_of, turn
from tests.providers.contract.stage import Turned
from tests.providers.loopback.heard import Request
from tests.providers.rig import SECRET

UNSENT, TAKEN, CUT_OFF, FINISHED, UNKNOWN = Evidence
WORDS = "words-of-the-prompt"


def sent(prompt: str, turns: int | None = 0) -> Sent:
    return Sent(PromptId(str(uuid.uuid4())), digest_of(prompt), turns)


async def heard(lab: Lab, provider: CodexProvider, cursor: Cursor | None, one: Sent) -> kernel.Attestation:
    """As it stands, and in no time."""
    assert cursor is not None
    began = time.monotonic()
    said = await provider.heard(cursor, lab.directory(), one)
    assert time.monotonic() - began < 1.0
    assert said.detail
    assert said.able
    return said


async def follow(events: AsyncIterator[Event]) -> Turned:
    return Turned(tuple([event async for event in events]))


async def until(events: AsyncIterator[Event], kind: type[Event]) -> None:
    async for event in events:
        if isinstance(event, kind):
            return
    raise AssertionError(f"no {kind.__name__} came")


def asked(lab: Lab, words: str) -> list[Request]:
    """The requests to the model in which these words were."""
    return [request for request in lab.model.requests if words in json.dumps(request.body)]


def freeze(lab: Lab) -> None:
    """The program takes nothing in any more; a prompt stays in the pipe."""
    for pid in lab.rig.staying("a"):
        os.kill(pid, signal.SIGSTOP)


async def is_shown(lab: Lab, cursor: Cursor, words: str) -> bool:
    """Whether a model is shown these words once the session goes on."""
    await lab.goes_on(lab.provider(), cursor, "what was said before?")
    return words in json.dumps(lab.model.work[-1].body)


@pytest.mark.case("P19")
@pytest.mark.parametrize("how", ["new", "warm", "resumed"])
def test_a_prompt_that_codex_did_not_read_was_not_taken(lab: Lab, how: str) -> None:
    async def scene() -> None:
        provider = lab.provider()
        cursor = await lab.begun(provider, "before") if how == "resumed" else None
        session = await lab.open(provider, cursor)
        if how == "warm":
            await turn(session, "before")
        address, one = session.address, sent(WORDS, 0 if how == "new" else 1)
        assert (session.cursor is None) is (how == "new"), "a new thread has no file before its first turn"
        freeze(lab)
        going = asyncio.create_task(follow(session.turn(WORDS, one.id)))
        await asyncio.sleep(0.3)
        assert address is not None
        assert (await lab.provider().heard(address, lab.directory(), one)).evidence is UNKNOWN, "it may still read it"
        assert (await provider.heard(address, lab.directory(), one)).evidence is UNKNOWN
        lab.rig.kill("a")
        turned = await going
        assert turned.done.ending is Ending.FAILED
        assert turned.failed.code is ErrorCode.PROGRAM_ENDED
        assert (await heard(lab, provider, address, one)).evidence is UNSENT
        await session.close()
        assert (await heard(lab, lab.provider(), address, one)).evidence is UNSENT
        assert not asked(lab, WORDS)
        if how != "new":
            assert not await is_shown(lab, address, WORDS)

    lab.play(scene())


@pytest.mark.case("P19")
def test_one_that_was_not_answered_in_time_says_nothing_of_the_prompt(lab: Lab) -> None:
    def hasty(settings: Settings) -> Settings:
        return replace(settings, deadlines=replace(settings.deadlines, answer=0.5, close=0.5))

    async def scene() -> None:
        provider = lab.provider(change=hasty)
        cursor = await lab.begun(lab.provider(), "before")
        session, one = await lab.open(provider, cursor), sent(WORDS, 1)
        freeze(lab)
        failed = (await follow(session.turn(WORDS, one.id))).failed
        assert failed.code is ErrorCode.TOO_SLOW
        assert "was handed the prompt" in failed.words
        assert (await heard(lab, provider, cursor, one)).evidence is UNSENT

    lab.play(scene())


@pytest.mark.case("P19")
@pytest.mark.parametrize("how", ["fails", "refuses", "is down"])
def test_a_prompt_whose_model_gave_no_answer_was_taken(lab: Lab, how: str) -> None:
    def impatient(settings: Settings) -> Settings:
        return replace(settings, deadlines=replace(settings.deadlines, silence=2.0))

    async def scene() -> None:
        provider = lab.provider(change=impatient)
        session, one = await lab.open(provider), sent(WORDS)
        if how == "is down":
            lab.model.down()
        else:
            lab.model.fail(500 if how == "fails" else 400)
        assert (await turn(session, WORDS, id_=one.id)).done.ending is Ending.FAILED
        lab.model.up()
        lab.model.ok()
        assert (await heard(lab, provider, session.cursor, one)).evidence is TAKEN, "by the one that has it open"
        assert session.cursor is not None
        assert (await lab.provider().heard(session.cursor, lab.directory(), one)).evidence is UNKNOWN, "by another"
        cursor = session.cursor
        await session.close()
        assert (await heard(lab, lab.provider(), cursor, one)).evidence is TAKEN
        assert await is_shown(lab, cursor, WORDS)

    lab.play(scene())


@pytest.mark.case("P19")
@pytest.mark.parametrize("end", ["killed", "interrupted"])
@pytest.mark.parametrize(
    ("prompt", "moment", "evidence"),
    [
        (f"{WORDS}\nRUN: sleep 30", ToolStarted, CUT_OFF),
        (f"{WORDS}\nRUN: echo one\nSLOW: 20", Text, CUT_OFF),
        # What it had said by then is in no file: Codex writes an answer down when it is whole.
        (f"{WORDS}\nSLOW: 20", Text, TAKEN),
        (f"{WORDS}\nHANG", SessionNamed, TAKEN),
    ],
)
def test_a_turn_that_was_cut_off_is_known(
    lab: Lab, prompt: str, moment: type[Event], evidence: Evidence, end: str
) -> None:
    async def scene() -> None:
        provider = lab.provider()
        session, one = await lab.open(provider), sent(prompt)
        events = session.turn(prompt, one.id)
        await until(events, moment)
        lab.model.wait()
        if end == "killed":
            lab.rig.kill("a")
        else:
            await session.interrupt()
        turned = await follow(events)
        assert turned.done.ending is not Ending.COMPLETED
        cursor = session.cursor
        await session.close()
        said = await heard(lab, lab.provider(), cursor, one)
        assert (said.evidence, said.reply) == (evidence, "")
        assert cursor is not None
        assert await is_shown(lab, cursor, WORDS)

    lab.play(scene())


@pytest.mark.case("P19", "C35")
@pytest.mark.parametrize("how", ["new", "resumed", "forked", "set away"])
def test_a_finished_reply_is_read_back(lab: Lab, how: str) -> None:
    async def scene() -> None:
        provider = lab.provider()
        cursor = await lab.begun(provider, "before") if how != "new" else None
        session = await lab.open(provider, cursor, fork=how == "forked")
        prompt = f"{WORDS}\nRUN: echo a && echo b\nSAY: it is {SECRET['CONTRACT_TOKEN']}, done"
        one, later = sent(prompt, 0 if how == "new" else 1), sent("later", 2)
        turned = await turn(session, prompt, id_=one.id)
        assert turned.done.ending is Ending.COMPLETED
        lab.rig.kill("a")
        cursor = session.cursor
        await session.close()
        if how == "set away":
            await lab.raw("thread/archive", {"threadId": cursor.native_id if cursor else ""})
        said = await heard(lab, lab.provider(), cursor, one)
        assert said.evidence is FINISHED
        assert said.reply == turned.reply
        assert said.reply.startswith("it is ")
        assert SECRET["CONTRACT_TOKEN"] not in said.reply
        assert (await heard(lab, lab.provider(), cursor, later)).evidence is UNSENT

    lab.play(scene())


@pytest.mark.case("P19")
def test_no_model_is_shown_the_id(lab: Lab) -> None:
    async def scene() -> None:
        session, one, other = await lab.open(lab.provider()), sent(WORDS), sent("steered")
        events = session.turn(f"{WORDS}\nRUN: sleep 1", one.id)
        await until(events, ToolStarted)
        assert await session.steer("steered", other.id)
        await follow(events)
        await turn(session, "after")
        (path,) = lab.rollouts()
        for each in (one, other):
            assert each.id in path.read_text("utf-8"), "Codex keeps it"
            assert not asked(lab, each.id)
            assert not any(each.id in value for request in lab.model.requests for value in request.headers.values())

    lab.play(scene())


@pytest.mark.case("P19")
@pytest.mark.parametrize("end", ["killed", "interrupted", "finished"])
def test_words_for_a_going_turn_were_taken_or_not(lab: Lab, end: str) -> None:
    async def scene() -> None:
        provider = lab.provider()
        session, prompt, words = await lab.open(provider), sent("RUN: sleep 2"), sent("steered")
        events = session.turn("RUN: sleep 2" if end == "finished" else "RUN: sleep 30", prompt.id)
        await until(events, ToolStarted)
        telling = asyncio.create_task(session.steer("steered", words.id))
        await asyncio.sleep(0.3)
        if end == "killed":
            lab.rig.kill("a")
        elif end == "interrupted":
            await session.interrupt()
        turned = await follow(events)
        assert await telling is (end == "finished")
        cursor = session.cursor
        await session.close()
        said = await heard(lab, lab.provider(), cursor, words)
        assert said.evidence is (FINISHED if end == "finished" else UNSENT)
        assert said.reply == (turned.reply if end == "finished" else "")
        assert (await heard(lab, lab.provider(), cursor, prompt)).evidence is (
            FINISHED if end == "finished" else CUT_OFF
        )
        assert bool(asked(lab, "steered")) is (end == "finished")

    lab.play(scene())


@pytest.mark.case("P19")
def test_words_after_which_nothing_came_were_taken(lab: Lab) -> None:
    async def scene() -> None:
        provider = lab.provider()
        session, prompt, words = await lab.open(provider), sent("RUN: sleep 1"), sent("steered\nHANG")
        events = session.turn("RUN: sleep 1", prompt.id)
        await until(events, ToolStarted)
        assert await session.steer("steered\nHANG", words.id)
        lab.model.wait(2)
        lab.rig.kill("a")
        await follow(events)
        assert (await heard(lab, provider, session.cursor, words)).evidence is TAKEN
        assert (await heard(lab, provider, session.cursor, prompt)).evidence is CUT_OFF

    lab.play(scene())


@pytest.mark.case("P19")
def test_two_prompts_of_the_same_text_are_told_apart(lab: Lab) -> None:
    async def scene() -> None:
        provider = lab.provider()
        session = await lab.open(provider)
        first, second, third = sent("go on", 0), sent("go on", 1), sent("go on", 2)
        await turn(session, "go on", id_=first.id)
        lab.model.fail(500)
        await turn(session, "go on", id_=second.id)
        lab.model.ok()
        freeze(lab)
        going = asyncio.create_task(follow(session.turn("go on", third.id)))
        await asyncio.sleep(0.3)
        lab.rig.kill("a")
        await going
        said = [(await heard(lab, provider, session.address, each)).evidence for each in (first, second, third)]
        assert said == [FINISHED, TAKEN, UNSENT]

    lab.play(scene())


# Where a history may end when its program is killed, or the machine: so many lines from that of the text, and how much
# of the last one is lost; and what is said of the prompt then.
CUTS = {
    "behind the text": (1, 0, TAKEN),
    "before the end of the text's line": (1, 1, TAKEN),
    "in the text": (1, 30, UNKNOWN),
    "in the id": (2, 30, TAKEN),
    "behind the id": (2, 0, TAKEN),
    "before the text": (0, 0, UNSENT),
    "before the turn": (-2, 0, UNSENT),
    "in the turn's beginning": (-1, 30, UNKNOWN),
}


@pytest.mark.case("P19")
@pytest.mark.parametrize("where", CUTS)
def test_what_is_said_of_a_torn_history_is_what_codex_makes_of_it(lab: Lab, where: str) -> None:
    async def scene() -> None:
        provider = lab.provider()
        session, one = await lab.open(provider), sent(WORDS, 1)
        await turn(session, "before")
        await turn(session, WORDS, id_=one.id)
        cursor = session.cursor
        await session.close()
        (path,) = lab.rollouts()
        at = next(n for n, line in enumerate(lines_of(path)) if line["type"] == "response_item" and WORDS in str(line))
        count, lost, evidence = CUTS[where]
        kept = b"".join(path.read_bytes().splitlines(keepends=True)[: at + count])
        left = kept[: len(kept) - lost]
        # In another home, where nothing else remembers the turn.
        there = lab.root("b") / path.relative_to(lab.root("a"))
        there.parent.mkdir(parents=True)
        there.write_bytes(left)
        said = await heard(lab, lab.provider("b"), cursor, one)
        assert said.evidence is evidence
        assert cursor is not None
        goes_on = lab.provider("b")
        await lab.goes_on(goes_on, cursor, "after")
        shown = WORDS in json.dumps(lab.model.work[-1].body)
        assert shown is (evidence is TAKEN)
        assert there.read_bytes().startswith(left), "Codex goes on behind what was torn"
        assert (await heard(lab, goes_on, cursor, one)).evidence is evidence, "and it is said of it later as well"

    lab.play(scene())


@pytest.mark.case("P19")
def test_what_another_program_has_open_is_not_known(lab: Lab) -> None:
    async def scene() -> None:
        provider, one = lab.provider(), sent(WORDS)
        session = await lab.open(provider)
        await turn(session, WORDS, id_=one.id)
        cursor = session.cursor
        await session.close()
        assert cursor is not None
        end = await lab.holding(cursor)
        said = await heard(lab, provider, cursor, one)
        assert said.evidence is UNKNOWN
        assert "open in another program" in said.detail
        await end()
        assert (await heard(lab, provider, cursor, one)).evidence is FINISHED

    lab.play(scene())


@pytest.mark.case("P19")
def test_what_was_rewound_is_not_called_unsent(lab: Lab) -> None:
    async def scene() -> None:
        provider = lab.provider()
        session = await lab.open(provider)
        kept, gone, never = sent("kept", 0), sent("gone", 1), sent("never", 1)
        await turn(session, "kept", id_=kept.id)
        await turn(session, "gone", id_=gone.id)
        cursor = session.cursor
        await session.close()
        assert cursor is not None
        await rewind(cursor)
        assert (await heard(lab, provider, cursor, kept)).evidence is FINISHED
        assert (await heard(lab, provider, cursor, gone)).evidence is UNKNOWN
        assert (await heard(lab, provider, cursor, never)).evidence is UNSENT
        assert not await is_shown(lab, cursor, "gone")

    async def rewind(cursor: Cursor) -> None:
        turns = (await lab.raw("thread/turns/list", {"threadId": cursor.native_id, "sortDirection": "asc"}))["data"]
        program, peer = await lab.client("a")
        await peer.call("thread/resume", {"threadId": cursor.native_id}, 30)
        await peer.call("thread/revert", {"threadId": cursor.native_id, "beforeTurnId": turns[1]["id"]}, 30)
        await program.end(5)
        await peer.close()

    lab.play(scene())


@pytest.mark.case("P19")
@pytest.mark.parametrize("end", ["completed", "interrupted"])
def test_what_codex_took_and_did_not_write_is_not_called_unsent(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, end: str
) -> None:
    """As on a full disk: Codex goes on, and the file knows nothing of it."""
    monkeypatch.setattr(turn_module, "_WRITING", 0.2)

    async def scene() -> None:
        provider, prompt = lab.provider(), WORDS if end == "completed" else f"{WORDS}\nRUN: sleep 30"
        session, one, other = await lab.open(provider), sent(prompt, 1), sent("other", 1)
        await turn(session, "before")
        (path,) = lab.rollouts()
        elsewhere = path.with_name("elsewhere")
        path.rename(elsewhere)
        path.write_bytes(elsewhere.read_bytes())
        events = session.turn(prompt, one.id)
        if end == "interrupted":
            await until(events, ToolStarted)
            await session.interrupt()
        turned = await follow(events)
        if end == "completed":
            assert "could not write the turn" in turned.failed.words
        await session.close()
        assert (await heard(lab, provider, session.address, one)).evidence is UNKNOWN
        assert (await heard(lab, provider, session.address, other)).evidence is UNSENT

    lab.play(scene())
