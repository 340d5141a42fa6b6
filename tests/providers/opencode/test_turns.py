"""Turns of the real OpenCode: questions, failures told in its own way, and what a killed server leaves."""

import asyncio
import time
from dataclasses import replace
from pathlib import Path

import pytest

from clew.kernel import Answer
from clew.ports.events import (
    Ending,
    ErrorCode,
    PlanChanged,
    QuestionAsked,
    Text,
    Thought,
    ToolFinished,
    ToolStarted,
    Used,
)
from clew.programs.faults import Refused
from clew.providers.opencode.faults import ModelUnknown
from tests.providers.contract.stage import eventually
from tests.providers.opencode.kit import FULL, SILENCE, Lab, call, hurry, path, rest, turn, upto

WHICH = {"question": "Which?", "header": "h", "options": [{"label": "One", "description": "1"}]}
WHY = {"question": "Why?", "header": "h", "options": []}


def rounded(used: Used | None) -> Used:
    assert used is not None
    assert used.cost is not None
    return replace(used, cost=round(used.cost, 9))


def test_a_question_is_asked_and_its_answer_reaches_the_agent(lab: Lab) -> None:
    async def scene() -> None:
        session = await lab.open()
        events = session.turn(call("question", questions=[WHICH, WHY]))
        which = await upto(events, QuestionAsked)
        why = await upto(events, QuestionAsked)
        assert (which.words, which.choices, why.words) == ("Which?", ("One",), "Why?")
        following = asyncio.create_task(rest(events))
        assert await session.answer(which.id, Answer.APPROVE, "One")
        assert not await session.answer(which.id, Answer.APPROVE, "One")
        assert await session.answer(why.id, Answer.APPROVE, "because")
        turned = await following
        assert '"Which?"="One", "Why?"="because"' in turned.reply

    lab.play(scene())


def test_a_question_that_is_refused_ends_what_it_was_asked_for(lab: Lab) -> None:
    async def scene() -> None:
        session = await lab.open()
        events = session.turn(call("question", questions=[WHICH]))
        asked = await upto(events, QuestionAsked)
        assert await session.answer(asked.id, Answer.DENY)
        turned = await rest(events)
        (finished,) = turned.of(ToolFinished)
        assert not finished.ok
        assert (await turn(session, "and on")).seen.users == 2

    lab.play(scene())


def test_plans_and_thoughts_are_told_and_usage_is_of_the_turn(lab: Lab) -> None:
    async def scene() -> None:
        session = await lab.open()
        todos = [{"content": "the first step", "status": "pending", "priority": "high"}]
        turned = await turn(session, call("todowrite", todos=todos) + "\nTHINK: let me see")
        assert turned.of(PlanChanged)[-1].steps == (("the first step", "pending"),)
        assert [thought.text for thought in turned.of(Thought)] == ["let me see"]
        assert rounded(turned.used) == Used(160, 14, 40, 0.000188)
        assert rounded((await turn(session, "next")).used) == Used(80, 7, 20, 0.000094)

    lab.play(scene())


@pytest.mark.case("C22")
def test_an_unknown_model_is_refused_before_it_sticks(lab: Lab) -> None:
    async def scene() -> None:
        cursor = await lab.begun("first")
        with pytest.raises(ModelUnknown):
            await lab.open(cursor, model="loopback/nobody")
        with pytest.raises(ModelUnknown):
            await lab.open(model="loopback-1")
        session = await lab.open(cursor)
        with pytest.raises(ModelUnknown):
            await session.set_model("nobody/nothing")
        assert (await turn(session, "next")).seen.users == 2

    lab.play(scene())


@pytest.mark.case("S04", "S13")
def test_the_session_of_a_subagent_is_no_session_to_open(lab: Lab) -> None:
    async def scene() -> None:
        cursor = await lab.begun(call("task", description="d", prompt="SAY: hi", subagent_type="general"))
        (child,) = await (await lab.api()).children(cursor.native_id)
        listed = {found.cursor.native_id for found in await lab.at().sessions()}
        assert cursor.native_id in listed
        assert child["id"] not in listed
        with pytest.raises(Refused):
            await lab.open(type(cursor)(1, child["id"]))

    lab.play(scene())


@pytest.mark.case("L06")
def test_a_model_that_comes_back_during_the_retries_ends_the_turn_well(lab: Lab) -> None:
    async def scene() -> None:
        session = await lab.open()
        lab.model.fail(500, times=1)
        turned = await turn(session, "first")
        assert turned.done.ending is Ending.COMPLETED
        assert turned.seen.users == 1

    lab.play(scene())


