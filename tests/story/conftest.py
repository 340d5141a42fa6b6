"""A house for each test, and the real agents, one after another."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.providers.agents import Agents
from tests.providers.conftest import agents
from tests.providers.rig import Rig
from tests.story.kit import House, house, rig_of

__all__ = ["agents"]

AGENTS = ("claude", "codex", "opencode")


PROOF = {"opencode": [pytest.mark.proof]}
"""OpenCode takes seconds of a core for every start; the boundary and its own tests play it on every day."""


@pytest.fixture(
    params=[
        pytest.param(name, marks=[pytest.mark.xdist_group(f"story-{name}"), *PROOF.get(name, [])]) for name in AGENTS
    ]
)
def rig(request: pytest.FixtureRequest, tmp_path: Path, agents: Agents) -> Iterator[Rig]:  # noqa: ARG001 - installs them
    made = rig_of(request.param, (tmp_path / "rig").resolve())
    yield made
    made.close()


@pytest.fixture
def home(tmp_path: Path) -> Iterator[House]:
    with house(tmp_path.resolve()) as started:
        yield started
