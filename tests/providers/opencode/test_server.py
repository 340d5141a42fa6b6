"""Its server: one for a home, whoever asks first, and nothing of it left when a start fails or is called off."""

import asyncio
import json
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from clew.kernel import Cursor, Directory, NativeId, ProbeKind
from clew.ports.provider import Deadlines, OpenSpec, Settings
from clew.programs.faults import BadArguments, CannotLock, CannotStart, ProgramEnded, Refused, SessionBusy, TooSlow
from clew.programs.process_tag import VARIABLE
from clew.providers.opencode.faults import CutOff
from clew.providers.opencode.modes import as_json, rules_for
from clew.providers.opencode.provider import OpenCodeProvider
from tests.providers.agents import marked
from tests.providers.contract.stage import eventually
from tests.providers.kit import run
from tests.providers.opencode.kit import FULL, READ

FAKE = str(Path(__file__).with_name("fake.py"))
CURSOR = Cursor(1, NativeId("ses_0123456789abcdef"))
WELL = {"/session/": [404, {"name": "NotFoundError"}]}


def settings(home: Path, answers: dict[str, Any], **environment: str) -> Settings:
    return Settings(
        program=(sys.executable, FAKE, json.dumps(answers)),
        home={"HOME": str(home)},
        environment=environment,
        deadlines=Deadlines(start=30.0, answer=20.0, close=2.0),
        state=home / "state",
    )


def programs(home: Path) -> list[int]:
    found = []
    for pid in marked(f"HOME={home}"):
        with suppress(OSError):
            if f"{VARIABLE}=".encode() in Path(f"/proc/{pid}/environ").read_bytes():
                found.append(pid)
    return found


@asynccontextmanager
async def provided(told: Settings) -> AsyncIterator[OpenCodeProvider]:
    """A provider that leaves nothing behind."""
    provider = OpenCodeProvider(told)
    try:
        yield provider
    finally:
        await provider.close()
    home = Path(told.home["HOME"])
    assert not programs(home)
    assert not list((home / "state").rglob("ledger/*"))
    assert not list((home / "state").rglob("scratch/*"))


@pytest.mark.case("P06")
@pytest.mark.parametrize("stuck", [{"listening": False}, {"/global/health": None}, {"/global/event": None}], ids=str)
@pytest.mark.parametrize("how", ["called off", "closed"])
def test_a_start_that_is_called_off_half_way_leaves_nothing(tmp_path: Path, stuck: dict[str, Any], how: str) -> None:
    async def scene() -> None:
        async with provided(settings(tmp_path, stuck)) as provider:
            start = asyncio.create_task(provider.open(OpenSpec(Directory(str(tmp_path)), FULL)))
            assert await eventually(lambda: bool(programs(tmp_path)))
            await asyncio.sleep(0.3)
            if how == "closed":
                await provider.close()
            else:
                start.cancel()
            with pytest.raises(Refused if how == "closed" else asyncio.CancelledError):
                await start
            assert not programs(tmp_path)

    run(scene(), 25.0)


def test_a_closed_provider_starts_nothing(tmp_path: Path) -> None:
    async def scene() -> None:
        async with provided(settings(tmp_path, WELL)) as provider:
            await provider.close()
            with pytest.raises(Refused):
                await provider.open(OpenSpec(Directory(str(tmp_path)), FULL))
            assert (await provider.probe(CURSOR, Directory(str(tmp_path)))).kind is ProbeKind.UNREACHABLE

    run(scene())


@pytest.mark.case("R14")
def test_a_server_that_is_let_go_ends_and_another_is_started_when_it_is_needed(tmp_path: Path) -> None:
    async def scene() -> None:
        here = Directory(str(tmp_path))
        async with provided(settings(tmp_path, WELL)) as provider:
            await provider.let_go()
            assert (await provider.probe(CURSOR, here)).kind is ProbeKind.MISSING
            (server,) = programs(tmp_path)
            await provider.let_go()
            assert not programs(tmp_path)
            assert (await provider.probe(CURSOR, here)).kind is ProbeKind.MISSING
            (another,) = programs(tmp_path)
            assert another != server

    run(scene())


@pytest.mark.case("P05", "L11")
def test_all_share_one_server_and_get_another_when_it_has_died(tmp_path: Path) -> None:
    async def scene() -> None:
        here = Directory(str(tmp_path))
        async with provided(settings(tmp_path, WELL)) as provider:
            probes = await asyncio.gather(*(provider.probe(CURSOR, here) for _ in range(5)))
            assert {probe.kind for probe in probes} == {ProbeKind.MISSING}
            (server,) = programs(tmp_path)
            os.kill(server, signal.SIGKILL)
            assert await eventually(lambda: server not in programs(tmp_path))
            assert await eventually(lambda: provider._shared.current is None)  # noqa: SLF001 - it is noticed
            assert (await provider.probe(CURSOR, here)).kind is ProbeKind.MISSING
            (another,) = programs(tmp_path)
            assert another != server

    run(scene())


