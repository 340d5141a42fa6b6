"""Failures: each has a code, says whether another try is worth it, and leaves the session as it was."""

import asyncio
import time
from pathlib import Path

import pytest

from clew.kernel import Cursor, Directory
from clew.ports.events import Ending, ErrorCode, Failed
from clew.ports.fault import Fault
from clew.ports.provider import EndsSilence, LiveSession
from tests.providers.contract.stage import Stage, faults
from tests.providers.contract.test_transfer import archived, cannot, not_able, there

# For each status what it may be called, and whether another try is worth it.
_EXPECTED = {
    500: ({ErrorCode.MODEL_FAILED, ErrorCode.MODEL_UNREACHABLE}, True),
    529: ({ErrorCode.MODEL_FAILED, ErrorCode.MODEL_UNREACHABLE}, True),
    401: ({ErrorCode.NOT_ALLOWED}, False),
    400: ({ErrorCode.BAD_REQUEST, ErrorCode.MODEL_FAILED}, False),
}


@pytest.mark.case("L06")
async def test_a_model_that_refuses_is_told_as_that(stage: Stage) -> None:
    if stage.rig.model is None:
        stage.unable("there is no model")
        return
    session = await stage.open(provider=stage.hasty)
    await stage.turn(session, "first")
    for status, (codes, retryable) in _EXPECTED.items():
        stage.rig.model.fail(status)
        turned = await stage.turn(session, f"fails with {status}")
        assert turned.done.ending is Ending.FAILED
        assert turned.failed.words
        if stage.rig.tells_failures:
            assert turned.failed.code in codes, turned.failed
            assert turned.failed.retryable is retryable
    if not stage.rig.tells_failures:
        stage.unable("the program does not say in a structured way why its model failed")
    await _goes_on(stage, session.cursor)


@pytest.mark.case("L06", "C14")
@pytest.mark.parametrize("how", ["down", "hang", "cut"])
async def test_a_model_that_is_not_there_is_told_in_time(stage: Stage, how: str) -> None:
    model = stage.rig.model
    if model is None:
        stage.unable("there is no model")
        return
    session = await stage.open(provider=stage.hasty)
    await stage.turn(session, "first")
    faults(model)[how]()
    began = time.monotonic()
    turned = await stage.turn(session, "second")
    assert time.monotonic() - began < 30
    assert turned.done.ending is Ending.FAILED
    if stage.rig.tells_failures:
        assert turned.failed.code in {ErrorCode.MODEL_UNREACHABLE, ErrorCode.MODEL_FAILED, ErrorCode.TOO_SLOW}
        assert turned.failed.retryable
    else:
        stage.unable("the program does not say in a structured way why its model failed")
    model.up()
    await _goes_on(stage, session.cursor)


@pytest.mark.case("L07")
async def test_a_turn_that_hangs_ends_when_it_says(stage: Stage) -> None:
    model = stage.rig.model
    if model is None:
        stage.unable("there is no model")
        return
    session = await stage.open(provider=stage.hasty)
    await stage.turn(session, "first")
    assert _ends_in(session) is None
    model.hang()
    said: list[float] = []
    turn = asyncio.create_task(stage.turn(session, "second"))
    while not turn.done():
        await asyncio.sleep(0.05)
        if (left := _ends_in(session)) is not None and left > 0:
            said.append(time.monotonic() + left)
    over = time.monotonic()
    assert (await turn).done.ending is Ending.FAILED
    # It may have tried its model several times; the last time it kept its word, and had not ended before.
    assert said
    assert over >= said[-1] - 1
    model.ok()
    await _goes_on(stage, session.cursor)


@pytest.mark.case("L10")
async def test_a_usage_limit_is_told_with_its_end(stage: Stage) -> None:
    if stage.rig.model is None:
        stage.unable("there is no model")
        return
    ends = int(time.time()) + 3600
    session = await stage.open(provider=stage.hasty)
    await stage.turn(session, "first")
    stage.rig.model.fail(429, resets_at=ends, retry_after=3600)
    turned = await stage.turn(session, "second")
    assert turned.done.ending is Ending.FAILED
    if stage.rig.tells_failures:
        assert turned.failed.code in {ErrorCode.USAGE_LIMIT, ErrorCode.TOO_SLOW}, turned.failed
    if stage.rig.tells_reset:
        assert turned.failed.reset_at is not None
        assert abs(turned.failed.reset_at - ends) < 60
    else:
        assert turned.failed.reset_at is None
        stage.unable("the program does not say when a usage limit ends")


@pytest.mark.case("L13")
async def test_a_prompt_that_reaches_nobody_is_told_as_failed(stage: Stage) -> None:
    session = await stage.open()
    await stage.turn(session, "first")
    stage.rig.kill("a")
    turned = await stage.turn(session, "second")
    if turned.done.ending is Ending.COMPLETED:
        # It may have been started again for this turn; then it was delivered.
        assert turned.seen.last == "second"
        return
    assert turned.done.ending is Ending.FAILED
    assert turned.failed.code is ErrorCode.PROGRAM_ENDED
    assert turned.failed.retryable
    assert turned.of(Failed)[0].words


@pytest.mark.case("T02")
async def test_a_restore_into_no_directory_is_refused(stage: Stage) -> None:
    if cannot(stage):
        await not_able(stage)
        return
    cursor, _ = await stage.begun()
    archive = await archived(stage, cursor)
    gone, before = Path(stage.directory().path) / "gone", await there(stage)
    for place in (gone, archive.path):
        with pytest.raises(Fault):
            await stage.other.restore(archive.path, Directory(str(place), str(place)))
    assert not gone.exists()
    assert await there(stage) == before


@pytest.mark.case("T02")
async def test_an_archive_into_no_directory_is_refused(stage: Stage) -> None:
    if cannot(stage):
        await not_able(stage)
        return
    cursor, _ = await stage.begun()
    gone = Path(stage.directory().path) / "gone"
    with pytest.raises(Fault):
        await stage.provider.archive(cursor, stage.directory(), gone / "session.zip")
    assert not gone.exists()


async def _goes_on(stage: Stage, cursor: Cursor | None) -> None:
    assert stage.rig.model is not None
    stage.rig.model.ok()
    if stage.provider.capabilities.resume:
        await stage.close_sessions()
        session = await stage.open(cursor)
        seen = (await stage.turn(session, "third")).seen
        assert (seen.first, seen.last) == ("first", "third")


def _ends_in(session: LiveSession) -> float | None:
    assert isinstance(session, EndsSilence)
    return session.ends_in
