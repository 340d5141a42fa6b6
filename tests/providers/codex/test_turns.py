"""Turns: questions, what was used, and turns that nobody follows to their end."""

import asyncio
import contextlib
import os
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from clew.kernel import Answer
from clew.ports.events import ApprovalAsked, Done, Ending, ErrorCode, Event, QuestionAsked, Text, Thought, Used
from clew.ports.provider import OpenSpec, Settings
from clew.programs.faults import Refused, TooSlow
from clew.programs.locks import SessionLock
from clew.programs.rpc import CallRefused
from clew.providers.codex import locks
from clew.providers.codex.server import AppServer, Json
from tests.providers.codex.kit import ASK, FULL, Lab, quick, turn
from tests.providers.contract.stage import eventually

QUESTIONS = (
    'CALL: request_user_input {"questions": ['
    '{"id": "colour", "header": "Colour", "question": "Which colour?", "options": ['
    '{"label": "red", "description": "r"}, {"label": "blue", "description": "b"}]},'
    '{"id": "size", "header": "Size", "question": "Which size?", "options": ['
    '{"label": "small", "description": "s"}, {"label": "large", "description": "l"}]}]}'
)


@pytest.mark.case("A03", "P17")
def test_a_question_is_told_with_its_choices_and_answered_in_words(lab: Lab) -> None:
    lab.configure("\n[features]\ndefault_mode_request_user_input = true\n")

    async def scene() -> None:
        session = await lab.open(lab.provider())
        asked: list[QuestionAsked] = []
        events: list[Event] = []
        async for event in session.turn(QUESTIONS):
            events.append(event)
            if isinstance(event, QuestionAsked):
                asked.append(event)
            if len(asked) == 2 and not isinstance(event, Text):
                with contextlib.suppress(IndexError):
                    for question, words in ((asked[0], "blue"), (asked[1], "large")):
                        await session.answer(question.id, Answer.APPROVE, words)
        assert [question.words for question in asked] == ["Which colour?", "Which size?"]
        assert asked[0].choices == ("red", "blue")
        reply = getattr(events[-1], "reply", "")
        assert "blue" in reply
        assert "large" in reply

    lab.play(scene())


def test_what_a_turn_used_is_its_own_also_after_a_restart(lab: Lab) -> None:
    async def scene() -> None:
        cursor = await lab.begun(lab.provider())
        session = await lab.open(lab.provider(), cursor)
        first, second = [(await turn(session, "again")).used for _ in range(2)]
        assert first == second == Used(input=100, output=7, cached=20)
        # Two requests to the model, one turn.
        assert (await turn(session, "RUN: true")).used == Used(input=200, output=14, cached=40)

    lab.play(scene())


def test_what_it_thinks_is_told(lab: Lab) -> None:
    async def scene() -> None:
        session = await lab.open(lab.provider())
        assert [each.text for each in (await turn(session, "THINK: deep thoughts")).of(Thought)] == ["deep thoughts"]

    lab.play(scene())


@pytest.mark.case("L05", "P06")
@pytest.mark.parametrize("how", ["left", "cancelled"])
def test_a_turn_that_nobody_follows_any_more_is_ended(lab: Lab, how: str) -> None:
    async def scene() -> None:
        session = await lab.open(lab.provider())
        begun, ended = lab.file("begun"), lab.file("ended")
        events = session.turn(f"RUN: touch {begun}; sleep 2; touch {ended}")

        async def follow() -> None:
            async for _ in events:
                pass

        following = asyncio.create_task(follow())
        assert await eventually(begun.exists)
        following.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await following
        if how == "left":
            await events.aclose()  # type: ignore[attr-defined]
        assert (await turn(session, "after")).done.ending is Ending.COMPLETED
        await asyncio.sleep(2.2)
        assert not ended.exists()

    lab.play(scene())


def test_a_turn_that_is_left_at_its_end_does_not_bar_the_next(lab: Lab) -> None:
    async def scene() -> None:
        session = await lab.open(lab.provider())
        events = session.turn("first")
        async for event in events:
            if isinstance(event, Done):
                break
        assert (await turn(session, "second")).seen.users == 2

    lab.play(scene())


@pytest.mark.case("P06")
def test_a_fork_that_is_called_off_leaves_no_file(lab: Lab) -> None:
    async def scene() -> None:
        provider = lab.provider()
        cursor = await lab.begun(provider)
        before = lab.rollouts()
        for part in (0.0, 0.05, 0.1, 0.15, 0.2, 0.3):
            opening = asyncio.create_task(lab.open(provider, cursor, fork=True, mode=FULL))
            await asyncio.sleep(part)
            if opening.done():
                break
            opening.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await opening
            assert lab.rollouts() == before

    lab.play(scene())


