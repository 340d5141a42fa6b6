"""Clew from a built wheel: installed, upgraded and removed as a person does it, without this checkout."""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from clew import __version__
from clew.cli.commands.service import unit
from tests.skipped import INDEX, skip
from tests.up.kit import LONG

ROOT = Path(__file__).parents[2]
INSTALL = ROOT / "docs" / "install.md"
NEXT = "0.1.999"


def run(*words: str | Path, **settings: str) -> "subprocess.CompletedProcess[str]":
    kept = {
        name: value
        for name, value in os.environ.items()
        # Where packages come from is the machine's own setting.
        if name in {"HOME", "LANG", "TMPDIR"} or name.startswith(("UV_", "PIP_", "SSL_")) or "_proxy" in name.lower()
    }
    return subprocess.run(
        [str(word) for word in words],
        env={**kept, "PATH": os.environ["PATH"], "NO_COLOR": "1", **settings},
        capture_output=True,
        text=True,
        timeout=LONG * 3,
        check=False,
    )


def done(*words: str | Path, **settings: str) -> str:
    said = run(*words, **settings)
    assert said.returncode == 0, said
    return said.stdout


def built(place: Path, version: str) -> Path:
    """A wheel of this checkout, under another version where one is asked for."""
    source = place / "source"
    shutil.copytree(ROOT / "src", source / "src", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source / name)
    start = source / "src" / "clew" / "__init__.py"
    start.write_text(start.read_text().replace(__version__, version))
    done(
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "-q",
        "--no-deps",
        "--no-build-isolation",
        "--no-index",
        "-w",
        place,
        source,
    )
    (wheel,) = place.glob("*.whl")
    return wheel


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(tmp_path_factory.mktemp("wheel"), __version__)


def fresh(place: Path) -> Path:
    """The programs of a new virtual environment."""
    done(sys.executable, "-m", "venv", place / "venv")
    return place / "venv" / "bin"


def test_without_its_dependencies_it_says_what_is_missing(wheel: Path, tmp_path: Path) -> None:
    programs = fresh(tmp_path)
    done(programs / "pip", "install", "-q", "--no-index", "--no-deps", wheel)
    for words in ((), ("--help",), ("up",)):
        said = run(programs / "clew", *words)
        assert (said.returncode, said.stdout) == (1, "")
        assert said.stderr.startswith("clew: Packages that Clew needs are missing: alembic, cronsim, cyclopts, ")
        assert "`uv tool install clew`. [cli:missing-packages]\n" in said.stderr
        assert "Traceback" not in said.stderr
    # Some are there, and the command that needs the others says so.
    site = next((tmp_path / "venv" / "lib").glob("python*/site-packages"))
    here = Path(sysconfig.get_path("purelib"))
    for name in (
        "cyclopts",
        "attr",
        "attrs",
        "rich",
        "docstring_parser",
        "rich_rst",
        "markdown_it",
        "mdurl",
        "pygments",
    ):
        for found in (*here.glob(name), *here.glob(f"{name}-*.dist-info")):
            (site / found.name).symlink_to(found)
    assert done(programs / "clew", "--version") == f"{__version__}\n"
    said = run(programs / "clew", "up", "--data", tmp_path / "data")
    assert "are missing: alembic, cronsim, fastapi" in said.stderr


