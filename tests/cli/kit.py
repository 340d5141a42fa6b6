"""Running the real command: in a process of its own as a person does, or in this one, which is faster."""

import io
import os
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

import pytest

from clew.cli.program import asks_for_json, program, run_command

PROGRAM = (sys.executable, "-m", "clew")


@dataclass(frozen=True)
class Said:
    status: int
    out: str
    err: str


def clew(*words: object, **settings: str) -> Said:
    """`settings` are variables of the environment; what is set for the tests themselves does not reach the command."""
    done = subprocess.run(
        [*PROGRAM, *map(str, words)],
        env=environment(**settings),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return Said(done.returncode, done.stdout, done.stderr)


def environment(**settings: str) -> dict[str, str]:
    kept = {
        name: value for name, value in os.environ.items() if name not in ("CLEW_DATABASE", "CLEW_DATA", "XDG_DATA_HOME")
    }
    return {**kept, "COLUMNS": "100", "NO_COLOR": "1", **settings}


def ok(said: Said) -> str:
    assert (said.status, said.err) == (0, ""), said
    return said.out


def names_in(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def here(capfd: pytest.CaptureFixture[str], *words: object) -> Said:
    """The command in this process; what it says and its status are the same."""
    status = _run(words)
    out, err = capfd.readouterr()
    return Said(status, out, err)


def within(*words: object, **settings: str) -> Said:
    """As `clew`, but in this process: for what a fixture of many tests says, and for what is asked again and again."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
    with patch.dict(os.environ, environment(**settings), clear=True), redirect_stdout(out), redirect_stderr(err):
        status = _run(words)
    return Said(status, _text(out), _text(err))


def _run(words: tuple[object, ...]) -> int:
    typed = [str(word) for word in words]
    return int(run_command(lambda: program(typed[0])(typed), as_json=asks_for_json(typed)))


def _text(stream: io.TextIOWrapper) -> str:
    stream.seek(0)
    return stream.read()
