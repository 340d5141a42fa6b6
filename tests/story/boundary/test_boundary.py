"""A sample of the matrix, at the moments that matter most. `make kills` plays all of it."""

from pathlib import Path

import pytest

from tests.story.boundary.matrix import AGENTS
from tests.story.boundary.reporting import failures, table
from tests.story.boundary.rounds import Outcome
from tests.story.boundary.running import legs, walk
from tests.story.boundary.storm import asked_for, storm

SEED = "15"
TRIES = {"claude": 12, "codex": 18, "opencode": 12, "guide": 24, "acp:codex": 12}
"""By what a try of each takes."""
GROUPED = [pytest.param(name, marks=pytest.mark.xdist_group(f"boundary-{name}")) for name in AGENTS]


@pytest.mark.case("P20", "P21", "C35")
@pytest.mark.parametrize("agent", GROUPED)
@pytest.mark.usefixtures("agents")
def test_every_word_is_told_once_or_held(agent: str, tmp_path: Path) -> None:
    outcomes: list[Outcome] = []
    for number, leg in enumerate(legs([agent], TRIES[agent], SEED, brief=True)):
        root = (tmp_path / str(number)).resolve()
        root.mkdir()
        walk(leg, root, outcomes)
    assert len(outcomes) >= TRIES[agent]
    print(table(outcomes))
    assert all(each.good for each in outcomes), f"{table(outcomes)}\n{failures(outcomes, SEED)}"


@pytest.mark.case("P20")
def test_every_word_is_handed_over_once_or_held_in_a_storm(tmp_path: Path) -> None:
    sums = storm(tmp_path.resolve(), 6, SEED)
    print(sums)
    assert sums.accepted > 20
    assert sums.good, str(sums)


def test_what_a_new_session_is_told_of_the_past_is_not_handed_over_again() -> None:
    past = "[1] A person said:\n--- begin ab ---\nA person says word-00000000aa.\n--- end ab ---"
    now = "[2] A person said: (you are asked for this now)\n--- begin ab ---\nword-00000000bb\n--- end ab ---"
    assert asked_for(f"{past}\n\n{now}\n\nAct on [2] now.") == ["word-00000000bb"]
    assert asked_for("A person says word-00000000aa.") == ["word-00000000aa"]
