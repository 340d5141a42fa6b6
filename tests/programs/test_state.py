"""The ledger: what an owner that is gone left going is ended by the next; what belongs to a living one is its own."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from clew.programs import process_tag
from clew.programs.faults import CannotStart
from clew.programs.process_tag import Owner, ProcessTag, Swept, end_tagged, lowest_child, new_tag, tagged_processes
from clew.programs.state import Ledger, Scratch
from tests.programs.kit import alive, eventually, pid_in, run, shell

OWNER = """
import asyncio, sys
from pathlib import Path
sys.path.insert(0, {root!r})
from clew.programs.state import Ledger
from tests.programs.kit import shell

async def main():
    place = Path({place!r})
    command = "setsid sleep 300 & echo $! > left; sleep 300 & echo $! > child; sleep 300"
    await shell(command, place, Ledger(place / "ledger"))
    (place / "ready").touch()
    await asyncio.sleep(300)

asyncio.run(main())
"""


def test_what_an_owner_left_that_was_killed_is_ended(tmp_path: Path) -> None:
    root = str(Path(__file__).parents[2])
    owner = subprocess.Popen([sys.executable, "-c", OWNER.format(root=root, place=str(tmp_path))])
    try:

        async def scene() -> None:
            left, child = await pid_in(tmp_path / "left"), await pid_in(tmp_path / "child")
            assert await eventually((tmp_path / "ready").exists)
            ledger = Ledger(tmp_path / "ledger")
            assert ledger.end_orphans() == 0, "its owner lives"
            assert alive(left)
            owner.send_signal(signal.SIGKILL)
            owner.wait()
            assert alive(left)
            assert alive(child)
            assert ledger.end_orphans() >= 3
            assert not alive(left)
            assert not alive(child)
            assert not list((tmp_path / "ledger").iterdir())
            assert ledger.end_orphans() == 0

        run(scene())
    finally:
        owner.kill()
        owner.wait()


def test_a_program_of_ours_survives_a_second_provider_that_settles(tmp_path: Path) -> None:
    async def scene() -> None:
        program = await shell("sleep 300", tmp_path, Ledger(tmp_path / "ledger"))
        assert Ledger(tmp_path / "ledger").end_orphans() == 0
        assert alive(program.pid)
        await program.end(1)
        assert not list((tmp_path / "ledger").iterdir())

    run(scene())


@pytest.mark.parametrize("text", ["", "nonsense", "1 2 3", "x y"])
def test_an_entry_that_cannot_be_read_has_no_owner(tmp_path: Path, text: str) -> None:
    tag = new_tag()
    process = subprocess.Popen(["sleep", "300"], env=tag.environment)
    try:
        ledger = Ledger(tmp_path)
        (tmp_path / tag.token).write_text(text)
        assert ledger.end_orphans() == 1
        assert process.wait(5) == -9
    finally:
        process.kill()
        process.wait()


def test_an_owner_is_not_mistaken_for_another_with_its_number() -> None:
    ourselves = Owner.ourselves()
    assert ourselves.lives
    assert Owner.read(ourselves.written) == ourselves
    assert not Owner(ourselves.pid, ourselves.started + 1).lives
    assert not Owner(2**22 + 1, 1).lives


def test_one_that_has_ended_and_was_not_waited_for_does_not_live() -> None:
    code = "from clew.programs.process_tag import Owner; print(Owner.ourselves().written, flush=True); input()"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        owner = Owner.read(child.stdout.readline().decode())
        assert owner.lives
        child.stdin.write(b"\n")
        child.stdin.close()
        assert run(eventually(lambda: not owner.lives))
        assert Path(f"/proc/{child.pid}/stat").exists()
    assert not owner.lives


def test_a_mark_is_found_in_no_process_but_its_own() -> None:
    mine, other = new_tag(), new_tag()
    process = subprocess.Popen(["sleep", "300"], env=mine.environment)
    try:
        assert tagged_processes(mine) == [process.pid]
        assert tagged_processes(other) == []
        assert tagged_processes(other, mine) == [process.pid]
        assert tagged_processes(ProcessTag(mine.token[:-1])) == []
        assert end_tagged([]) == Swept(0, clean=True)
        assert end_tagged([other]) == Swept(0, clean=True)
        assert end_tagged([mine]) == Swept(1, clean=True)
        assert process.wait(5) == -9
    finally:
        process.kill()
        process.wait()


def test_only_what_can_have_been_started_since_is_looked_at_while_numbers_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_tag, "_pid_max", lambda: 2**22)
    tag, began = new_tag(), time.monotonic()
    process = subprocess.Popen(["sleep", "300"], env=tag.environment)
    try:
        assert lowest_child(process.pid, began) == process.pid
        assert lowest_child(process.pid, began - 60) == 0, "numbers may have come round by now"
        assert lowest_child(2**22, began) == 0, "they have: none that high was given yet"
        monkeypatch.setattr(process_tag, "_pid_max", lambda: 1)
        assert lowest_child(process.pid, began) == 0, "where there are few, they come round at once"
        assert end_tagged([tag], lowest=process.pid + 1) == Swept(0, clean=True)
        assert end_tagged([tag], lowest=process.pid) == Swept(1, clean=True)
    finally:
        process.kill()
        process.wait()


def test_whoever_ended_while_it_was_looked_may_have_started_another(monkeypatch: pytest.MonkeyPatch) -> None:
    tag = new_tag()
    with subprocess.Popen(["true"]) as gone:
        gone.wait(10)
    process = subprocess.Popen(["sleep", "300"], env=tag.environment)
    try:
        lists = iter([[gone.pid], [process.pid], []])
        monkeypatch.setattr(process_tag, "_processes", lambda: next(lists))
        assert end_tagged([tag]) == Swept(1, clean=True)
        # One that is known to have ended is no reason to look again, and others not for ever.
        lists = iter([[gone.pid]])
        assert end_tagged([tag], over=gone.pid) == Swept(0, clean=True)
        listed = 0

        def others() -> list[int]:
            nonlocal listed
            listed += 1
            return [2**22 + listed]

        monkeypatch.setattr(process_tag, "_processes", others)
        assert end_tagged([tag]) == Swept(0, clean=True)
        assert 1 < listed < 100
    finally:
        process.kill()
        process.wait()


def test_a_process_that_is_becoming_another_program_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the midst of an exec it shows no environment; who looked only once would leave it running."""
    tag = new_tag()
    process = subprocess.Popen(["sleep", "300"], env=tag.environment)
    try:
        looks = 0
        shown = process_tag._read  # noqa: SLF001

        def late(name: str) -> bytes | None:
            nonlocal looks
            its = name == f"{process.pid}/environ"
            looks += its
            return b"" if its and looks < 5 else shown(name)

        monkeypatch.setattr(process_tag, "_read", late)
        monkeypatch.setattr(process_tag, "_is_in_exec", lambda pid, _: pid == process.pid)
        assert tagged_processes(tag) == [process.pid]
        looks = -(10**9)
        assert tagged_processes(tag) == [], "nor does anybody wait for ever"
    finally:
        process.kill()
        process.wait()


