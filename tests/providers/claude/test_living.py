"""A live session with the real program: what it does by itself, where it goes, and what it is allowed."""

import asyncio
import json
import os
import signal
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from clew.kernel import Answer, ProbeKind
from clew.ports.events import ApprovalAsked, Ending, ErrorCode, PlanChanged, QuestionAsked, Text, ToolStarted
from clew.ports.provider import OpenSpec, Settings
from clew.programs.environment import environment_for
from clew.programs.program import start
from clew.providers.claude.faults import Busy
from tests.providers.agents import NO_OUTSIDE, Agents
from tests.providers.claude.kit import ASK, EDIT, FULL, READ, Place, begun, call, run, turn
from tests.providers.contract.stage import eventually
from tests.providers.loopback.server import Model


@pytest.fixture
def place(tmp_path: Path, model: Model, agents: Agents) -> Place:
    return Place.at(tmp_path / "a", model, agents)


@pytest.mark.case("S13")
def test_what_the_agent_begins_by_itself_waits_for_a_turn_and_is_not_taken_for_it(place: Place, model: Model) -> None:
    async def scene() -> None:
        async with place.provider() as provider:
            session = await provider.open(OpenSpec(place.work(), FULL))
            in_background = call("Bash", command="sleep 0.2; echo over", description="wait", run_in_background=True)
            assert (await turn(session, in_background)).done.ending is Ending.COMPLETED
            count = len(model.work)
            await asyncio.sleep(1.5)
            assert len(model.work) == count, "it spent tokens while nobody had asked anything"
            turned = await turn(session, "/mine: what now?")
            assert "<task-notification>" in json.dumps(model.work[-1].body), "it was never told of its own work"
            # The slash is the user's text, and no command of the program.
            assert turned.seen.last == "/mine: what now?"
            assert len([event for event in turned.of(Text) if event.final]) == 1

            # What it wanted to begin when it was allowed more is not begun when it is allowed less.
            await turn(session, in_background)
            await asyncio.sleep(1.0)
            assert await session.set_mode(READ) is READ
            turned = await turn(session, "RUN: touch later")
            assert (turned.done.ending, turned.seen.last) == (Ending.COMPLETED, "RUN: touch later")
            assert not list(Path(place.work().path).iterdir())

    run(scene())


def test_side_threads_lists_and_questions_are_told_as_what_they_are(place: Place) -> None:
    async def scene() -> None:
        async with place.provider() as provider:
            session = await provider.open(OpenSpec(place.work(), ASK))
            side = call("Agent", description="d", prompt="RUN: pwd", subagent_type="general-purpose")
            turned = await turn(session, f"{side}\nSAY: from the agent itself")
            assert turned.reply == "from the agent itself"
            assert [event.text for event in turned.of(Text) if event.final] == ["from the agent itself"]
            assert [event.name for event in turned.of(ToolStarted)] == ["Agent", "Bash"]
            # Two requests of its own and two of the side thread, each of 100 and 7.
            assert turned.used is not None
            assert (turned.used.input, turned.used.output) == (400, 28)

            turned = await turn(session, call("TaskCreate", subject="one step", description="d"))
            assert turned.of(PlanChanged)[-1].steps == (("one step", "pending"),)

            options = [{"label": "Red", "description": "r"}, {"label": "Blue", "description": "b"}]
            asked = {"question": "Which?", "header": "Pick", "options": options, "multiSelect": False}
            reply = ""
            async for event in session.turn(call("AskUserQuestion", questions=[asked])):
                if isinstance(event, QuestionAsked):
                    assert (event.words, event.choices) == ("Which?", ("Red", "Blue"))
                    assert await session.answer(event.id, Answer.APPROVE, "Blue, by far")
                reply = getattr(event, "reply", reply)
            assert "Blue, by far" in reply

    run(scene())


@pytest.mark.case("D10", "C17")
def test_a_prompt_is_held_back_when_the_agent_has_gone_elsewhere(place: Place, model: Model) -> None:
    work = place.work()
    git = ("git", "-c", "user.name=t", "-c", "user.email=t@t", "-C", work.path)
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "first"], check=True)

    async def scene() -> None:
        async with place.provider() as provider:
            session = await provider.open(OpenSpec(work, FULL))
            moved = await turn(session, call("EnterWorktree", name="aside"))
            assert "worktree" in moved.reply, moved.reply
            count = len(model.work)
            turned = await turn(session, "this belongs into the first directory")
            assert turned.done.ending is Ending.FAILED
            assert work.path in turned.failed.words
            assert "aside" in turned.failed.words
            assert len(model.work) == count, "the prompt reached the model"
            assert session.cursor is not None
            assert "belongs into" not in place.transcript(session.cursor).read_text()

    run(scene())


