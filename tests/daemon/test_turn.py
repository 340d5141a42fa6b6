"""A turn: what is asked, what fails, what is stopped, and what says nothing for too long."""

import asyncio
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from clew.kernel import Answer, ApprovalId, NativeId, RunOutcome, SilenceLimits
from clew.ports.events import (
    ApprovalAsked,
    Done,
    Ending,
    ErrorCode,
    Event,
    Failed,
    QuestionAsked,
    Retrying,
    SessionNamed,
    Text,
    ToolStarted,
    Used,
)
from clew.store.operations.approvals import answer_approval
from clew.store.operations.cancel import cancel_run
from clew.store.schema.tables import agents, approvals
from tests.daemon.kit import QUICK, World, run, until, world
from tests.daemon.scripted import Session, Turn


async def furnished(there: World) -> None:
    await there.add_agent()
    there.add_thread()


async def asks(session: Session, prompt: str) -> AsyncIterator[Event]:
    session.take(prompt)
    yield SessionNamed(session.kept.id, durable=True)
    yield ApprovalAsked(ApprovalId("1"), "shell", "May I run this?", command="make")
    _, given, words = await session.answered.get()
    session.reply(given)
    yield Done(Ending.COMPLETED, f"{given}: {words}")


async def hangs(session: Session, prompt: str) -> AsyncIterator[Event]:
    session.take(prompt)
    yield SessionNamed(session.kept.id, durable=True)
    yield Text("I look at the tests", final=False)
    await session.interrupted.wait()
    yield Done(Ending.INTERRUPTED)


def fails(code: ErrorCode, retryable: bool = True, reset_at: float | None = None) -> Turn:
    async def turn(session: Session, prompt: str) -> AsyncIterator[Event]:
        session.take(prompt)
        yield SessionNamed(session.kept.id, durable=True)
        yield Text("I begin", final=False)
        yield Failed(code, "the model is overloaded", retryable, reset_at)
        yield Done(Ending.FAILED)

    return turn


@pytest.mark.case("A03")
@pytest.mark.parametrize(("given", "reply"), [(Answer.APPROVE, "approve: go on"), (Answer.DENY, "deny: go on")])
def test_what_is_asked_is_shown_and_answered_once(tmp_path: Path, given: Answer, reply: str) -> None:
    async def asks_and_works(session: Session, prompt: str) -> AsyncIterator[Event]:
        async for event in asks(session, prompt):
            if isinstance(event, Done):
                await session.loom.go_on.wait()
            yield event

    async def scene() -> None:
        async with world(tmp_path) as there:
            await furnished(there)
            there.loom.turns.append(asks_and_works)
            said = there.say("one")
            await until(lambda: len(there.rows(approvals)) == 1, "it is asked")
            (asked,) = there.rows(approvals)
            await until(lambda: there.runs()[0].state == "waiting", "the run waits")
            assert '"command": "make"' in asked.question
            there.write(lambda link: answer_approval(link, asked.id, given, "a person", "go on"))
            await until(lambda: there.runs()[0].state == "running", "it runs again")
            there.loom.go_on.set()
            row = await there.served(said)
            assert (row.state, there.said()[-1]) == ("succeeded", ("agent", reply))
            assert there.loom.answers == [("1", given, "go on")]
            (shown,) = [body for kind, body in there.log(row.id) if kind == "approval"]
            assert shown["id"] == asked.id

    run(scene())


def slips_into(other: NativeId) -> Turn:
    async def turn(session: Session, prompt: str) -> AsyncIterator[Event]:
        session.kept = session.loom.kept[other]
        session.take(prompt)
        yield Text("where am I?")
        await session.interrupted.wait()
        yield Done(Ending.INTERRUPTED)

    return turn