@pytest.mark.case("P06")
@pytest.mark.parametrize("moment", ["while it is claimed", "once it is open"])
def test_a_fork_that_is_called_off_late_leaves_no_file(lab: Lab, monkeypatch: pytest.MonkeyPatch, moment: str) -> None:
    async def scene() -> None:
        provider = lab.provider()
        cursor = await lab.begun(provider)
        before, there = lab.rollouts(), list[Path]()

        def call_off() -> None:
            there.extend(lab.rollouts())
            loop.call_soon_threadsafe(opening.cancel)

        def claim(*given: Any) -> SessionLock:
            call_off()
            time.sleep(0.1)
            return claimed(*given)

        async def opened(spec: OpenSpec) -> Any:
            session = await ready(spec)
            call_off()
            return session

        loop, claimed, ready = asyncio.get_running_loop(), locks.claim, provider._opened  # noqa: SLF001 - a moment
        if moment == "once it is open":
            monkeypatch.setattr(provider, "_opened", opened)
        else:
            monkeypatch.setattr(locks, "claim", claim)
        opening = asyncio.create_task(lab.open(provider, cursor, fork=True))
        with pytest.raises(asyncio.CancelledError):
            await opening
        assert len(there) == len(before) + 1, "it was called off when the fork was on disk"
        assert lab.rollouts() == before

    lab.play(scene())


@pytest.mark.case("P06")
@pytest.mark.parametrize("how", ["refused", "too slow", "written again"])
def test_a_cancelled_fork_that_codex_does_not_delete_leaves_no_file(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    async def scene() -> None:
        provider = lab.provider()
        cursor = await lab.begun(provider)
        before, there, asked = lab.rollouts(), list[Path](), list[str]()

        async def call(server: AppServer, method: str, arguments: Json, seconds: float | None = None) -> Json:
            if method == "thread/delete":
                asked.append(str(arguments["threadId"]))
                if how == "refused":
                    raise CallRefused(-32600, "not now")
                if how == "too slow":
                    raise TooSlow("It was not answered.", "Wait.")
            answer = await real(server, method, arguments, seconds)
            if method == "thread/delete":
                (fork,) = set(there) - set(before)
                fork.write_bytes(b"late")
            if method == "thread/fork":
                there.extend(lab.rollouts())
                opening.cancel()
            return answer

        real = AppServer.call
        monkeypatch.setattr(AppServer, "call", call)
        opening = asyncio.create_task(lab.open(provider, cursor, fork=True))
        with pytest.raises(asyncio.CancelledError):
            await opening
        assert len(there) == len(before) + 1, "it was cancelled when the fork was on disk"
        assert len(asked) == 1
        assert lab.rollouts() == before

    lab.play(scene())


@pytest.mark.case("C14", "L06")
def test_retries_are_no_progress(lab: Lab) -> None:
    """Codex waits for ever for a model that is not there, and says so again and again."""

    async def scene() -> None:
        session = await lab.open(lab.provider(change=quick))
        await turn(session, "first")
        lab.model.down()
        turned = await turn(session, "second")
        assert turned.failed.code is ErrorCode.MODEL_UNREACHABLE
        assert turned.failed.retryable
        lab.model.up()
        assert (await turn(session, "third")).seen.first == "first"

    lab.play(scene())


@pytest.mark.case("A03", "P17")
def test_the_time_in_which_a_person_is_asked_is_not_silence(lab: Lab) -> None:
    def very_quick(settings: Settings) -> Settings:
        return replace(settings, deadlines=replace(settings.deadlines, silence=1.5))

    async def scene() -> None:
        session = await lab.open(lab.provider(change=very_quick), mode=ASK)
        async for event in session.turn(f"ESCALATE: touch {lab.file('ran')}"):
            if isinstance(event, ApprovalAsked):
                await asyncio.sleep(2.0)
                assert await session.answer(event.id, Answer.APPROVE)
        assert lab.file("ran").exists()

    lab.play(scene())


def test_a_prompt_beside_a_turn_is_not_merged_into_it(lab: Lab) -> None:
    async def scene() -> None:
        session = await lab.open(lab.provider())
        following = asyncio.create_task(turn(session, "SLOW: 1"))
        await asyncio.sleep(0.3)
        with pytest.raises(Refused):
            await turn(session, "beside it")
        assert (await following).done.ending is Ending.COMPLETED

    lab.play(scene())


@pytest.mark.case("L01", "L12")
def test_a_home_that_hands_nothing_on_hides_no_process(lab: Lab) -> None:
    lab.configure('\n[shell_environment_policy]\ninherit = "core"\n')

    async def scene() -> None:
        session = await lab.open(lab.provider())
        kept = lab.file("pid")
        await turn(session, f"RUN: setsid sleep 300 >/dev/null 2>&1 </dev/null & echo $! > {kept}; sleep 0.1")
        pid = int(kept.read_text())
        os.kill(pid, 0)
        await session.close()
        assert await eventually(lambda: not Path(f"/proc/{pid}/environ").exists() or _ended(pid))

    lab.play(scene())


def _ended(pid: int) -> bool:
    """Killed, and not yet waited for by whoever took it over."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
