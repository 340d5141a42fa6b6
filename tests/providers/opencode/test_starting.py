"""Its server: one for a home, whoever asks first, and nothing of it left when a start fails or is called off."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from clew.kernel import Cursor, Directory, NativeId, ProbeKind
from clew.ports.provider import Deadlines, OpenSpec, Settings
from clew.programs.faults import CannotStart, Refused
from clew.programs.marking import VARIABLE
from clew.providers.opencode.provider import OpenCodeProvider
from tests.providers.agents import marked
from tests.providers.contract.stage import eventually
from tests.providers.kit import run
from tests.providers.opencode.kit import FULL

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
    mark = f"{VARIABLE}=".encode()
    return [pid for pid in marked(f"HOME={home}") if mark in Path(f"/proc/{pid}/environ").read_bytes()]


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
