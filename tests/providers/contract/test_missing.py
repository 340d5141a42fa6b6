"""Missing: said only by the program's own structured sign, and an unknown session never becomes a new one."""

import sys
from dataclasses import replace

import pytest

from clew.kernel import Cursor, NativeId, ProbeKind
from clew.ports.fault import Fault
from clew.ports.provider import Settings
from tests.providers.contract.stage import Stage, core

_FOUND = (ProbeKind.FOUND_HERE, ProbeKind.FOUND_ELSEWHERE, ProbeKind.BUSY)


def unknown(cursor: Cursor) -> Cursor:
    """The id of no session, of the same shape: every letter and digit at its end is another one."""
    head, tail = cursor.native_id[:-12], cursor.native_id[-12:]
    return replace(cursor, native_id=NativeId(head + "".join("7" if c == "3" else "3" if c.isalnum() else c for c in tail)))


@core
@pytest.mark.case("C13", "P11")
async def test_an_unknown_session_is_missing_by_a_declared_sign(stage: Stage) -> None:
    can = stage.provider.capabilities
    cursor, _ = await stage.begun()
    before = await stage.ids()
    probe = await stage.provider.probe(unknown(cursor), stage.directory())
    if not can.missing_signals:
        assert probe.kind is ProbeKind.UNREACHABLE
        stage.unable("the program gives no sign by which a missing session is told from a failure")
        return
    assert probe.kind is ProbeKind.MISSING
    assert probe.signal in can.missing_signals
    assert await stage.ids() == before


@core
@pytest.mark.case("C32", "P11")
async def test_an_unknown_session_is_never_opened_as_a_new_one(stage: Stage) -> None:
    cursor, _ = await stage.begun()
    before = await stage.ids()
    with pytest.raises(Fault):
        await stage.open(unknown(cursor))
    assert await stage.ids() == before


@pytest.mark.case("C12", "S04")
@pytest.mark.parametrize("text", ["", " ", "../../etc/passwd", "--help", "not an id", "a\nb", "x" * 5000])
async def test_a_malformed_id_reaches_no_program(stage: Stage, text: str) -> None:
    before, cursor = stage.rig.processes("a"), Cursor(1, NativeId(text))
    with pytest.raises(Fault):
        await stage.open(cursor)
    try:
        probe = await stage.provider.probe(cursor, stage.directory())
    except Fault:
        pass
    else:
        assert probe.kind not in _FOUND
        assert not (probe.kind is ProbeKind.MISSING and probe.signal in stage.provider.capabilities.missing_signals)
    assert stage.rig.processes("a") == before


@pytest.mark.case("C12")
async def test_a_cursor_of_another_version_is_not_read(stage: Stage) -> None:
    cursor, _ = await stage.begun()
    later = replace(cursor, version=max(stage.provider.capabilities.cursor_versions) + 1)
    with pytest.raises(Fault):
        await stage.open(later)


@pytest.mark.case("C14")
@pytest.mark.parametrize("how", ["500", "401", "hang", "down"])
async def test_a_failing_model_makes_no_session_missing(stage: Stage, how: str) -> None:
    if stage.rig.model is None:
        stage.unable("there is no model")
        return
    cursor, _ = await stage.begun()
    match how:
        case "hang":
            stage.rig.model.hang(mute=True)
        case "down":
            stage.rig.model.down()
        case _:
            stage.rig.model.fail(int(how))
    probe = await stage.provider.probe(cursor, stage.directory())
    assert probe.kind in (ProbeKind.FOUND_HERE, ProbeKind.UNREACHABLE)
    probe = await stage.provider.probe(unknown(cursor), stage.directory())
    assert probe.kind in (ProbeKind.MISSING, ProbeKind.UNREACHABLE)


_SAYS_SO = """
import sys
print("Error: 404 session not found: no such session, NotFoundError", flush=True)
print('{"name": "NotFoundError", "error": "session not found"}', flush=True)
sys.exit("Error: session not found")
"""


@pytest.mark.case("C14", "C15")
@pytest.mark.parametrize("how", ["says not found", "cannot start"])
async def test_a_failing_program_makes_no_session_missing(stage: Stage, how: str) -> None:
    cursor, _ = await stage.begun()
    program = ("/nowhere/agent",) if how == "cannot start" else (sys.executable, "-c", _SAYS_SO)

    def broken(settings: Settings) -> Settings:
        return replace(settings, program=program)

    probe = await stage.anew(change=broken).probe(cursor, stage.directory())
    # A provider may read the program's own store without its help.
    assert probe.kind in (ProbeKind.UNREACHABLE, ProbeKind.FOUND_HERE)
    with pytest.raises(Fault):
        await stage.open(cursor, provider=stage.anew(change=broken))
