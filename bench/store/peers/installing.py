"""The others' packages, in a virtual environment of their own that may be thrown away at any time."""

import hashlib
import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

LOCK = Path(__file__).resolve().parents[2] / "requirements-peers.lock"


class NotInstalled(Exception):
    """The packages are not to be had here; the text is what the installer said last."""


def interpreter() -> Path:
    """The Python of that environment, which is made when it is missing or its lock has changed."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    home = cache / "clew" / "bench-peers"
    python, stamp = home / "bin" / "python", home / "ready"
    wanted = f"{sys.version_info[:2]} {hashlib.sha256(LOCK.read_bytes()).hexdigest()}"
    if stamp.exists() and stamp.read_text(encoding="utf-8") == wanted:
        return python
    shutil.rmtree(home, ignore_errors=True)
    venv.create(home, with_pip=True)
    pip = [str(python), "-m", "pip", "--disable-pip-version-check", "--quiet", "install", "--require-hashes"]
    done = subprocess.run([*pip, "--requirement", LOCK], capture_output=True, text=True, check=False)
    if done.returncode:
        raise NotInstalled(done.stderr.strip().splitlines()[-1])
    stamp.write_text(wanted, encoding="utf-8")
    return python
