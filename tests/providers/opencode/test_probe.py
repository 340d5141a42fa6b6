"""Missing is said by one sign alone; everything else that can go wrong is not it."""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from clew.kernel import Cursor, Directory, NativeId, Probe, ProbeKind
from clew.ports.provider import Deadlines, OpenSpec, Settings
from clew.programs.cursor import MALFORMED
from clew.programs.faults import ProgramFault
from clew.programs.process_tag import VARIABLE
from clew.providers.opencode.provider import MISSING, SUBAGENT, OpenCodeProvider
from tests.providers.agents import marked
from tests.providers.opencode.kit import FULL

FAKE = str(Path(__file__).with_name("fake.py"))
CURSOR = Cursor(1, NativeId("ses_0123456789abcdef"))
MISSES = {"name": "NotFoundError", "data": {"message": "Session not found: ses_0123456789abcdef"}}


def settings(tmp_path: Path, answers: dict[str, Any]) -> Settings:
    return Settings(
        program=(sys.executable, FAKE, json.dumps(answers)),
        home={"HOME": str(tmp_path)},
        deadlines=Deadlines(start=10.0, answer=1.0, close=2.0),
        state=tmp_path / "state",
    )


def probed(tmp_path: Path, answer: Any, cursor: Cursor = CURSOR) -> Probe:
    async def scene() -> Probe:
        provider = OpenCodeProvider(settings(tmp_path, {"/session/": answer}))
        try:
            probe = await provider.probe(cursor, Directory(str(tmp_path)))
            if probe.kind not in (ProbeKind.FOUND_HERE, ProbeKind.FOUND_ELSEWHERE):
                with pytest.raises(ProgramFault):
                    await provider.open(OpenSpec(Directory(str(tmp_path)), FULL, cursor))
            return probe
        finally:
            await provider.close()
            assert not any((tmp_path / "state" / "ledger").iterdir())

    return asyncio.run(scene())


@pytest.mark.case("C13")
def test_missing_is_a_404_that_names_itself(tmp_path: Path) -> None:
    probe = probed(tmp_path, [404, MISSES])
    assert (probe.kind, probe.signal) == (ProbeKind.MISSING, MISSING)


@pytest.mark.case("C14", "C15")
@pytest.mark.parametrize(
    "answer",
    [
        [500, MISSES],
        [500, {"name": "UnknownError", "data": {"message": "session not found"}}],
        [404, None],
        [404, {"name": "Other", "data": {"message": "Session not found"}}],
        [404, {"_tag": "NotFoundError"}],
        [401, None],
        [503, "Session not found"],
        [200, "not an object"],
        [200, {"id": "ses_0123456789abcdef"}],
        None,
        "close",
    ],
    ids=str,
)
def test_nothing_else_is_missing(tmp_path: Path, answer: Any) -> None:
    assert probed(tmp_path, answer).kind is ProbeKind.UNREACHABLE


@pytest.mark.case("C16", "S04")
def test_a_session_is_found_where_it_says(tmp_path: Path) -> None:
    here = {"id": CURSOR.native_id, "directory": f"{tmp_path}/.", "time": {"updated": 1}}
    assert probed(tmp_path, [200, here]).kind is ProbeKind.FOUND_HERE
    probe = probed(tmp_path, [200, {**here, "directory": "/elsewhere"}])
    assert (probe.kind, probe.directory) == (ProbeKind.FOUND_ELSEWHERE, Directory("/elsewhere"))
    probe = probed(tmp_path, [200, {**here, "parentID": "ses_parent"}])
    assert (probe.kind, probe.signal) == (ProbeKind.REJECTED, SUBAGENT)


@pytest.mark.case("C12")
@pytest.mark.parametrize("text", ["", "ses_", "ses_a/../b", "ses_a b", "ses_a\n", "SES_a", "msg_a", "ses_" + "a" * 999])
def test_a_malformed_id_starts_nothing(tmp_path: Path, text: str) -> None:
    async def scene() -> None:
        provider = OpenCodeProvider(Settings(program=("/nowhere/opencode",), home={"HOME": str(tmp_path)}))
        cursor = Cursor(1, NativeId(text))
        probe = await provider.probe(cursor, Directory(str(tmp_path)))
        assert (probe.kind, probe.signal) == (ProbeKind.REJECTED, MALFORMED)
        with pytest.raises(ProgramFault):
            await provider.open(OpenSpec(Directory(str(tmp_path)), FULL, cursor))
        with pytest.raises(ProgramFault):
            await provider.archive(cursor, Directory(str(tmp_path)), tmp_path / "archive")

    asyncio.run(scene())


@pytest.mark.case("C14", "P06")
@pytest.mark.parametrize("health", [None, [401, None], [500, None], "close"], ids=str)
def test_a_server_that_never_gets_well_is_given_up_and_gone(tmp_path: Path, health: Any) -> None:
    async def scene() -> Probe:
        told = settings(tmp_path, {"/global/health": health})
        provider = OpenCodeProvider(
            Settings(told.program, told.home, deadlines=Deadlines(start=1.0, answer=1.0, close=1.0), state=told.state)
        )
        try:
            return await provider.probe(CURSOR, Directory(str(tmp_path)))
        finally:
            assert not any((tmp_path / "state" / "ledger").iterdir())
            assert not any((tmp_path / "state" / "scratch").iterdir())

    assert asyncio.run(scene()).kind is ProbeKind.UNREACHABLE
    assert not [pid for pid in marked(f"HOME={tmp_path}") if VARIABLE in Path(f"/proc/{pid}/environ").read_text()]