def test_an_agent_that_slips_into_the_session_of_another_lane_is_stopped_there(tmp_path: Path) -> None:
    async def scene() -> None:
        async with world(tmp_path) as there:
            await furnished(there)
            there.add_thread("chat-2")
            await there.tell("one")
            (pinned,) = there.sessions()
            there.loom.turns.append(slips_into(NativeId(pinned.native_id)))
            row = await there.served(there.say("two", thread="chat-2"))
            assert row.state == "failed", row.words
            assert f"Session {pinned.native_id} belongs to" in row.words
            assert [each for each in there.sessions() if each.native_id == pinned.native_id] == [pinned]
            # What was reported together with the session is kept without it.
            assert "where am I?" in [body.get("text") for _, body in there.log(row.id)]

    run(scene())


@pytest.mark.case("A03")
def test_two_agents_that_number_their_questions_alike_are_both_asked(tmp_path: Path) -> None:
    async def scene() -> None:
        async with world(tmp_path) as there:
            await there.add_agent("ada")
            await there.add_agent("bob")
            there.add_thread("chat-1")
            there.add_thread("chat-2")
            there.loom.turns += [asks, asks]
            said = [there.say("one", "ada", "chat-1"), there.say("two", "bob", "chat-2")]
            await until(lambda: len(there.rows(approvals)) == 2, "both are asked")
            for asked in there.rows(approvals):
                there.write(
                    lambda link, asked=asked: answer_approval(link, asked.id, Answer.APPROVE, "a person")  # type: ignore[misc]
                )
            assert [(await there.served(each)).state for each in said] == ["succeeded", "succeeded"]

    run(scene())


@pytest.mark.case("A03")
def test_a_question_is_answered_in_words(tmp_path: Path) -> None:
    async def wonders(session: Session, prompt: str) -> AsyncIterator[Event]:
        session.take(prompt)
        yield QuestionAsked(ApprovalId("q"), "Which one?", ("left", "right"))
        _, _, words = await session.answered.get()
        yield Done(Ending.COMPLETED, words)

    async def scene() -> None:
        async with world(tmp_path) as there:
            await furnished(there)
            there.loom.turns.append(wonders)
            said = there.say("one")
            await until(lambda: len(there.rows(approvals)) == 1, "it is asked")
            (asked,) = there.rows(approvals)
            there.write(lambda link: answer_approval(link, asked.id, Answer.APPROVE, "a person", "left"))
            await there.served(said)
            assert there.said()[-1] == ("agent", "left")

    run(scene())


@pytest.mark.case("L05")
@pytest.mark.parametrize("why", [RunOutcome.BY_USER, RunOutcome.INTERRUPTED])
def test_an_interrupt_reaches_the_agent(tmp_path: Path, why: RunOutcome) -> None:
    async def scene() -> None:
        async with world(tmp_path) as there:
            await furnished(there)
            there.loom.turns.append(hangs)
            there.say("one")
            await until(lambda: there.loom.prompts == ["one"], "it works")
            (going,) = there.runs()
            await until(lambda: there.runs()[0].state == "running", "it runs")
            there.write(lambda connection: cancel_run(connection, going.id, why))
            await until(lambda: there.run_row(going.id).state == "cancelled", "it is cancelled")
            assert there.loom.interrupts == 1
            assert there.run_row(going.id).outcome == why.code

    run(scene())


@pytest.mark.case("L05")
def test_an_agent_that_does_not_listen_is_closed(tmp_path: Path) -> None:
    async def deaf(session: Session, prompt: str) -> AsyncIterator[Event]:
        session.take(prompt)
        yield SessionNamed(session.kept.id, durable=True)
        while not session.closed:
            await asyncio.sleep(0.01)

    async def scene() -> None:
        async with world(tmp_path, replace(QUICK, interrupt=0.1)) as there:
            await furnished(there)
            there.loom.turns.append(deaf)
            said = there.say("one")
            await until(lambda: there.loom.prompts == ["one"], "it works")
            await until(lambda: there.runs()[0].state == "running", "it runs")
            there.write(lambda connection: cancel_run(connection, there.runs()[0].id))
            assert (await there.served(said)).state == "cancelled"
            assert there.loom.closed == ["loom-1"]

    run(scene())


