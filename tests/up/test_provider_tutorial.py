"""docs/provider-tutorial.md followed to the letter: each file is written and each command run, in order."""

import os
import re
import shutil
import site
import subprocess
import venv
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.tutorial import ROOT, STEPS, Step

UP = '[ "$1" = up ] && exec python -m clew "$@" --port 0'
"""Any free port: the usual one may be taken where tests run."""


class Desk:
    """A person's directory with a checkout of Clew in it, whose environment has Clew and its tools."""

    def __init__(self, place: Path) -> None:
        self.place = self.at = place
        checkout = place / "clew"
        for name in ("tests", "tools"):
            shutil.copytree(ROOT / name, checkout / name, ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(ROOT / "pyproject.toml", checkout)
        venv.create(checkout / ".venv", symlinks=True)
        (packages,) = (checkout / ".venv" / "lib").glob("python*/site-packages")
        (packages / "here.pth").write_text("\n".join((*site.getsitepackages(), str(ROOT / "src"))), encoding="utf-8")
        self._program("pip", 'exec python -m pip "$@"')
        self._program("clew", f'{UP}\nexec python -m clew "$@"')
        (place / "home").mkdir()

    def _program(self, name: str, script: str) -> None:
        file = self.place / "clew" / ".venv" / "bin" / name
        file.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        file.chmod(0o755)

    @property
    def environment(self) -> dict[str, str]:
        # The package is built by what is installed, without a network. pip reads 0 as "no isolation".
        alone = {"PIP_NO_INDEX": "1", "PIP_NO_BUILD_ISOLATION": "0", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
        path = f"{self.place / 'clew' / '.venv' / 'bin'}:/usr/bin:/bin"
        return {"PATH": path, "HOME": str(self.place / "home"), "LANG": os.environ.get("LANG", "C.UTF-8"), **alone}

    def run(self, command: str) -> str:
        """What it prints. The next command begins in the directory where this one ends."""
        script = f"set -o pipefail; {command}\nstatus=$?; pwd > '{self.place}/pwd'; exit $status"
        done = subprocess.run(
            ["bash", "-c", script],
            cwd=self.at,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}"
        self.at = Path((self.place / "pwd").read_text(encoding="utf-8").strip())
        return done.stdout


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    desk = Desk(tmp_path)
    try:
        yield desk
    finally:
        subprocess.run(["clew", "stop"], env=desk.environment, cwd=tmp_path, capture_output=True, check=False)


def follow(desk: Desk, step: Step) -> None:
    if step.file is not None:
        file = desk.place / "clew-parrot" / step.file
        file.write_text(f"{file.read_text()}\n\n{step.text}" if file.exists() else step.text, encoding="utf-8")
        return
    for command, shown in step.commands:
        printed = desk.run(command)
        assert re.fullmatch(pattern(shown), squeezed(printed), re.DOTALL), f"{command}\n{printed}\nis not\n{shown}"


def squeezed(text: str) -> str:
    """Columns are as wide as what else is in them."""
    return "\n".join(" ".join(line.split()) for line in text.strip().splitlines())


def pattern(shown: str) -> str:
    return ".*".join(re.escape(part) for part in squeezed(shown).split("…"))


def test_the_tutorial_is_followed_to_the_letter(desk: Desk) -> None:
    for step in STEPS:
        follow(desk, step)
    # The page says that a test fails where a provider does not do what it declares.
    parrot = desk.place / "clew-parrot" / "clew_parrot.py"
    parrot.write_text(parrot.read_text(encoding="utf-8").replace("resume=True", "resume=False"), encoding="utf-8")
    trial = "CLEW_RIGS=../clew-parrot/parrot_rig.py PYTHONPATH=../clew-parrot python -m pytest tests/providers/contract"
    assert "1 failed" in desk.run(f"{trial} -k a_session_goes_on_where_it_was || true")
