"""This machine: what is installed, what agents get of our environment, and who else may use it."""

import asyncio
import json
import subprocess
from pathlib import Path

import pytest

from clew.kernel import RuntimeId, capabilities_from_record
from clew.ports.fault import Fault
from clew.programs.faults import BadOptions
from clew.programs.process_tag import new_tag
from clew.programs.state import Ledger
from clew.protocol.machine import AgentProgram
from tests.daemon.kit import TRUE, run, world
from tests.daemon.scripted import ABLE


def test_what_is_there_is_registered_as_it_declares_itself(tmp_path: Path) -> None:
    async def scene() -> None:
        async with world(tmp_path) as there:
            looked = await there.machine.discover(AgentProgram("loom", home={"LOOM_HOME": "/h"}))
            assert looked.registration is not None
            assert (looked.registration.provider, looked.registration.home) == ("loom", "/h")
            assert capabilities_from_record(json.loads(looked.registration.capabilities)) == ABLE
            assert looked.registration.root == str(there.place / "workspaces")
            assert await there.machine.providers() == ["acp", "command", "guide", "loom"]

    run(scene())


@pytest.mark.parametrize(
    ("program", "words"),
    [
        (AgentProgram("unheard-of"), "There is no provider 'unheard-of'."),
        (AgentProgram("command", ("no-such-program-here",)), "no-such-program-here was not found"),
        (AgentProgram("command"), "Put the program and its arguments after --"),
    ],
)
def test_what_is_not_there_says_why(tmp_path: Path, program: AgentProgram, words: str) -> None:
    async def scene() -> None:
        async with world(tmp_path) as there:
            looked = await there.machine.discover(program)
            assert looked.registration is None
            assert words in looked.missing

    run(scene())


def test_a_program_that_is_there_and_has_no_such_option_is_not_called_missing(tmp_path: Path) -> None:
    async def scene() -> None:
        async with world(tmp_path) as there:
            with pytest.raises(BadOptions, match="The guide has no option colour"):
                await there.machine.discover(AgentProgram("guide", options={"colour": "red"}))

    run(scene())


def test_a_program_is_made_once(tmp_path: Path) -> None:
    async def scene() -> None:
        async with world(tmp_path) as there:
            one = there.machine.provider(AgentProgram("loom", options={"a": "1"}))
            assert there.machine.provider(AgentProgram("loom", options={"a": "1"})) is one
            assert there.machine.provider(AgentProgram("loom", options={"a": "2"})) is not one

    run(scene())


def test_a_runtime_that_is_not_offered_here_is_said_to_be(tmp_path: Path) -> None:
    async def scene() -> str:
        async with world(tmp_path) as there:
            try:
                await there.machine.sessions(RuntimeId("rt_nowhere"))
            except Fault as fault:
                return str(fault)
        return ""

    assert "This machine does not offer runtime rt_nowhere" in run(scene())


def test_an_agent_gets_only_the_environment_it_is_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLEW_TOKEN", "a-secret-of-ours")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "another")

    async def scene() -> None:
        async with world(tmp_path) as there:
            program = AgentProgram("command", ("/usr/bin/env",), environment={"GIVEN": "yes"})
            await there.add_agent("ada", program)
            there.add_thread()
            row = await there.tell("hello")
            assert row.state == "succeeded"
            reply = there.said()[-1][1]
            assert "GIVEN=yes" in reply
            named = {line.partition("=")[0] for line in reply.splitlines()}
            assert not {name for name in named if name.startswith("CLEW") and name != "CLEW_MARK"}
            assert "AWS_SECRET_ACCESS_KEY" not in named

    run(scene())


def test_an_agent_that_is_added_later_is_served_at_once(tmp_path: Path) -> None:
    async def scene() -> None:
        async with world(tmp_path) as there:
            await there.add_agent("ada", TRUE)
            there.add_thread("chat-1")
            assert (await there.tell("one")).state == "succeeded"
            await there.add_agent("bob")
            there.add_thread("chat-2")
            assert (await there.tell("two", "bob", "chat-2")).state == "succeeded"

    run(scene())


def test_a_start_ends_the_processes_that_an_earlier_daemon_left(tmp_path: Path) -> None:
    async def scene() -> None:
        async with world(tmp_path) as there:
            await there.daemon.stop()
            tag, ledger = new_tag(), there.place / "state" / "loom-1" / "ledger"
            Ledger(ledger)
            # An entry without a living owner: the daemon that wrote it was killed.
            (ledger / tag.token).write_text("")
            left = subprocess.Popen(["sleep", "300"], env=tag.environment)
            try:
                there.daemon = there.new_daemon()
                await there.start()
                assert await asyncio.to_thread(left.wait, 10) != 0
                assert list(ledger.iterdir()) == []
            finally:
                left.kill()
                left.wait()

    run(scene())
