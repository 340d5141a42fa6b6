"""Homes for the tests of Codex alone."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.providers.agents import Agents
from tests.providers.codex.kit import Lab
from tests.providers.rigs.codex import CodexRig


@pytest.fixture
def lab(tmp_path: Path, agents: Agents) -> Iterator[Lab]:
    rig = CodexRig(tmp_path, agents)
    yield Lab(rig)
    rig.close()
