"""A trial: one prompt in a session of its own, in a directory that is gone afterwards; a home that is there or made."""

import asyncio
import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from clew.daemon.trial import PROMPT, try_prompt
from clew.kernel import Answer, ApprovalId, PermissionMode
from clew.ports.events import ApprovalAsked, Done, Ending, ErrorCode, Event, Failed
from clew.ports.fault import Fault
from clew.ports.provider import Settings
from clew.protocol.machine import AgentProgram
from tests.daemon.kit import LOOM, run, until, world
from tests.daemon.scripted import ABLE, Loom, Session


def test_a_prompt_is_answered_in_a_directory_that_is_gone_afterwards(tmp_path: Path) -> None:
    async def scene() -> None:
        async with world(tmp_path) as there:
            tried = await there.machine.try_prompt(LOOM, "m-1", PermissionMode.FULL)
            assert (bool(tried.reply), tried.failed, tried.mode) == (True, "", "read")
            (spec,) = there.loom.opened
            assert (spec.cursor, spec.model, spec.mode) == (None, "m-1", PermissionMode.READ)
            assert there.loom.prompts == [PROMPT]
            assert not Path(spec.directory.path).exists()
            assert not there.loom.open

    run(scene())


def test_what_it_asks_for_is_denied_and_a_failure_is_told() -> None:
    async def asks(session: Session, prompt: str) -> AsyncIterator[Event]:  # noqa: ARG001
        yield ApprovalAsked(ApprovalId("a-1"), "shell", "May I?")
        yield Failed(ErrorCode.NOT_ALLOWED, "Not logged in", retryable=False)
        yield Done(Ending.FAILED)

    async def scene() -> None:
        loom = Loom()
        loom.turns.append(asks)
        tried = await try_prompt(loom.make(Settings()), None, PermissionMode.FULL)
        assert (tried.reply, tried.failed, tried.login) == ("", "Not logged in", True)
        assert [(asked, given) for asked, given, _ in loom.answers] == [("a-1", Answer.DENY)]

    run(scene())


def test_an_agent_that_opens_nothing_without_a_login_says_how_to_get_one(tmp_path: Path) -> None:
    odd = Path(__file__).parents[1] / "providers" / "acp" / "odd_agent.py"
    program = AgentProgram("acp", (sys.executable, str(odd), '{"login": true}'), {"asks": "yes"})

    async def scene() -> None:
        async with world(tmp_path) as there:
            tried = await there.machine.try_prompt(program, None, PermissionMode.READ)
            assert (tried.failed.startswith("The agent is not logged in: Authentication required."), tried.login) == (
                True,
                True,
            )
            await there.add_agent(program=program)
            there.add_thread()
            there.say("one")
            await until(lambda: there.runs()[0].hold == "person", "it is held for a person")
            held = there.waits()
            assert held.code == "program:not-logged-in"
            assert (held.words or "").startswith(
                "The agent is not logged in: Authentication required. No login is known for ada."
            )

    run(scene())


def test_a_program_that_is_gone_is_not_taken_for_a_want_of_login(tmp_path: Path) -> None:
    async def scene() -> None:
        async with world(tmp_path) as there:
            tried = await there.machine.try_prompt(
                AgentProgram("acp", ("/nowhere/agent",), {"asks": "yes"}), None, PermissionMode.READ
            )
            assert (tried.failed.startswith("There is no program /nowhere/agent."), tried.login) == (True, False)

    run(scene())


def test_a_program_without_the_mode_read_is_tried_in_the_agents_own() -> None:
    async def scene() -> None:
        loom = Loom(replace(ABLE, modes=frozenset({PermissionMode.FULL})))
        assert (await try_prompt(loom.make(Settings()), None, PermissionMode.FULL)).mode == "full"

    run(scene())


def test_an_agent_that_says_nothing_is_given_up() -> None:
    async def hangs(session: Session, prompt: str) -> AsyncIterator[Event]:  # noqa: ARG001
        await asyncio.Event().wait()
        yield Done(Ending.COMPLETED)

    async def scene() -> None:
        loom = Loom()
        loom.turns.append(hangs)
        tried = await try_prompt(loom.make(Settings()), None, PermissionMode.READ, seconds=0.05)
        assert tried.failed == "It did not answer within 0.05 s."
        assert not loom.open

    run(scene())


def test_a_home_must_be_there_or_is_made_when_it_is_asked_for(tmp_path: Path) -> None:
    async def scene() -> None:
        async with world(tmp_path) as there:
            typo = tmp_path / "hoem" / "codex"
            with pytest.raises(Fault, match=r"CODEX_HOME=.*/hoem/codex does not exist.*--create-home"):
                await there.machine.check_homes({"CODEX_HOME": str(typo)}, create=False)
            assert not typo.exists()
            await there.machine.check_homes({"CODEX_HOME": str(typo)}, create=True)
            assert typo.is_dir()
            file = tmp_path / "file"
            file.touch()
            with pytest.raises(Fault, match="is not a directory"):
                await there.machine.check_homes({"HOME": str(file)}, create=True)
            # The name of a file is no home.
            await there.machine.check_homes({"OPENCODE_DB": str(tmp_path / "new.db")}, create=False)

    run(scene())
