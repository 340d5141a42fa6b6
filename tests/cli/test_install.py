"""Clew from a built wheel: installed, upgraded and removed as a person does it, without this checkout."""

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from clew import __version__
from tests.up.kit import LONG

ROOT = Path(__file__).parents[2]
NEXT = "0.1.999"


def run(*words: str | Path, **settings: str) -> "subprocess.CompletedProcess[str]":
    kept = {
        name: value
        for name, value in os.environ.items()
        # Where packages come from is the machine's own setting.
        if name in {"HOME", "LANG", "TMPDIR"} or name.startswith(("UV_", "PIP_", "SSL_"))
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


def test_a_wheel_is_installed_upgraded_and_removed_and_the_data_stays(wheel: Path, tmp_path: Path) -> None:
    programs, data = fresh(tmp_path), tmp_path / "data"
    done(programs / "pip", "install", "-q", "--no-index", "--no-deps", wheel)
    # What it needs is taken from this environment; Clew itself is not, because its own directory comes first.
    borrowed = next((tmp_path / "venv" / "lib").glob("python*/site-packages")) / "environment.pth"
    borrowed.write_text(sysconfig.get_path("purelib") + "\n")
    clew, where = programs / "clew", {"CLEW_DATA": str(data)}
    assert done(clew, "--version") == f"{__version__}\n"
    imported = done(programs / "python", "-c", "import clew; print(clew.__file__)")
    assert imported.startswith(str(tmp_path)), "it is the wheel's"
    try:
        assert "Clew is ready" in done(clew, "up", "-d", "--port", "0", **where)
        assert "prompt 1 of our conversation" in done(clew, "chat", "guide", "--once", "hello", **where)
        assert "complete" in done(clew, "completion", "bash")
        done(clew, "stop", **where)
        later = built(tmp_path / "later", NEXT)
        done(programs / "pip", "install", "-q", "--no-index", "--no-deps", "--upgrade", later)
        assert done(clew, "--version") == f"{NEXT}\n"
        done(clew, "up", "-d", "--port", "0", **where)
        assert "prompt 2 of our conversation" in done(clew, "chat", "--in", "chat-1", "--once", "again", **where)
    finally:
        run(clew, "stop", "--now", **where)
    borrowed.unlink()
    done(programs / "pip", "uninstall", "-q", "-y", "clew")
    assert not clew.exists()
    assert (data / "clew.db").exists()


@pytest.mark.parametrize(
    ("tool", "install", "remove"),
    [
        ("uv", ("tool", "install"), ("tool", "uninstall", "clew")),
        ("pipx", ("install",), ("uninstall", "clew")),
    ],
)
def test_tools_that_install_programs_install_it(
    wheel: Path, tmp_path: Path, tool: str, install: tuple[str, ...], remove: tuple[str, ...]
) -> None:
    program = shutil.which(tool)
    if program is None:
        pytest.skip(f"{tool} is not installed here, so `{tool} {' '.join(install)} clew` was NOT tried")
    bins = tmp_path / "bin"
    places = {
        "UV_TOOL_DIR": str(tmp_path / "uv"),
        "UV_TOOL_BIN_DIR": str(bins),
        "PIPX_HOME": str(tmp_path / "pipx"),
        "PIPX_BIN_DIR": str(bins),
    }
    said = run(program, *install, str(wheel), **places)
    if said.returncode:
        pytest.skip(f"{tool} could not fetch what Clew needs, so it was NOT tried: {said.stderr.strip()[-300:]}")
    assert done(bins / "clew", "--version") == f"{__version__}\n"
    done(program, *remove, **places)
    assert not (bins / "clew").exists()
