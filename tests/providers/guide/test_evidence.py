"""What the guide says of a prompt after it has ended: exactly how far it came, by the id that it wrote down first."""

import asyncio
import os
import shlex
import signal
import sys
from pathlib import Path

import pytest

from clew.kernel import Attestation as Told
from clew.kernel import Cursor, Evidence, NativeId, PermissionMode, PromptId, Sent, digest_of
from clew.ports.events import Ending
from clew.ports.provider import LiveSession, Provider, Settings
from clew.providers.guide import make
from clew.providers.guide.archive import restore_archive, write_archive
from clew.providers.guide.memory import BEGUN, Memory, Turn, read, write
from tests.providers.contract.stage import Turned
from tests.providers.kit import QUICK, opened, place, run, spec, turn

ONE, TWO, THREE = (PromptId(f"0198f0aa-0000-7000-8000-00000000000{number}") for number in (1, 2, 3))


def guide(tmp_path: Path, state: Path | None = None) -> Provider:
    return make(Settings(home={"GUIDE_HOME": str(tmp_path / "home")}, deadlines=QUICK, state=state))


def sent(id_: PromptId, text: str = "") -> Sent:
    return Sent(id_, digest_of(text))


def address(session: LiveSession) -> Cursor:
    assert session.address is not None
    return session.address


async def told(session: LiveSession, text: str, id_: PromptId) -> Turned:
    return Turned(tuple([event async for event in session.turn(text, id_)]))


def pid_of(home: Path) -> int:
    """The one process that this test has started with this home."""
    found = [int(each.name) for each in Path("/proc").glob("[0-9]*") if _has(each, home)]
    assert len(found) == 1, found
    return found[0]


def _has(process: Path, home: Path) -> bool:
    try:
        # The name in brackets may hold anything, so what follows the last bracket is read.
        ours = int((process / "stat").read_text().rpartition(")")[2].split()[1]) == os.getpid()
        return ours and f"GUIDE_HOME={home}".encode() in (process / "environ").read_bytes().split(b"\0")
    except OSError:
        return False


@pytest.mark.case("P19", "C35")
def test_a_prompt_is_found_by_its_id_with_what_became_of_it(tmp_path: Path) -> None:
    async def scene() -> None:
        provider = guide(tmp_path)
        assert provider.capabilities.hears
        async with opened(provider, spec(tmp_path)) as session:
            here, where = address(session), place(tmp_path)
            assert (await provider.heard(here, where, sent(ONE))).evidence is Evidence.UNKNOWN, "it is open"
            reply = (await told(session, "the same words", ONE)).reply
            assert (await told(session, "FAIL: 500", THREE)).done.ending is Ending.FAILED
            await session.close()
            finished = await provider.heard(here, where, sent(ONE))
            assert (finished.evidence, finished.reply) == (Evidence.FINISHED, reply)
            # Not by its words.
            assert (await provider.heard(here, where, sent(TWO, "the same words"))).evidence is Evidence.UNSENT
            assert (await provider.heard(here, where, sent(THREE))).evidence is Evidence.CUT_OFF
            again = await provider.open(spec(tmp_path, cursor=here))
            cut = await told(again, "CUT", TWO)
            assert cut.done.ending is Ending.FAILED
            await again.close()
            assert (await provider.heard(here, where, sent(TWO))).evidence is Evidence.CUT_OFF

    run(scene())


@pytest.mark.case("P19")
def test_words_within_a_turn_are_found_by_their_own_id(tmp_path: Path) -> None:
    async def scene() -> None:
        provider = guide(tmp_path)
        async with opened(provider, spec(tmp_path)) as session:
            going = asyncio.create_task(told(session, "RUN: sleep 1\nRUN: true", ONE))
            await asyncio.sleep(0.5)
            assert await session.steer("SAY: as I was told", TWO)
            assert (await going).reply == "as I was told"
            here = address(session)
            await session.close()
            for id_, evidence in ((ONE, Evidence.FINISHED), (TWO, Evidence.FINISHED), (THREE, Evidence.UNSENT)):
                assert (await provider.heard(here, place(tmp_path), sent(id_))).evidence is evidence

    run(scene())


@pytest.mark.case("P19")
@pytest.mark.parametrize("moment", [0.0, 0.002, 0.01, 0.05, 0.3])
def test_what_was_not_written_when_it_was_killed_was_not_begun(tmp_path: Path, moment: float) -> None:
    """The mark that the tool leaves is the outside witness: it is never there without the evidence."""
    mark = tmp_path / "mark"
    text = f"RUN: touch {shlex.quote(str(mark))}\nSLOW: 1"

    async def scene() -> Told:
        provider = guide(tmp_path)
        async with opened(provider, spec(tmp_path, PermissionMode.FULL)) as session:
            await turn(session, "first")
            here = address(session)
            going = asyncio.create_task(told(session, text, ONE))
            await asyncio.sleep(moment)
            os.kill(pid_of(tmp_path / "home"), signal.SIGKILL)
            await going
            await session.close()
            return await provider.heard(here, place(tmp_path), sent(ONE))

    heard = run(scene())
    assert heard.evidence in (Evidence.UNSENT, Evidence.TAKEN, Evidence.CUT_OFF)
    assert not mark.exists() or heard.evidence is Evidence.CUT_OFF
    assert moment < 0.3 or heard.evidence is Evidence.CUT_OFF


