"""Two homes of Claude Code that talk to one model."""

from pathlib import Path

import pytest

from tests.providers.agents import Agents
from tests.providers.claude.kit import Place
from tests.providers.loopback.server import Model


@pytest.fixture
def place(tmp_path: Path, model: Model, agents: Agents) -> Place:
    return Place.at(tmp_path / "a", model, agents)


@pytest.fixture
def other(tmp_path: Path, model: Model, agents: Agents) -> Place:
    return Place.at(tmp_path / "b", model, agents)