def there(home: Path, **more: Any) -> dict[str, Any]:
    """The answers of a server that has the session, in a mode that reads."""
    session = {
        "id": CURSOR.native_id,
        "directory": str(home),
        "time": {"updated": 1},
        "permission": as_json(rules_for(READ, ())),
    }
    return {
        **more,
        "/config": [200, {}],
        "/agent": [200, [{"name": "build", "mode": "primary", "permission": []}]],
        "/session/status": [200, {}],
        **{f"/session/{CURSOR.native_id}/{what}": [200, []] for what in ("message", "children", "todo")},
        "/session/ses_new/message": [200, []],
        "/session/": [200, session],
        "/session?": [200, {**session, "id": "ses_new"}],
        "/experimental/session": [200, [session]],
    }


Ask = Callable[[OpenCodeProvider, Path], Awaitable[object]]


async def _open(provider: OpenCodeProvider, home: Path) -> object:
    return await provider.open(OpenSpec(Directory(str(home)), READ, CURSOR))


async def _open_new(provider: OpenCodeProvider, home: Path) -> object:
    return await provider.open(OpenSpec(Directory(str(home)), READ))


async def _probe(provider: OpenCodeProvider, home: Path) -> object:
    probe = await provider.probe(CURSOR, Directory(str(home)))
    assert probe.kind is ProbeKind.FOUND_HERE, probe
    return probe


async def _sessions(provider: OpenCodeProvider, home: Path) -> object:  # noqa: ARG001
    return await provider.sessions()


async def _archive(provider: OpenCodeProvider, home: Path) -> object:
    return await provider.archive(CURSOR, Directory(str(home)), home / "archive.zip")


ASKS: tuple[Ask, ...] = (_open, _open_new, _probe, _sessions, _archive)


def killed(home: Path) -> None:
    """Its server ends, and the loop has no moment to notice."""
    (server,) = programs(home)
    os.kill(server, signal.SIGKILL)
    while server in programs(home):
        time.sleep(0.001)


@pytest.mark.case("L11", "C14")
@pytest.mark.parametrize("ask", ASKS, ids=lambda ask: ask.__name__)
def test_whoever_finds_its_server_dead_gets_another(tmp_path: Path, ask: Ask) -> None:
    async def scene() -> None:
        async with provided(settings(tmp_path, there(tmp_path))) as provider:
            await provider.sessions()
            killed(tmp_path)
            assert await ask(provider, tmp_path)
            assert len(programs(tmp_path)) == 1

    run(scene())


@pytest.mark.case("L11", "C14")
@pytest.mark.parametrize("ask", [_open, _probe, _archive], ids=lambda ask: ask.__name__)
def test_a_server_that_dies_over_a_question_is_asked_it_again_once(tmp_path: Path, ask: Ask) -> None:
    async def scene() -> None:
        path, told = f"/session/{CURSOR.native_id}", there(tmp_path)
        once = {"dies": str(tmp_path / "died"), "then": told["/session/"]}
        answers = {name: answer for name, answer in told.items() if name != "/session/"} | {path: once}
        async with provided(settings(tmp_path, answers)) as provider:
            assert await ask(provider, tmp_path)
            assert (tmp_path / "died").exists()
        always = {**answers, path: {"dies": "/nowhere/at/all", "then": None}}
        async with provided(settings(tmp_path, always)) as provider:
            with pytest.raises((ProgramEnded, AssertionError), match="went away"):
                await ask(provider, tmp_path)

    run(scene())


@pytest.mark.case("L11", "P06")
def test_a_session_that_may_have_been_made_is_not_made_again(tmp_path: Path) -> None:
    async def scene() -> None:
        once = {"dies": str(tmp_path / "died"), "then": [500, None]}
        async with provided(settings(tmp_path, {**there(tmp_path), "/session?": once})) as provider:
            with pytest.raises(CutOff):
                await _open_new(provider, tmp_path)

    run(scene())


@pytest.mark.case("L11")
def test_an_open_session_whose_server_is_dead_takes_its_mode_and_model(tmp_path: Path) -> None:
    async def scene() -> None:
        answers = {"/config/providers": [200, {"providers": [{"id": "one", "models": ["two"]}]}], **there(tmp_path)}
        async with provided(settings(tmp_path, answers)) as provider:
            session = await provider.open(OpenSpec(Directory(str(tmp_path)), READ, CURSOR))
            killed(tmp_path)
            assert await session.set_mode(READ) is READ
            killed(tmp_path)
            await session.set_model("one/two")

    run(scene())


