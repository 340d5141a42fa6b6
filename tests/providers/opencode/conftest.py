"""One OpenCode for all tests: a server takes seconds to start."""

from collections.abc import Iterator

import pytest

from tests.providers.agents import Agents
from tests.providers.opencode.kit import Lab
from tests.providers.rigs.opencode import OpenCodeRig


@pytest.fixture(scope="session")
def lab(agents: Agents, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    lab = Lab(OpenCodeRig(tmp_path_factory.mktemp("opencode"), agents))
    yield lab
    lab.close()
