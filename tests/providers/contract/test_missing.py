"""Missing: said only by the program's own structured sign, and an unknown session never becomes a new one."""

import re
import sys
from dataclasses import replace

import pytest

from clew.kernel import Cursor, NativeId, ProbeKind
from clew.ports.fault import Fault
from clew.ports.provider import Settings
from clew.programs.cursor import MALFORMED
from tests.providers.contract.stage import Stage, core, faults


def unknown(cursor: Cursor) -> Cursor:
    """The id of no session, of the same shape: every letter and digit at its end is another one."""
    head, tail = cursor.native_id[:-12], cursor.native_id[-12:]
    other = "".join("7" if each == "3" else "3" if each.isalnum() else each for each in tail)
    return replace(cursor, native_id=NativeId(head + other))


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


@pytest.mark.case("C32", "P11")
async def test_an_unknown_session_is_never_opened_as_a_new_one(stage: Stage) -> None:
    cursor, _ = await stage.begun()
    before = await stage.ids()
    with pytest.raises(Fault):
        await stage.open(unknown(cursor))
    assert await stage.ids() == before


@pytest.mark.case("C13", "S09")
async def test_a_session_of_another_home_is_not_here(stage: Stage) -> None:
    can = stage.provider.capabilities
    cursor, _ = await stage.begun(provider=stage.other)
    probe = await stage.provider.probe(cursor, stage.directory())
    if can.missing_signals:
        assert probe.kind is ProbeKind.MISSING
        assert probe.signal in can.missing_signals
    else:
        assert probe.kind is ProbeKind.UNREACHABLE
        stage.unable("the program gives no sign by which a missing session is told from a failure")
    with pytest.raises(Fault):
        await stage.open(cursor)


_FOREIGN = ("guide_0123456789abcdef01234567", "ses_7f3a9b2c1d4e5f607Qx8Zy9Wk2", "1f0d9c3e-5b7a-4c2d-8e6f-0a1b2c3d4e5f")
"""Ids as other programs give them."""


@core
@pytest.mark.case("C12", "S04")
async def test_a_malformed_or_foreign_id_reaches_no_program(stage: Stage) -> None:
    before = stage.rig.processes("a")
    shape = stage.provider.capabilities.id_shape or ".+"
    foreign = [text for text in _FOREIGN if not re.fullmatch(shape, text)]
    for text in ("", " ", "../../etc/passwd", "--help", "not an id", "a\nb", "x" * 5000, *foreign):
        cursor = Cursor(1, NativeId(text))
        with pytest.raises(Fault):
            await stage.open(cursor)
        probe = await stage.provider.probe(cursor, stage.directory())
        assert (probe.kind, probe.signal) == (ProbeKind.REJECTED, MALFORMED)
    assert MALFORMED in stage.provider.capabilities.rejection_signals
    assert stage.rig.processes("a") == before


@pytest.mark.case("C12")
async def test_a_cursor_of_another_version_is_not_read(stage: Stage) -> None:
    cursor, _ = await stage.begun()
    later = replace(cursor, version=max(stage.provider.capabilities.cursor_versions) + 1)
    with pytest.raises(Fault):
        await stage.open(later)
    assert (await stage.provider.probe(later, stage.directory())).kind in (ProbeKind.UNREACHABLE, ProbeKind.REJECTED)


@pytest.mark.case("C14")
async def test_a_failing_model_makes_no_session_missing(stage: Stage) -> None:
    if stage.rig.model is None:
        stage.unable("there is no model")
        return
    cursor, _ = await stage.begun()
    for fault in faults(stage.rig.model).values():
        fault()
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