@pytest.mark.case("C29", "P05")
def test_a_session_is_held_beside_the_database(tmp_path: Path) -> None:
    async def scene() -> None:
        held = tmp_path / ".local/share/opencode/opencode.db.clew-locks" / CURSOR.native_id
        async with provided(settings(tmp_path, there(tmp_path))) as provider:
            session = await provider.open(OpenSpec(Directory(str(tmp_path)), READ, CURSOR))
            assert held.exists()
            other = OpenCodeProvider(replace(settings(tmp_path, there(tmp_path)), state=tmp_path / "other"))
            assert (await other.probe(CURSOR, Directory(str(tmp_path)))).kind is ProbeKind.BUSY
            with pytest.raises(SessionBusy):
                await _open(other, tmp_path)
            await other.close()
            await session.close()
            assert not held.exists()

    run(scene())


@pytest.mark.case("C14")
def test_a_home_that_is_none_is_said_and_makes_nothing_missing(tmp_path: Path) -> None:
    async def scene() -> None:
        home = tmp_path / "file"
        home.write_bytes(b"")
        told = replace(settings(tmp_path, there(tmp_path)), home={"HOME": str(home)})
        provider = OpenCodeProvider(told)
        try:
            probe = await provider.probe(CURSOR, Directory(str(tmp_path)))
            assert (probe.kind, str(home) in probe.detail) == (ProbeKind.UNREACHABLE, True)
            for ask in (_open, _open_new):
                with pytest.raises(CannotLock):
                    await ask(provider, tmp_path)
        finally:
            await provider.close()

    run(scene())


@pytest.mark.parametrize(
    "command", [("/bin/true",), ("/bin/echo",), (sys.executable,), ("/bin/sh", "-c", "echo v1.2.3")]
)
def test_a_program_that_is_another_is_not_taken_for_opencode(tmp_path: Path, command: tuple[str, ...]) -> None:
    async def scene() -> None:
        async with provided(replace(settings(tmp_path, {}), program=command)) as provider:
            found = await provider.discover()
            assert not found.installed
            assert "version" in found.missing

    run(scene())


@pytest.mark.parametrize("said", ["1.18.33", "0.0.0-dev-202611160617", "local"])
def test_its_version_is_told(tmp_path: Path, said: str) -> None:
    async def scene() -> None:
        async with provided(replace(settings(tmp_path, {}), program=("/bin/sh", "-c", f"echo {said}"))) as provider:
            found = await provider.discover()
            assert (found.installed, found.version) == (True, said)

    run(scene())


@pytest.mark.parametrize("name", ["A=B", "", "A\0B", "\ud800"])
def test_what_cannot_be_a_variable_is_refused_before_anything_starts(tmp_path: Path, name: str) -> None:
    async def scene() -> None:
        async with provided(settings(tmp_path, there(tmp_path))) as provider:
            for environment in ({name: "x"}, {"A": "x\0"}, {"A": "\ud800"}):
                with pytest.raises(BadArguments):
                    await provider.open(OpenSpec(Directory(str(tmp_path)), READ, environment=environment))
            assert not programs(tmp_path)

    run(scene())


@pytest.mark.case("C14")
def test_a_configuration_that_is_not_read_in_time_is_said_to_be(tmp_path: Path) -> None:
    """Without a network it waits for packages that it fetches."""

    async def scene() -> None:
        told = settings(tmp_path, {**there(tmp_path), "/config": None})
        async with provided(replace(told, deadlines=replace(told.deadlines, answer=3.0))) as provider:
            with pytest.raises(TooSlow, match=r"configuration.*network"):
                await _open(provider, tmp_path)

    run(scene())


@pytest.mark.parametrize(
    "environment",
    [
        {"OPENCODE_PURE": "1"},
        {"OPENCODE_CONFIG_CONTENT": "[]"},
        {"OPENCODE_CONFIG_CONTENT": "{"},
        {"OPENCODE_CONFIG_CONTENT": '{"plugin": 7}'},
    ],
    ids=str,
)
def test_a_server_without_our_plugin_is_not_started(tmp_path: Path, environment: dict[str, str]) -> None:
    async def scene() -> None:
        async with provided(settings(tmp_path, WELL, **environment)) as provider:
            with pytest.raises(CannotStart):
                await provider.open(OpenSpec(Directory(str(tmp_path)), FULL))

    run(scene())


@pytest.mark.case("C14")
def test_a_program_that_ends_at_once_is_told_with_its_last_words(tmp_path: Path) -> None:
    async def scene() -> None:
        script = "import sys; sys.exit('no such thing, ' + __import__('os').environ['MY_TOKEN'])"
        told = replace(settings(tmp_path, {}, MY_TOKEN="tell-nobody"), program=(sys.executable, "-c", script))
        async with provided(told) as provider:
            probe = await provider.probe(CURSOR, Directory(str(tmp_path)))
            assert probe.kind is ProbeKind.UNREACHABLE
            assert "no such thing, [hidden]" in probe.detail

    run(scene())