@pytest.mark.case("L05")
def test_an_interrupt_that_comes_at_once_keeps_the_prompt_from_the_model(place: Place, model: Model) -> None:
    async def scene() -> None:
        async with place.provider() as provider:
            session = await provider.open(OpenSpec(place.work(), ASK))
            events = session.turn("never to be heard")
            first = await anext(events)
            await session.interrupt()
            rest = [event async for event in events]
            assert getattr(rest[-1], "ending", None) is Ending.INTERRUPTED, (first, rest)
            assert not model.work
            # Who goes away in the middle of a turn ends it.
            events = session.turn("HANG")
            async for event in events:
                if isinstance(event, Text):
                    break
            await events.aclose()  # type: ignore[attr-defined]
            assert (await turn(session, "after")).seen.last == "after"

    run(scene())


@pytest.mark.case("P12", "L11", "L12", "L01")
def test_killed_in_a_tool_it_goes_on_and_its_tool_does_not(place: Place) -> None:
    began = place.root / "began"

    async def scene() -> None:
        async with place.provider() as provider:
            session = await provider.open(OpenSpec(place.work(), FULL))
            await turn(session, "first")
            killed = asyncio.create_task(turn(session, f"RUN: setsid sh -c 'touch {began}; sleep 60'"))
            assert await eventually(began.exists)
            note = json.loads(next(place.config.glob("sessions/*.json")).read_text())
            os.kill(note["pid"], signal.SIGKILL)
            turned = await killed
            assert (turned.done.ending, turned.failed.code) == (Ending.FAILED, ErrorCode.PROGRAM_ENDED)
            assert turned.failed.retryable
            await session.close()
            assert not place.left()
            assert session.cursor is not None
            # The dead one's note is still there, and holds nothing.
            assert (await provider.probe(session.cursor, place.work())).kind is ProbeKind.FOUND_HERE
            again = await provider.open(OpenSpec(place.work(), FULL, session.cursor))
            assert again.landing.turns == 2
            seen = (await turn(again, "after")).seen
            assert (seen.first, seen.last) == ("first", "after")

    run(scene())


@pytest.mark.case("A01", "A02", "P03", "A04")
def test_rules_that_allow_do_not_widen_read(place: Place) -> None:
    rules = {"permissions": {"allow": ["Bash(touch:*)", "Write"], "defaultMode": "bypassPermissions"}}
    (place.config / "settings.json").write_text(json.dumps(rules))
    work = Path(place.work().path)

    async def scene() -> None:
        async with place.provider() as provider:
            session = await provider.open(OpenSpec(place.work(), READ))
            assert session.landing.mode is READ
            for step in ("RUN: touch by-shell", f"WRITE: {work}/by-tool text", call("EnterPlanMode")):
                assert not (await turn(session, step)).of(ApprovalAsked)
            assert (await turn(session, "RUN: pwd")).reply.startswith(f"TOOL SAID: {work}")
            assert not list(work.iterdir())
            # The user's own rules are his word where he may be asked.
            assert await session.set_mode(ASK) is ASK
            assert not (await turn(session, "RUN: touch by-rule")).of(ApprovalAsked)
            turned = await turn(session, "RUN: mkdir asked", Answer.DENY, "not today")
            assert turned.of(ApprovalAsked)[0].command == "mkdir asked"
            assert "not today" in turned.reply
            assert await session.set_mode(READ) is READ
            await turn(session, "RUN: touch again")
            assert [each.name for each in work.iterdir()] == ["by-rule"]

    run(scene())


@pytest.mark.case("A01")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root is refused")
def test_where_full_is_refused_the_next_stricter_is_used_and_said(place: Place) -> None:
    def bare(settings: Settings) -> Settings:
        return replace(settings, environment={k: v for k, v in settings.environment.items() if k != "IS_SANDBOX"})

    async def scene() -> None:
        async with place.provider(bare) as provider:
            assert FULL not in provider.capabilities.modes
            session = await provider.open(OpenSpec(place.work(), FULL))
            assert session.landing.mode is EDIT
            assert (await turn(session, "RUN: touch /tmp/outside")).of(ApprovalAsked)

    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("IS_SANDBOX", raising=False)
        run(scene())


