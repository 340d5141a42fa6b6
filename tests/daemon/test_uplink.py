"""The uplink: a call is repeated until the server answers it."""

import pytest

from clew.daemon.uplink import until_answered
from clew.ports.fault import Fault
from tests.daemon.kit import QUICK, run


class Broken(Fault):
    code = "server:broken"


@pytest.mark.parametrize("tries", [1, 2, 5])
def test_a_fault_of_a_server_that_is_there_is_raised_after_so_many_tries(tries: int) -> None:
    asked: list[int] = []

    async def ask() -> None:
        asked.append(len(asked))
        raise Broken("It cannot.", "Mend it.")

    with pytest.raises(Broken):
        run(until_answered("a call", ask, QUICK, tries=tries))
    assert len(asked) == tries
