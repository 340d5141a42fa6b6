"""As a plain user, and on a disk that is full."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.workspaces.kit import commit, repository

ROOT = Path(__file__).parents[2]
NOBODY = 65534

PLAIN_USER = """
import os, sys
from pathlib import Path
import asyncio.base_events, concurrent.futures.thread, encodings.idna
from tests.workspaces.kit import Scene, git, run
place = Path(sys.argv[1])
if os.geteuid() == 0:
    os.setgroups([]), os.setgid({nobody}), os.setuid({nobody})
os.environ["HOME"] = "/nonexistent"
scene = Scene(place)
print(scene.ready().step.value, scene.ready().step.value)
print(*(each.reason.value for each in run(scene.workspaces.clean())))
(scene.root / "pr_1").chmod(0o500)
print(scene.held().words)
(scene.root / "pr_1").chmod(0o700)
(scene.project / ".git" / "worktrees").mkdir(exist_ok=True)
(scene.project / ".git" / "worktrees").chmod(0o500)
print(scene.held().words)
(scene.project / ".git" / "worktrees").chmod(0o700)
print(scene.ready().step.value)
"""


@pytest.fixture
def place() -> Iterator[Path]:
    """Where anybody may write."""
    made = Path(tempfile.mkdtemp())
    made.chmod(0o777)
    yield made
    shutil.rmtree(made)


@pytest.mark.case("D03")
def test_a_plain_user_without_a_name_works_and_is_told_what_may_not_be_written(place: Path) -> None:
    code = PLAIN_USER.format(nobody=NOBODY)
    done = subprocess.run(
        [sys.executable, "-c", code, str(place)], cwd=ROOT, capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    steps, cleaned, parent, worktrees, last = done.stdout.splitlines()
    assert steps == "make use"
    assert cleaned == "clean:merged"
    assert "pr_1/ln_1" in parent
    assert "may not" in parent
    assert ".git/worktrees/ln_1" in worktrees
    assert "may not" in worktrees
    assert last == "make"


FULL = """
import sys
from pathlib import Path
from tests.workspaces.kit import Scene, git
place = Path(sys.argv[1])
scene = Scene(place, str(place / "project"))
print(scene.held().words)
print((place / "root" / "pr_1" / "ln_1").exists())
(place / "root" / "ballast").unlink()
print(scene.ready().step.value, git(scene.directory(), "status", "--porcelain"))
"""


@pytest.mark.case("D03")
@pytest.mark.skipif(os.geteuid() != 0 or shutil.which("unshare") is None, reason="only root makes a small disk")
def test_a_full_disk_is_named_and_it_goes_on_when_there_is_room(tmp_path: Path) -> None:
    project = repository(tmp_path / "project")
    (project / "large.bin").write_bytes(os.urandom(700_000))
    commit(project, "large")
    (tmp_path / "root").mkdir()
    small = str(tmp_path / "root")
    mount = 'mount -t tmpfs -o size=1200k tmpfs "$0" && head -c 900000 /dev/zero > "$0"/ballast && exec "$@"'
    script = [sys.executable, "-c", FULL, str(tmp_path)]
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", mount, small, *script],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    if "mount" in done.stderr or "unshare" in done.stderr:
        pytest.skip(f"no small disk here: {done.stderr}")
    assert done.returncode == 0, done.stderr
    held, there, ready = done.stdout.splitlines()
    assert "disk is full" in held
    assert there == "False", "git takes back what it could not finish"
    assert ready == "make "
