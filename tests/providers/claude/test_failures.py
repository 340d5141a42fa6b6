"""How the real program fails: its model, its process, and its start; each told in time."""

import asyncio
import os
import signal
import time
from dataclasses import replace

import pytest

from clew.kernel import ProbeKind
from clew.ports.events import Ending, ErrorCode
from clew.ports.provider import OpenSpec, Settings
from clew.programs.faults import CannotStart, SessionMissing
from tests.providers.agents import NO_OUTSIDE
from tests.providers.claude.kit import ASK, FULL, Place, call, hasty, run, turn
from tests.providers.contract.stage import eventually
from tests.providers.loopback.server import Model


@pytest.mark.case("P12", "L11", "L12", "L01")
def test_killed_in_a_tool_it_goes_on_and_its_tool_does_not(place: Place) -> None:
    began = place.root / "began"

    async def scene() -> None:
        async with place.provider() as provider:
            session = await provider.open(OpenSpec(place.work(), FULL))
            await turn(session, "first")
            killed = asyncio.create_task(turn(session, f"RUN: setsid sh -c 'touch {began}; sleep 60'"))
            assert await eventually(began.exists)
            os.kill(place.pid, signal.SIGKILL)
            turned = await killed
            assert (turned.done.ending, turned.failed.code) == (Ending.FAILED, ErrorCode.PROGRAM_ENDED)
            assert turned.failed.retryable
            assert not place.left(), "what it ran goes on without it"
            await session.close()
            assert session.cursor is not None
            # The dead one's note is still there, and holds nothing.
            assert (await provider.probe(session.cursor, place.work())).kind is ProbeKind.FOUND_HERE
            again = await provider.open(OpenSpec(place.work(), FULL, session.cursor))
            assert again.landing.turns == 2
            seen = (await turn(again, "after")).seen
            assert (seen.first, seen.last) == ("first", "after")

    run(scene())


@pytest.mark.case("P12", "L12")
def test_killed_between_turns_it_leaves_nothing_in_the_background(place: Place) -> None:
    in_background = call("Bash", command="setsid sleep 60", description="wait", run_in_background=True)

    async def scene() -> None:
        async with place.provider() as provider:
            session = await provider.open(OpenSpec(place.work(), FULL))
            await turn(session, in_background)
            assert await eventually(lambda: len(place.left()) > 1)
            os.kill(place.pid, signal.SIGKILL)
            assert await eventually(lambda: not place.left())
            failed = (await turn(session, "second")).failed
            assert (failed.code, failed.retryable) == (ErrorCode.PROGRAM_ENDED, True)

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
            assert "in every attempt" in failed.words
            assert len(model.work) > 1
            model.ok()
            assert (await turn(session, "after")).seen.last == "after"

    run(scene())


@pytest.mark.case("L06", "L12")
def test_a_program_that_does_nothing_any_more_is_ended_in_time(place: Place) -> None:
    async def scene() -> None:
        async with place.provider(hasty) as provider:
            session = await provider.open(OpenSpec(place.work(), FULL))
            # What the model allows a command is not silence.
            allowed = call("Bash", command="sleep 2.5; echo slept", timeout=20_000)
            assert "slept" in (await turn(session, allowed)).reply
            stopped = asyncio.create_task(turn(session, "HANG"))
            await asyncio.sleep(0.5)
            os.kill(place.pid, signal.SIGSTOP)
            began = time.monotonic()
            failed = (await stopped).failed
            assert (failed.code, failed.retryable) == (ErrorCode.TOO_SLOW, True)
            assert (await turn(session, "to nobody")).failed.code is ErrorCode.PROGRAM_ENDED
            assert time.monotonic() - began < 10
            await session.close()
            assert session.cursor is not None
            again = await provider.open(OpenSpec(place.work(), FULL, session.cursor))
            assert allowed.startswith((await turn(again, "after")).seen.first)

    run(scene())


@pytest.mark.case("C22", "P11", "C32")
def test_what_cannot_be_started_again_is_told_and_stays(place: Place) -> None:
    """A session that loses its program while its model is changed, and one that is gone when the program looks."""
    link = place.root / "program"
    link.symlink_to(place.settings.program[0])

    async def scene() -> None:
        async with place.provider(lambda settings: replace(settings, program=(str(link),))) as provider:
            session = await provider.open(OpenSpec(place.work(), ASK))
            await turn(session, "first")
            link.unlink()
            with pytest.raises(CannotStart):
                await session.set_model("loopback-2")
            failed = (await turn(session, "second")).failed
            assert (failed.code, failed.retryable) == (ErrorCode.PROGRAM_ENDED, True)
            await session.close()
            cursor = session.cursor
            assert cursor is not None
            # In the moment between our look and the program's own.
            link.write_text(f'#!/bin/sh\nrm {place.transcript(cursor)}\nexec {place.settings.program[0]} "$@"\n')
            link.chmod(0o755)
            with pytest.raises(SessionMissing):
                await provider.open(OpenSpec(place.work(), ASK, cursor))
            assert (await provider.probe(cursor, place.work())).kind is ProbeKind.MISSING
            assert not place.left()

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
            found = await provider.discover()
            assert session.landing.account is None
            assert found.account is None
            assert str(found.credential).startswith("token:")
            model.fail(429, resets_at=1_900_000_000, retry_after=3600)
            failed = (await turn(session, "too much")).failed
            assert (failed.code, failed.reset_at) == (ErrorCode.USAGE_LIMIT, 1_900_000_000.0)

    run(scene())
