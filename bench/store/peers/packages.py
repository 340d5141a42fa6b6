"""The peers' packages, in a virtual environment of their own that may be deleted at any time."""

import hashlib
import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

LOCK = Path(__file__).resolve().parents[2] / "requirements-peers.lock"
_SECONDS = 600.0


class CannotInstall(Exception):
    """The text is the last line of the installer."""

    lock = LOCK


def interpreter() -> Path:
    """The Python of that environment, which is made where it is missing or its lock has changed."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    home = cache / "clew" / "bench-peers"
    python, stamp = home / "bin" / "python", home / "ready"
    wanted = f"{sys.version_info[:2]} {hashlib.sha256(LOCK.read_bytes()).hexdigest()}"
    if stamp.exists() and stamp.read_text(encoding="utf-8") == wanted:
        return python
    shutil.rmtree(home, ignore_errors=True)
    try:
        venv.create(home, with_pip=True)
        pip = [str(python), "-m", "pip", "--disable-pip-version-check", "--quiet", "install", "--require-hashes"]
        done = subprocess.run(
            [*pip, "--requirement", LOCK], capture_output=True, text=True, check=False, timeout=_SECONDS
        )
        if done.returncode:
            raise CannotInstall(done.stderr.strip().rpartition("\n")[2])
        stamp.write_text(wanted, encoding="utf-8")
    finally:
        if not stamp.exists():
            shutil.rmtree(home, ignore_errors=True)
    return python
