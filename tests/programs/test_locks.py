"""A session is held by one at a time, across processes, and whoever dies holds nothing."""

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from clew.programs.faults import CannotLock, SessionBusy
from clew.programs.locks import is_locked, lock_session, locks_of_home, must_be_lockable

HOLDER = """
import sys
from pathlib import Path
from clew.programs.locks import lock_session
hold = lock_session(Path(sys.argv[1]), "one")
print("held", flush=True)
sys.stdin.read()
"""


def test_a_session_is_held_once(tmp_path: Path) -> None:
    locks = tmp_path / "deep" / "locks"
    assert not is_locked(locks, "one")
    hold = lock_session(locks, "one")
    assert is_locked(locks, "one")
    with pytest.raises(SessionBusy, match="one"):
        lock_session(locks, "one")
    other = lock_session(locks, "two")
    hold.release()
    hold.release()
    assert not is_locked(locks, "one")
    lock_session(locks, "one").release()
    other.release()
    assert list(locks.iterdir()) == []


def test_another_process_is_kept_out_until_it_is_gone(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", HOLDER, tmp_path], stdin=-1, stdout=-1) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        assert is_locked(tmp_path, "one")
        with pytest.raises(SessionBusy):
            lock_session(tmp_path, "one")
        holder.kill()
        holder.wait()
        assert not is_locked(tmp_path, "one")
        lock_session(tmp_path, "one").release()


def test_an_id_that_is_no_name_of_a_file_is_held_as_well(tmp_path: Path) -> None:
    ids = ("../../etc/passwd", "a/b", "", ".", "..", "-", "x" * 5000, "a\0b", "\ud800", "a b", "a", "=" + "0" * 64)
    holds = [lock_session(tmp_path, each) for each in ids]
    assert all(is_locked(tmp_path, each) for each in ids)
    assert len(list(tmp_path.iterdir())) == len(ids)
    for hold in holds:
        hold.release()
    assert list(tmp_path.iterdir()) == []


def test_who_only_looks_keeps_nobody_out(tmp_path: Path) -> None:
    over = threading.Event()

    def look() -> None:
        while not over.is_set():
            is_locked(tmp_path, "one")

    looking = threading.Thread(target=look)
    looking.start()
    try:
        for _ in range(300):
            lock_session(tmp_path, "one").release()
    finally:
        over.set()
        looking.join()


def test_where_nobody_can_tell_nobody_has_it(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for locks in (tmp_path / "file", tmp_path / "file" / "locks", Path("/proc/none")):
        with pytest.raises(CannotLock):
            lock_session(locks, "one")
        with pytest.raises(CannotLock):
            must_be_lockable(locks)
    with pytest.raises(CannotLock):
        is_locked(tmp_path / "file", "one")


def test_the_same_home_has_the_same_locks_and_another_has_others() -> None:
    ours = {"HOME": "/h", "PATH": "/bin"}
    locks = locks_of_home("acp", "agent HOME=/h", ours)
    assert locks.is_relative_to("/h/.local/state/clew/locks")
    assert locks == locks_of_home("acp", "agent HOME=/h", {"HOME": "/h"})
    others = {
        locks_of_home("command", "agent HOME=/h", ours),
        locks_of_home("acp", "agent HOME=/x", ours),
        locks_of_home("acp", "agent HOME=/h", {**ours, "XDG_STATE_HOME": "/s"}),
    }
    assert len({locks, *others}) == 4