@pytest.mark.case("L06", "L07")
def test_a_model_that_hangs_is_ended_in_time_and_the_session_goes_on(lab: Lab) -> None:
    async def scene() -> None:
        session = await lab.open()
        await turn(session, "first")
        hurry(session)
        began = time.monotonic()
        turned = await turn(session, "HANG")
        assert turned.done.ending is Ending.FAILED
        assert turned.failed.code is ErrorCode.TOO_SLOW
        assert time.monotonic() - began < 15
        assert (await turn(session, "next")).seen.last == "next"

    lab.play(scene())


@pytest.mark.case("L06", "L10")
@pytest.mark.parametrize(
    ("status", "code"),
    [pytest.param(500, ErrorCode.MODEL_FAILED, marks=pytest.mark.proof), (429, ErrorCode.USAGE_LIMIT)],
)
def test_retries_without_end_are_ended_and_stay_so(lab: Lab, status: int, code: ErrorCode) -> None:
    async def scene() -> None:
        session = await lab.open()
        await turn(session, "first")
        hurry(session)
        lab.model.fail(status)
        turned = await turn(session, "second")
        assert (turned.failed.code, turned.failed.retryable) == (code, True)
        asked = len(lab.model.work)
        await asyncio.sleep(2 * SILENCE)
        assert len(lab.model.work) == asked, "it goes on trying"
        lab.model.ok()
        assert (await turn(session, "third")).seen.last == "third"

    lab.play(scene())


@pytest.mark.case("L12", "P12", "L11")
def test_a_server_killed_in_a_tool_is_told_and_the_tool_is_gone(lab: Lab) -> None:
    async def scene() -> None:
        here = lab.new_directory()
        session, other = await lab.open(directory=here), await lab.open(directory=here)
        await turn(session, "first")
        await turn(other, "of another session")
        begun, ended = path(here, "begun"), path(here, "ended")
        events = session.turn(f"RUN: touch {begun}; sleep 3; touch {ended}")
        await upto(events, ToolStarted)
        following = asyncio.create_task(rest(events))
        assert await eventually(begun.exists)
        lab.rig.kill("a")
        turned = await following
        assert turned.failed.code is ErrorCode.PROGRAM_ENDED
        assert [finished.ok for finished in turned.of(ToolFinished)] == [False]
        # The other session goes on in a new server, and so does this one, which says what was cut off.
        assert (await turn(other, "still there")).seen.users == 2
        cursor = session.cursor
        await session.close()
        again = await lab.open(cursor, directory=here)
        assert again.landing.turns == 2
        turned = await turn(again, "after")
        assert turned.seen.first == "first"
        (left,) = turned.of(ToolFinished)
        assert "cut off" in left.output
        assert not (await turn(again, "and on")).of(ToolFinished)
        await asyncio.sleep(max(0.0, 3.2 - (time.time() - begun.stat().st_mtime)))
        assert not ended.exists()

    lab.play(scene())


@pytest.mark.case("L12", "P12")
def test_a_server_killed_in_an_answer_is_told_and_the_session_goes_on(lab: Lab) -> None:
    async def scene() -> None:
        session = await lab.open()
        await turn(session, "first")
        events = session.turn("HANG")
        await upto(events, Text)
        lab.rig.kill("a")
        turned = await rest(events)
        assert turned.failed.code is ErrorCode.PROGRAM_ENDED
        assert turned.failed.retryable
        turned = await turn(session, "after")
        assert (turned.seen.first, turned.seen.last) == ("first", "after")

    lab.play(scene())


def test_a_closed_session_leaves_nothing_of_its_own_running(lab: Lab) -> None:
    async def scene() -> None:
        here = lab.new_directory()
        one, two = await lab.open(directory=here), await lab.open(directory=here)
        for session, name in ((one, "one"), (two, "two")):
            pid = path(here, name)
            await turn(session, f"RUN: setsid sleep 300 >/dev/null 2>&1 </dev/null & echo $! > {pid}; sleep 0.1")
        pids = [int(path(here, name).read_text()) for name in ("one", "two")]
        assert list(lab.state("a").rglob(".*.so")), "what its server unpacks goes with it"
        await one.close()
        assert await eventually(lambda: not Path(f"/proc/{pids[0]}").exists())
        assert Path(f"/proc/{pids[1]}").exists(), "what another session runs is not touched"
        await two.close()
        assert await eventually(lambda: not Path(f"/proc/{pids[1]}").exists())

    lab.play(scene())


@pytest.mark.case("P06")
def test_a_turn_that_nobody_follows_any_more_is_ended(lab: Lab) -> None:
    async def scene() -> None:
        here = lab.new_directory()
        session = await lab.open(directory=here, mode=FULL)
        events = session.turn(f"RUN: sleep 2; touch {path(here, 'ran')}")
        await upto(events, ToolStarted)
        await events.aclose()  # type: ignore[attr-defined]
        assert (await turn(session, "next")).done.ending is Ending.COMPLETED
        await asyncio.sleep(2.2)
        assert not path(here, "ran").exists()

    lab.play(scene())