@pytest.mark.case("L07")
def test_a_silent_run_is_flagged_then_ended_with_what_was_seen_last(tmp_path: Path) -> None:
    async def scene() -> None:
        limits = replace(QUICK, silence=SilenceLimits(flag_after=0.2, end_after=0.5))
        async with world(tmp_path, limits) as there:
            await furnished(there)
            there.loom.turns.append(hangs)
            there.say("one")
            await until(lambda: there.runs()[0].state == "failed", "it is ended")
            row = there.runs()[0]
            assert "I look at the tests" in row.words
            assert there.steps(row.id)[-3:] == ["silence", "interrupt", "evidence"]
            assert there.loom.interrupts == 1

    run(scene())


@pytest.mark.case("L07")
def test_what_is_said_of_a_silent_turn_is_when_its_provider_ends_it(tmp_path: Path) -> None:
    async def scene() -> None:
        limits = replace(QUICK, silence=SilenceLimits(flag_after=0.2, end_after=3600.0))
        async with world(tmp_path, limits) as there:
            await furnished(there)
            there.loom.ends_in = 41.0
            there.loom.turns.append(hangs)
            there.say("one")
            await until(lambda: "silence" in there.steps(there.runs()[0].id), "it is flagged")
            (words,) = [body["words"] for _, body in there.log(there.runs()[0].id) if body.get("what") == "silence"]
            assert words.endswith("The turn is ended in 41 s if nothing comes. Last: I look at the tests")
            there.write(lambda connection: cancel_run(connection, there.runs()[0].id))
            await until(lambda: there.runs()[0].state == "cancelled", "it is over")

    run(scene())


async def waits_for_its_model(session: Session, prompt: str) -> AsyncIterator[Event]:
    session.take(prompt)
    yield SessionNamed(session.kept.id, durable=True)
    yield Retrying("overloaded 529")
    await session.loom.go_on.wait()
    yield Text("There it is.")
    session.reply("There it is.")
    yield Done(Ending.COMPLETED, "There it is.")


@pytest.mark.case("L07")
def test_an_agent_that_tries_its_model_again_is_shown_as_long_as_it_does(tmp_path: Path) -> None:
    async def scene() -> None:
        async with world(tmp_path) as there:
            await furnished(there)
            there.loom.turns.append(waits_for_its_model)
            said = there.say("one")
            outage = "The model does not answer, and the agent tries again: overloaded 529"
            await until(lambda: there.waits().words == outage, "the outage is shown")
            there.loom.go_on.set()
            assert (await there.served(said)).state == "succeeded"
            assert there.waits().words != outage

    run(scene())


@pytest.mark.case("L07", "A03")
def test_who_waits_for_a_person_is_silent_with_good_cause(tmp_path: Path) -> None:
    async def scene() -> None:
        limits = replace(QUICK, silence=SilenceLimits(flag_after=0.05, end_after=0.1))
        async with world(tmp_path, limits) as there:
            await furnished(there)
            there.loom.turns.append(asks)
            said = there.say("one")
            await until(lambda: len(there.rows(approvals)) == 1, "it is asked")
            await asyncio.sleep(0.4)
            (asked,) = there.rows(approvals)
            there.write(lambda link: answer_approval(link, asked.id, Answer.APPROVE, "a person"))
            assert (await there.served(said)).state == "succeeded"

    run(scene())


@pytest.mark.case("L06")
def test_a_passing_failure_is_tried_again_in_the_same_session_and_others_are_not(tmp_path: Path) -> None:
    async def scene() -> None:
        async with world(tmp_path) as there:
            await furnished(there)
            there.loom.turns.append(fails(ErrorCode.MODEL_UNREACHABLE))
            said = there.say("one")
            await until(lambda: there.runs()[0].state == "failed", "it fails")
            assert there.runs()[0].outcome == "run:retrying"
            wake = there.wake_row(said)
            assert (wake.state, wake.not_before > time.time()) == ("pending", True)
            there.loom.turns.append(fails(ErrorCode.NOT_ALLOWED, retryable=False))
            row = await there.tell("two")
            assert (row.state, row.outcome) == ("failed", "run:gave-up")
            assert "overloaded" in row.words
            assert len(there.loom.kept) == 1

    run(scene())