@pytest.mark.case("P19")
def test_each_answer_is_one_of_the_memory(tmp_path: Path) -> None:
    memory = Memory(tmp_path / "home")
    turns = [
        Turn("a", ids=["1"]),
        Turn("b", ending=BEGUN, ids=["2"]),
        Turn("c", ending="cancelled", reply="half", ids=["3"]),
        Turn("d", ending="end_turn", reply="whole", ids=["4", "5"]),
        Turn("e", ending="end_turn", reply="of an earlier version"),
    ]
    session = memory.create(str(tmp_path), turns)

    async def scene() -> None:
        provider, here, where = guide(tmp_path), Cursor(1, NativeId(session.id)), place(tmp_path)

        async def asked(id_: str, cursor: Cursor = here) -> tuple[Evidence, str]:
            heard = await provider.heard(cursor, where, sent(PromptId(id_)))
            assert heard.detail
            assert heard.able
            return heard.evidence, heard.reply

        assert (await asked("1"))[0] is Evidence.UNKNOWN, "a process of the guide has it open"
        memory.release(session.id)
        assert [await asked(id_) for id_ in ("1", "2", "3", "4", "5", "6")] == [
            (Evidence.TAKEN, ""),
            (Evidence.CUT_OFF, ""),
            (Evidence.CUT_OFF, ""),
            (Evidence.FINISHED, "whole"),
            (Evidence.FINISHED, "whole"),
            (Evidence.UNSENT, ""),
        ]
        gone = Cursor(1, NativeId("guide_" + "0" * 24))
        assert (await asked("1", gone))[0] is Evidence.UNSENT, "a session that is not there holds nothing"
        assert not (tmp_path / "home" / "locks" / gone.native_id).exists()
        memory.path(session.id).write_text("{ damaged")
        assert (await asked("1"))[0] is Evidence.UNKNOWN
        assert (await asked("1", Cursor(1, NativeId("../x"))))[0] is Evidence.UNKNOWN
        (tmp_path / "home" / "sessions").rename(tmp_path / "elsewhere")
        assert (await asked("1"))[0] is Evidence.UNKNOWN, "a memory that is not there says nothing"

    run(scene())


@pytest.mark.case("P19")
def test_what_a_crash_of_clew_left_running_is_ended_before_it_is_asked(tmp_path: Path) -> None:
    """Clew is killed within a turn: its guide goes on until it is ended, and may finish what it was told."""
    state, said = tmp_path / "state", tmp_path / "said"
    code = f"""
import asyncio
from pathlib import Path
from tests.providers.guide.test_evidence import ONE, address, guide, told
from tests.providers.kit import spec
async def main():
    session = await guide(Path({str(tmp_path)!r}), Path({str(state)!r})).open(spec(Path({str(tmp_path)!r})))
    going = asyncio.create_task(told(session, "RUN: sleep 30", ONE))
    await asyncio.sleep(0.8)
    Path({str(said)!r}).write_text(address(session).native_id)
    await going
asyncio.run(main())
"""

    async def scene() -> None:
        clew = await asyncio.create_subprocess_exec(sys.executable, "-c", code)
        try:
            async with asyncio.timeout(20):
                while not said.exists() or not said.read_text():
                    await asyncio.sleep(0.05)
        finally:
            clew.kill()
            await clew.wait()
        provider = guide(tmp_path, state)
        heard = await provider.heard(Cursor(1, NativeId(said.read_text())), place(tmp_path), sent(ONE))
        assert heard.evidence is Evidence.CUT_OFF, heard
        await provider.close()

    run(scene())


def test_no_text_holds_the_id(tmp_path: Path) -> None:
    async def scene() -> None:
        provider = guide(tmp_path)
        async with opened(provider, spec(tmp_path, instructions="Be kind.")) as session:
            turned = await told(session, "hello", ONE)
            assert ONE not in repr(turned.events)
            stored = Memory(tmp_path / "home").load(address(session).native_id).turns
            assert [(each.prompt, each.told, each.ids) for each in stored] == [("hello", "Be kind.", [ONE])]

    run(scene())


def test_ids_travel_and_turns_of_before_stay_as_they_were(tmp_path: Path) -> None:
    memory = Memory(tmp_path / "home")
    session = memory.create(str(tmp_path), [Turn("old", reply="r", ending="end_turn"), Turn("new", ids=[ONE])])
    memory.release(session.id)
    assert read(write(session)).turns == session.turns
    assert write(session).count(b'"ids"') == 1
    write_archive(tmp_path / "home", NativeId(session.id), tmp_path / "a.zip")
    restore_archive(tmp_path / "other", tmp_path / "a.zip", place(tmp_path))
    assert Memory(tmp_path / "other").load(session.id).turns == session.turns
