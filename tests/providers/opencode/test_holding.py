"""A session is held by one at a time, across processes, and whoever dies holds nothing."""

import subprocess
import sys
from pathlib import Path

import pytest

from clew.providers.opencode.faults import SessionBusy
from clew.providers.opencode.holding import is_held, take

HOLDER = """
import sys
from pathlib import Path
from clew.providers.opencode.holding import take
hold = take(Path(sys.argv[1]), "ses_a")
print("held", flush=True)
sys.stdin.read()
"""


@pytest.mark.case("C29", "P05")
def test_a_session_is_held_once(tmp_path: Path) -> None:
    store = tmp_path / "opencode.db"
    hold = take(store, "ses_a")
    assert is_held(store, "ses_a")
    with pytest.raises(SessionBusy):
        take(store, "ses_a")
    other = take(store, "ses_b")
    hold.release()
    hold.release()
    assert not is_held(store, "ses_a")
    take(store, "ses_a").release()
    other.release()
    assert list((tmp_path / "opencode.db.clew-locks").iterdir()) == []


@pytest.mark.case("C29", "P05")
def test_another_process_is_kept_out_until_it_is_gone(tmp_path: Path) -> None:
    store = tmp_path / "opencode.db"
    with subprocess.Popen([sys.executable, "-c", HOLDER, store], stdin=-1, stdout=-1) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        assert is_held(store, "ses_a")
        with pytest.raises(SessionBusy):
            take(store, "ses_a")
        holder.kill()
        holder.wait()
        assert not is_held(store, "ses_a")
        take(store, "ses_a").release()