@pytest.mark.case("L10")
def test_a_usage_limit_holds_until_it_is_reset(tmp_path: Path) -> None:
    async def scene() -> None:
        async with world(tmp_path) as there:
            await furnished(there)
            reset = time.time() + 3600
            there.loom.turns.append(fails(ErrorCode.USAGE_LIMIT, reset_at=reset))
            said = there.say("one")
            await until(lambda: there.runs()[0].state == "failed", "it fails")
            assert there.wake_row(said).not_before >= reset
            # A person goes earlier.
            assert (await there.tell("now")).state == "succeeded"

    run(scene())


def test_a_conversation_that_a_model_refuses_is_not_gone_on_with(tmp_path: Path) -> None:
    async def scene() -> None:
        async with world(tmp_path) as there:
            await furnished(there)
            await there.tell("one")
            there.loom.turns.append(fails(ErrorCode.BAD_REQUEST, retryable=False))
            row = await there.tell("two")
            assert row.state == "failed"
            assert there.sessions()[0].state == "poisoned"
            row = await there.tell("three")
            assert there.outcomes(row.id)[-1] == ("reseed", "session:poisoned")

    run(scene())


@pytest.mark.case("L12", "L13")
@pytest.mark.parametrize("breaks", [RuntimeError("odd"), ConnectionResetError("gone")])
def test_a_turn_that_breaks_ends_the_run_with_its_last_words(tmp_path: Path, breaks: Exception) -> None:
    async def broken(session: Session, prompt: str) -> AsyncIterator[Event]:
        session.take(prompt)
        yield Text("half a")
        raise breaks

    async def scene() -> None:
        async with world(tmp_path) as there:
            await furnished(there)
            there.loom.turns.append(broken)
            row = await there.tell("one")
            assert (row.state, row.outcome) == ("failed", "run:gave-up")
            assert str(breaks) in row.words

    run(scene())


@pytest.mark.case("A04")
def test_a_mode_changed_during_a_turn_counts_from_the_next(tmp_path: Path) -> None:
    async def scene() -> None:
        async with world(tmp_path) as there:
            await there.add_agent(mode="edit")
            there.add_thread()
            there.loom.turns.append(asks)
            said = there.say("one")
            await until(lambda: len(there.rows(approvals)) == 1, "it works")
            there.put(agents, {"id": "ada"}, mode="read")
            (asked,) = there.rows(approvals)
            there.write(lambda link: answer_approval(link, asked.id, Answer.APPROVE, "a person"))
            await there.served(said)
            assert there.loom.modes == []
            await there.tell("two")
            assert [mode.value for mode in there.loom.modes] == ["read"]
            assert there.sessions()[0].mode == "read"

    run(scene())


def test_what_a_turn_used_is_kept_with_its_session(tmp_path: Path) -> None:
    async def counts(session: Session, prompt: str) -> AsyncIterator[Event]:
        session.take(prompt)
        yield Used(10, 5)
        yield Used(100, 50)
        session.reply("x")
        yield Done(Ending.COMPLETED, "x")

    async def scene() -> None:
        async with world(tmp_path) as there:
            await furnished(there)
            there.loom.turns += [counts, counts]
            await there.tell("one")
            await there.tell("two")
            (row,) = there.sessions()
            assert (row.turns, row.tokens) == (2, 300)

    run(scene())


def test_the_parts_of_a_message_are_one_line_of_the_log(tmp_path: Path) -> None:
    async def letter_by_letter(session: Session, prompt: str) -> AsyncIterator[Event]:
        session.take(prompt)
        yield SessionNamed(session.kept.id, durable=True)
        for letter in "hello":
            yield Text(letter, final=False)
        yield Text("hello")
        yield ToolStarted("t", "shell", "ls")
        session.reply("hello")
        yield Done(Ending.COMPLETED, "hello")

    async def scene() -> None:
        async with world(tmp_path) as there:
            await furnished(there)
            there.loom.turns.append(letter_by_letter)
            row = await there.tell("one")
            texts = [body for kind, body in there.log(row.id) if kind == "text"]
            assert texts == [{"text": "hello", "final": False}, {"text": "hello", "final": True}]
            assert there.run_row(row.id).tool_ran == 1

    run(scene())
