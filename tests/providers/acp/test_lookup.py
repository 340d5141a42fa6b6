"""A session is gone on with only where it is known to be there, and no id is given out that leads nowhere."""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from clew.kernel import Cursor, NativeId, ProbeKind
from clew.ports.provider import Provider, Settings
from clew.programs.cursor import MALFORMED
from clew.programs.faults import NotUnderstood, ProgramFault, Refused
from clew.providers.acp import make
from clew.providers.opencode.home import locks, store
from tests.providers.acp.locks import preset_locks
from tests.providers.kit import QUICK, opened, place, run, spec, turn

AGENT = Path(__file__).with_name("odd_agent.py")
LISTS = {"sessionCapabilities": {"list": {}, "resume": {}}, "loadSession": True}
UNKNOWN = Cursor(1, NativeId("unknown-1"))


def odd(told: dict[str, str] | None = None, **how: Any) -> Provider:
    program = (sys.executable, str(AGENT), json.dumps(how))
    return make(Settings(program=program, options=told or {}, deadlines=QUICK))


@pytest.mark.case("P11")
def test_what_is_not_on_a_list_is_neither_found_nor_missing_unless_more_is_known(tmp_path: Path) -> None:
    async def scene() -> None:
        doubtful = odd(abilities=LISTS, answers_unknown=True)
        assert (await doubtful.probe(UNKNOWN, place(tmp_path))).kind is ProbeKind.UNREACHABLE
        with pytest.raises(Refused, match="not on the agent's list"):
            await doubtful.open(spec(tmp_path, cursor=UNKNOWN))
        honest = odd(abilities=LISTS)
        assert (await honest.probe(UNKNOWN, place(tmp_path))).kind is ProbeKind.MISSING
        short = odd({"list": "short"}, abilities=LISTS, answers_unknown=True)
        assert (await short.probe(UNKNOWN, place(tmp_path))).kind is ProbeKind.FOUND_HERE
        async with opened(short, spec(tmp_path, cursor=UNKNOWN)) as session:
            assert session.cursor == UNKNOWN

    run(scene())


@pytest.mark.case("P11")
def test_a_list_that_is_not_read_to_its_end_makes_nothing_missing(tmp_path: Path) -> None:
    async def scene() -> None:
        endless = odd({"list": "whole"}, abilities=LISTS, next_page="again")
        assert (await endless.probe(UNKNOWN, place(tmp_path))).kind is ProbeKind.UNREACHABLE
        with pytest.raises(NotUnderstood, match="no end"):
            await endless.open(spec(tmp_path, cursor=UNKNOWN))

    run(scene())


@pytest.mark.parametrize("id_", ["conv:abc/1", "x", "u" * 200, "séance-1"])
def test_any_id_that_can_be_kept_is_taken(tmp_path: Path, id_: str) -> None:
    async def scene() -> None:
        provider = odd(new_id=id_, abilities={"loadSession": True}, answers_unknown=True)
        async with opened(provider, spec(tmp_path)) as session:
            await turn(session, "hello")
            cursor = session.cursor
            await session.close()
            assert cursor is not None
            assert (await provider.probe(cursor, place(tmp_path))).kind is ProbeKind.FOUND_HERE

    run(scene())


@pytest.mark.parametrize("id_", ["a b", "../../etc", "--help", "a\nb", "u" * 300, "a\u202eb"])
def test_an_id_that_cannot_be_kept_is_not_given_out(tmp_path: Path, id_: str) -> None:
    async def scene() -> None:
        provider = odd(new_id=id_, abilities={"loadSession": True})
        with pytest.raises(NotUnderstood, match="no id"):
            await provider.open(spec(tmp_path))
        await provider.close()

    run(scene())


@pytest.mark.parametrize("id_", ["latest", "3"])
def test_gemini_is_given_no_word_that_stands_for_another_session(tmp_path: Path, id_: str) -> None:
    async def scene() -> None:
        provider = make(Settings(program=("/nowhere",), home={"HOME": str(tmp_path)}, options={"agent": "gemini"}))
        probe = await provider.probe(Cursor(1, NativeId(id_)), place(tmp_path))
        assert (probe.kind, probe.signal) == (ProbeKind.REJECTED, MALFORMED)
        assert not provider.capabilities.missing_signals

    run(scene())


@pytest.mark.case("P05")
@pytest.mark.parametrize("database", [None, "/elsewhere/other.db", "custom.db"])
def test_a_preset_has_its_locks_where_opencode_has_them(tmp_path: Path, database: str | None) -> None:
    for home in ({"HOME": str(tmp_path)}, {"HOME": "/x", "XDG_DATA_HOME": str(tmp_path)}):
        where = {**home, **({} if database is None else {"OPENCODE_DB": database})}
        assert preset_locks("opencode", where) == locks(store(where))


def test_a_provider_that_is_closed_meanwhile_opens_nothing(tmp_path: Path) -> None:
    async def scene() -> None:
        for delay in (0.0, 0.05, 0.1, 0.15, 0.2):
            provider = odd()
            opening = asyncio.create_task(provider.open(spec(tmp_path)))
            await asyncio.sleep(delay)
            was_open = opening.done()
            await provider.close()
            if not was_open:
                with pytest.raises(ProgramFault):
                    await opening

    run(scene())


def test_a_list_is_whole_or_short() -> None:
    with pytest.raises(Refused, match="half"):
        odd({"list": "half"})
