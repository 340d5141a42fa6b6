"""A short soak: servers are killed at random moments of their work, and nothing is lost. `make soak` is a long one."""

import pytest

from tests.store.conftest import DATABASES
from tests.store.soak.soak import SOAKS

KILLS = {"sqlite": 10, "postgresql": 8}


@pytest.mark.case("C35", "L01", "L02", "P19", "P20", "W07")
@pytest.mark.parametrize("database", DATABASES)
def test_servers_are_killed_and_every_wake_is_accounted_for(database: str) -> None:
    verdict = SOAKS[database](KILLS[database], 20.0, seed=20)
    assert verdict.holds, verdict.table()
    assert verdict.killed.servers >= 4
    assert verdict.wakes["served"] > 0