@pytest.mark.case("C29")
def test_a_session_that_somebody_else_has_open_is_left_alone(place: Place) -> None:
    async def scene() -> None:
        async with place.provider() as provider:
            cursor = await begun(provider, place.work(), "first")
            # Somebody's own `claude`, of which Clew knows nothing.
            speaking = ("-p", "--verbose", "--input-format=stream-json", "--output-format=stream-json")
            command = [*place.settings.program, *speaking, f"--resume={place.transcript(cursor)}"]
            environment = environment_for(place.settings.home, place.settings.environment)
            other = await start(command, Path(place.work().path), environment)
            try:
                await other.send(b'{"type":"control_request","request_id":"1","request":{"subtype":"initialize"}}')
                await anext(other.lines())
                busy = await provider.probe(cursor, place.work())
                assert busy.kind is ProbeKind.BUSY
                assert "claude, process" in str(busy.holder)
                with pytest.raises(Busy):
                    await provider.open(OpenSpec(place.work(), ASK, cursor))
                fork = await provider.open(OpenSpec(place.work(), ASK, cursor, fork=True))
                assert (await turn(fork, "beside it")).seen.users == 2
            finally:
                await other.end(5.0)

    run(scene())


def short(settings: Settings) -> Settings:
    return replace(settings, deadlines=replace(settings.deadlines, silence=3.0))


@pytest.mark.case("L06", "L10", "C14")
def test_each_failure_of_the_model_is_told_and_the_session_goes_on(place: Place, model: Model) -> None:
    async def scene() -> None:
        async with place.provider(short) as provider:
            session = await provider.open(OpenSpec(place.work(), ASK))
            await turn(session, "first")
            seen = {}
            for status in (500, 401, 429, 400, 404):
                model.fail(status)
                failed = (await turn(session, f"fails with {status}")).failed
                seen[status] = (failed.code, failed.retryable)
            assert seen == {
                500: (ErrorCode.MODEL_FAILED, True),
                401: (ErrorCode.NOT_ALLOWED, False),
                429: (ErrorCode.USAGE_LIMIT, True),
                400: (ErrorCode.BAD_REQUEST, False),
                404: (ErrorCode.BAD_REQUEST, False),
            }
            model.down()
            assert (await turn(session, "down")).failed.code is ErrorCode.MODEL_UNREACHABLE
            model.up()
            model.cut()
            assert (await turn(session, "cut")).failed.code is ErrorCode.MODEL_UNREACHABLE
            model.hang(mute=True)
            hung = await turn(session, "hang")
            assert (hung.failed.code, hung.failed.retryable) == (ErrorCode.TOO_SLOW, True)
            model.ok()
            after = (await turn(session, "after")).seen
            assert (after.first, after.last) == ("first", "after")

    run(scene())


@pytest.mark.case("L06")
def test_tries_of_its_own_end_with_our_patience(place: Place, model: Model) -> None:
    def stubborn(settings: Settings) -> Settings:
        return replace(short(settings), environment={**settings.environment, "CLAUDE_CODE_MAX_RETRIES": "10"})

    async def scene() -> None:
        async with place.provider(stubborn) as provider:
            session = await provider.open(OpenSpec(place.work(), ASK))
            model.fail(500)
            failed = (await turn(session, "ten tries would take minutes")).failed
            assert (failed.code, failed.retryable) == (ErrorCode.MODEL_FAILED, True)
            assert "however often" in failed.words
            assert len(model.work) > 1
            model.ok()
            assert (await turn(session, "after")).seen.last == "after"

    run(scene())


@pytest.mark.case("L10")
def test_the_end_of_a_subscribers_limit_is_told(place: Place, model: Model) -> None:
    def subscribed(settings: Settings) -> Settings:
        environment = {**settings.environment, "CLAUDE_CODE_OAUTH_TOKEN": "sk-ant-oat01-loopback", **NO_OUTSIDE}
        environment.pop("ANTHROPIC_API_KEY")
        return replace(settings, environment=environment)

    async def scene() -> None:
        async with place.provider(subscribed) as provider:
            session = await provider.open(OpenSpec(place.work(), ASK))
            assert session.landing.account == (await provider.discover()).account
            assert str(session.landing.account).startswith("token:")
            model.fail(429, resets_at=1_900_000_000, retry_after=3600)
            failed = (await turn(session, "too much")).failed
            assert (failed.code, failed.reset_at) == (ErrorCode.USAGE_LIMIT, 1_900_000_000.0)

    run(scene())
