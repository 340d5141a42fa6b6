"""Probing: every refusal of Codex has one code, so what counts is seen on disk beside what it says."""

import asyncio
from pathlib import Path

import pytest

from clew.kernel import Cursor, NativeId, ProbeKind
from clew.programs.cursor import MALFORMED
from clew.programs.faults import Refused, SessionBusy, SessionMissing
from clew.programs.locks import is_locked, lock_session
from clew.providers.codex.store import SessionArchived
from clew.providers.codex.thread_calls import DAMAGED, NO_ROLLOUT
from tests.providers.acp.locks import preset_locks
from tests.providers.codex.kit import Lab

UNKNOWN = Cursor(1, NativeId("01a1e1d6-05fc-78b2-b1de-8f0bdb91b141"))


@pytest.mark.case("P05", "C29")
def test_a_session_that_another_provider_of_the_home_has_is_busy(lab: Lab, tmp_path: Path) -> None:
    async def scene() -> None:
        provider = lab.provider()
        cursor = await lab.begun(provider)
        archived = await provider.archive(cursor, lab.directory(), tmp_path / "copy")
        locks = preset_locks("codex", {"CODEX_HOME": str(lab.root())})
        hold = lock_session(locks, cursor.native_id)
        assert (await provider.probe(cursor, lab.directory())).kind is ProbeKind.BUSY
        with pytest.raises(SessionBusy):
            await lab.open(provider, cursor)
        with pytest.raises(SessionBusy):
            await provider.restore(archived.path, lab.directory())
        hold.release()
        # And the other way round, from the beginning on.
        for session in (await lab.open(provider, cursor), await lab.open(provider)):
            assert session.landing.native_id is not None
            assert is_locked(locks, session.landing.native_id)
            await session.close()
            assert not is_locked(locks, session.landing.native_id)

    lab.play(scene())


@pytest.mark.case("C13", "P11")
def test_a_session_is_missing_when_no_file_holds_it(lab: Lab) -> None:
    async def scene() -> None:
        provider = lab.provider()
        cursor = await lab.begun(provider)
        probe = await provider.probe(UNKNOWN, lab.directory())
        assert (probe.kind, probe.signal) == (ProbeKind.MISSING, NO_ROLLOUT)
        with pytest.raises(SessionMissing):
            await lab.open(provider, UNKNOWN)
        with pytest.raises(SessionMissing):
            await lab.open(provider, UNKNOWN, fork=True)
        # Its database still knows the thread; only the file can tell that it is gone.
        (path,) = lab.rollouts()
        path.unlink()
        assert (await lab.raw("thread/read", {"threadId": cursor.native_id}))["thread"]["id"] == cursor.native_id
        assert (await provider.probe(cursor, lab.directory())).kind is ProbeKind.MISSING

    lab.play(scene())


@pytest.mark.case("C12", "S04")
@pytest.mark.parametrize("id_", ["not-a-uuid", "../../../etc/passwd", UNKNOWN.native_id.upper(), ""])
def test_a_malformed_id_is_rejected_and_starts_nothing(lab: Lab, id_: str) -> None:
    async def scene() -> None:
        provider, cursor = lab.provider(), Cursor(1, NativeId(id_))
        probe = await provider.probe(cursor, lab.directory())
        assert (probe.kind, probe.signal) == (ProbeKind.REJECTED, MALFORMED)
        assert MALFORMED in provider.capabilities.rejection_signals
        with pytest.raises(Refused, match="not a session id"):
            await lab.open(provider, cursor)
        # A cursor that a later Clew wrote is not known to be bad.
        later = await provider.probe(Cursor(2, UNKNOWN.native_id), lab.directory())
        assert later.kind is ProbeKind.UNREACHABLE
        assert not (lab.root() / "state_5.sqlite").exists()

    lab.play(scene())


@pytest.mark.case("C14")
def test_an_archived_session_is_neither_missing_nor_opened(lab: Lab) -> None:
    async def scene() -> None:
        provider = lab.provider()
        cursor = await lab.begun(provider)
        await lab.raw("thread/archive", {"threadId": cursor.native_id})
        probe = await provider.probe(cursor, lab.directory())
        assert probe.kind is ProbeKind.UNREACHABLE
        assert "codex unarchive" in probe.detail
        with pytest.raises(SessionArchived):
            await lab.open(provider, cursor)
        assert await provider.sessions() == []
        await lab.raw("thread/unarchive", {"threadId": cursor.native_id})
        assert (await provider.probe(cursor, lab.directory())).kind is ProbeKind.FOUND_HERE

    lab.play(scene())


@pytest.mark.case("C29", "P05")
def test_a_session_that_another_program_has_is_busy_and_can_be_forked(lab: Lab) -> None:
    async def scene() -> None:
        provider = lab.provider()
        cursor = await lab.begun(provider, "first")
        end = await lab.holding(cursor)
        try:
            assert (await provider.probe(cursor, lab.directory())).kind is ProbeKind.BUSY
            with pytest.raises(SessionBusy):
                await lab.open(provider, cursor)
            assert (await lab.goes_on(provider, cursor, "aside", fork=True)).seen.users == 2
        finally:
            await end()
        assert (await provider.probe(cursor, lab.directory())).kind is ProbeKind.FOUND_HERE

    lab.play(scene())


@pytest.mark.case("C14")
@pytest.mark.parametrize("spoiled", ["garbage first", "empty"])
def test_a_file_that_codex_does_not_read_is_rejected_not_missing(lab: Lab, spoiled: str) -> None:
    async def scene() -> None:
        provider = lab.provider()
        cursor = await lab.begun(provider)
        (path,) = lab.rollouts()
        path.write_bytes(b"" if spoiled == "empty" else b"garbage\n" + path.read_bytes())
        # Without what its database remembers, the program must read the file.
        for database in lab.root().glob("*.sqlite*"):
            database.unlink()
        probe = await provider.probe(cursor, lab.directory())
        assert (probe.kind, probe.signal) == (ProbeKind.REJECTED, DAMAGED)

    lab.play(scene())


@pytest.mark.case("C14")
def test_a_home_that_is_not_there_is_not_asked(lab: Lab) -> None:
    async def scene() -> None:
        provider = lab.provider()
        lab.root().rename(lab.root().with_name("unmounted"))
        assert (await provider.probe(UNKNOWN, lab.directory())).kind is ProbeKind.UNREACHABLE
        assert not lab.root("a").with_name(".codex").joinpath("sessions").exists()

    lab.play(scene())


def test_two_first_starts_in_a_new_home_both_succeed(lab: Lab) -> None:
    async def scene() -> None:
        one, two = lab.provider(), lab.provider()
        await asyncio.gather(lab.begun(one, "one"), lab.begun(two, "two"), lab.begun(one, "three"))
        assert {found.title for found in await one.sessions()} == {"one", "two", "three"}

    lab.play(scene())


@pytest.mark.case("C16")
def test_a_fork_of_nothing_is_no_new_session(lab: Lab) -> None:
    async def scene() -> None:
        with pytest.raises(Refused, match="fork"):
            await lab.open(lab.provider(), fork=True)

    lab.play(scene())
    assert not lab.rollouts()
