"""What goes on in the background is known while it goes on and no longer, whatever comes between."""

import asyncio
import os
import signal

import pytest

from clew.kernel import Answer, PermissionMode
from clew.ports.events import ApprovalAsked, Ending, ToolStarted
from clew.providers.codex.session import CodexSession
from tests.providers.codex.kit import ASK, FULL, Lab, turn


def leaving(lab: Lab, seconds: float, name: str) -> str:
    """A prompt that leaves a command running behind its turn."""
    arguments = f'{{"cmd": "sleep {seconds:g}; touch {lab.file(name)}", "yield_time_ms": 300}}'
    return f"CALL: exec_command {arguments}"


async def opened(lab: Lab, mode: PermissionMode = FULL) -> CodexSession:
    session = await lab.open(lab.provider(), mode=mode)
    assert isinstance(session, CodexSession)
    assert not session.works_on
    return session


async def until_idle(session: CodexSession) -> None:
    async with asyncio.timeout(15):
        while session.works_on:
            await asyncio.sleep(0.02)


@pytest.mark.case("P15", "P17")
def test_a_command_that_ends_between_turns_is_known_to_have_ended(lab: Lab) -> None:
    async def scene() -> None:
        session = await opened(lab)
        await turn(session, leaving(lab, 2, "done"))
        assert session.works_on
        assert not lab.file("done").exists()
        await until_idle(session)
        assert lab.file("done").exists()

    lab.play(scene())


@pytest.mark.case("P15", "P17")
def test_a_later_turn_does_not_hide_what_goes_on(lab: Lab) -> None:
    async def scene() -> None:
        session = await opened(lab)
        await turn(session, leaving(lab, 4, "done"))
        for prompt in ("next", f"RUN: touch {lab.file('other')}"):
            assert (await turn(session, prompt)).done.ending is Ending.COMPLETED
            assert session.works_on
            assert not lab.file("done").exists()
        # Ended within a turn that did not begin it.
        await turn(session, "RUN: sleep 5")
        assert lab.file("done").exists()
        assert not session.works_on

    lab.play(scene())


@pytest.mark.case("P15", "P17")
@pytest.mark.parametrize("how", ["running", "asking", "closed"])
def test_what_was_ended_with_its_turn_does_not_go_on(lab: Lab, how: str) -> None:
    async def scene() -> None:
        session = await opened(lab, ASK if how == "asking" else FULL)
        prompt = f"ESCALATE: touch {lab.file('left')}" if how == "asking" else "RUN: sleep 30"
        async for event in session.turn(prompt):
            if isinstance(event, ApprovalAsked if how == "asking" else ToolStarted):
                await (session.close() if how == "closed" else session.interrupt())
        await until_idle(session)

    lab.play(scene())


@pytest.mark.case("P15", "P17")
def test_a_command_that_was_denied_does_not_go_on(lab: Lab) -> None:
    async def scene() -> None:
        session = await opened(lab, ASK)
        await turn(session, f"ESCALATE: touch {lab.file('left')}", Answer.DENY)
        assert not session.works_on

    lab.play(scene())


@pytest.mark.case("P15", "P17")
def test_nothing_goes_on_where_the_program_was_killed(lab: Lab) -> None:
    async def scene() -> None:
        session = await opened(lab)
        await turn(session, leaving(lab, 30, "done"))
        assert session.works_on
        for process in lab.rig.processes("a"):
            os.kill(process, signal.SIGKILL)
        await until_idle(session)

    lab.play(scene())