@pytest.fixture(scope="module")
def later(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(tmp_path_factory.mktemp("later"), NEXT)


def documented(tool: str) -> list[list[str]]:
    """What docs/install.md says to type: to install, to upgrade, and to remove."""
    (row,) = (line for line in INSTALL.read_text(encoding="utf-8").splitlines() if re.match(rf"\| \[?{tool}\b", line))
    return [command.split() for command in re.findall("`([^`]+)`", row)]


def lives(tool: str, bins: Path, program: Path, wheels: tuple[Path, Path], data: Path, **settings: str) -> None:
    """Install, talk, upgrade, go on in the same conversation, and remove: the data stays."""
    first, second, remove = documented(tool)
    wheel, later = wheels
    clew, where = bins / "clew", {"CLEW_DATA": str(data)}
    done(program, *(str(wheel) if word == "WHEEL" else word for word in first[1:]), **settings)
    assert done(clew, "--version") == f"{__version__}\n"
    try:
        assert "Clew is ready" in done(clew, "up", "-d", "--port", "0", **where)
        assert "prompt 1 of our conversation" in done(clew, "chat", "guide", "--once", "hello", **where)
        assert "complete" in done(clew, "completion", "bash")
        done(clew, "stop", **where)
        done(program, *(str(later) if word == "WHEEL" else word for word in second[1:]), **settings)
        assert done(clew, "--version") == f"{NEXT}\n"
        done(clew, "up", "-d", "--port", "0", **where)
        assert "prompt 2 of our conversation" in done(clew, "chat", "--in", "chat-1", "--once", "again", **where)
    finally:
        run(clew, "stop", "--now", **where)
    done(program, *remove[1:], **settings)
    assert not clew.exists()
    assert (data / "clew.db").exists()


def test_pip_installs_upgrades_and_removes_it_and_the_data_stays(wheel: Path, later: Path, tmp_path: Path) -> None:
    programs = fresh(tmp_path)
    # What it needs is taken from this environment; Clew itself is not, because its own directory comes first.
    site = next((tmp_path / "venv" / "lib").glob("python*/site-packages"))
    (site / "environment.pth").write_text(sysconfig.get_path("purelib") + "\n")
    settings = {"PIP_NO_INDEX": "1", "PIP_NO_DEPS": "1", "PIP_YES": "1"}
    lives("pip", programs, programs / "pip", (wheel, later), tmp_path / "data", **settings)


@pytest.mark.parametrize("tool", ["uv", pytest.param("pipx", marks=pytest.mark.proof)])
def test_tools_that_install_programs_do_as_well(wheel: Path, later: Path, tmp_path: Path, tool: str) -> None:
    """The real tools, which fetch what Clew needs; the versions are those of the lock."""
    program = Path(sys.executable).parent / tool
    pins = tmp_path / "pins.txt"
    pinned = re.findall(r"^(\S+==\S+)", (ROOT / "requirements" / "run.lock").read_text(encoding="utf-8"), re.MULTILINE)
    pins.write_text("\n".join(pinned), encoding="utf-8")
    bins = tmp_path / "bin"
    settings = {
        "UV_TOOL_DIR": str(tmp_path / "uv"),
        "UV_TOOL_BIN_DIR": str(bins),
        "UV_PYTHON": sys.executable,
        "UV_CONSTRAINT": str(pins),
        "PIPX_HOME": str(tmp_path / "pipx"),
        "PIPX_BIN_DIR": str(bins),
        "PIPX_DEFAULT_PYTHON": sys.executable,
        "PIP_CONSTRAINT": str(pins),
        # Else both say that it is not.
        "PATH": f"{bins}:{os.environ['PATH']}",
    }
    reach_the_index(tmp_path / "reached", tool)
    lives(tool, bins, program, (wheel, later), tmp_path / "data", **settings)


def reach_the_index(place: Path, tool: str) -> None:
    """Skips, loudly, where one small package cannot be fetched: nothing else is a reason for an install to fail."""
    words = ("uv", "pip") if tool == "uv" else ("python", "-m", "pip")
    said = run(
        Path(sys.executable).parent / words[0], *words[1:], "install", "-q", "--no-deps", "--target", place, "idna"
    )
    if said.returncode:
        skip(INDEX, f"{tool} cannot fetch packages here: {said.stderr.strip()[-300:]}")


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not here")
def test_systemd_understands_the_unit_of_the_service(tmp_path: Path) -> None:
    """Its own check also says that a setting is unknown, or that a program is not there."""
    file = tmp_path / "clew.service"
    file.write_text(unit(tmp_path / 'a "100%" $data', "postgresql://me:p%40$1@db/clew"), encoding="utf-8")
    checked = run("systemd-analyze", "--user", "verify", file, XDG_RUNTIME_DIR=str(tmp_path))
    assert (checked.returncode, checked.stdout, checked.stderr) == (0, "", "")