def test_a_look_does_not_wait_for_those_that_never_show_anything(monkeypatch: pytest.MonkeyPatch) -> None:
    process = subprocess.Popen(["sleep", "300"], env={})
    zombie = subprocess.Popen(["true"])
    try:
        assert run(eventually(lambda: " Z " in Path(f"/proc/{zombie.pid}/stat").read_text()))
        monkeypatch.setattr(process_tag, "_processes", lambda: [1, process.pid, zombie.pid])
        monkeypatch.setattr("clew.programs.process_tag.time.sleep", lambda _: pytest.fail("it waits"))
        assert tagged_processes(new_tag()) == []
    finally:
        monkeypatch.undo()
        process.kill()
        process.wait()
        zombie.wait()


def test_we_are_never_among_those_that_are_ended() -> None:
    tag = new_tag()
    code = (
        "import os, sys; from clew.programs.process_tag import ProcessTag, end_tagged, tagged_processes;"
        "m = ProcessTag(os.environ['CLEW_MARK']); print(tagged_processes(m), end_tagged([m]).ended)"
    )
    said = subprocess.run([sys.executable, "-c", code], env=tag.environment, capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "[] 0"


def test_the_ledger_is_its_owners_alone(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "deep" / "ledger")
    ledger.add(ProcessTag("ab"))
    assert (tmp_path / "deep" / "ledger").stat().st_mode & 0o77 == 0
    assert (tmp_path / "deep" / "ledger" / "ab").stat().st_mode & 0o77 == 0
    ledger.remove(ProcessTag("ab"))
    ledger.remove(ProcessTag("ab"))
    assert list((tmp_path / "deep" / "ledger").iterdir()) == []


def test_where_nothing_can_be_kept_nothing_is_started(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(CannotStart, match="file"):
        Ledger(tmp_path / "file" / "ledger")
    with pytest.raises(CannotStart, match="file"):
        Scratch(tmp_path / "file").make()
    ledger = Ledger(tmp_path / "ledger")
    (tmp_path / "ledger").rmdir()
    for attempt in (lambda: ledger.add(ProcessTag("ab")), ledger.end_orphans):
        with pytest.raises(CannotStart):
            attempt()

    async def scene() -> None:
        with pytest.raises(CannotStart):
            await shell("touch ran", tmp_path, ledger)

    run(scene())
    assert not (tmp_path / "ran").exists()
