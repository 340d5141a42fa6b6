"""The real agents and a model for them to talk to."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.providers.agents import Agents, installed, skip
from tests.providers.loopback.server import Model
from tools.agents import CannotInstall, alone, install


@pytest.fixture(scope="session")
def agents(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Agents:
    """The pinned agents, installed now if they were not. Where that cannot be, the test is skipped and says why."""
    if installed() is None:
        why = _install(_run_directory(request, tmp_path_factory))
        if why:
            skip(why)
    there = installed()
    assert there is not None
    return there


def _install(run: Path) -> str:
    """Why they could not be installed. One worker tries, and what came of it holds for all."""
    told = run / "agents-not-installed"
    with alone(run / "agents-lock", print):
        if not told.exists():
            try:
                install()
            except CannotInstall as fault:
                told.write_text(str(fault), encoding="utf-8")
        return told.read_text(encoding="utf-8") if told.exists() else ""


def _run_directory(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One directory for all workers of this run."""
    base = tmp_path_factory.getbasetemp()
    return base.parent if hasattr(request.config, "workerinput") else base


@pytest.fixture
def model() -> Iterator[Model]:
    with Model() as started:
        yield started
