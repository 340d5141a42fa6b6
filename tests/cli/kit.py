"""Running the real command, as a person does: in a process of its own."""

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

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
    """The command in this process, which is faster; what it says and its status are the same."""
    typed = [str(word) for word in words]
    status = run_command(lambda: program(typed[0])(typed), as_json=asks_for_json(typed))
    out, err = capfd.readouterr()
    return Said(int(status), out, err)
