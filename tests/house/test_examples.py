"""The examples are run as a reader runs them, and say what they claim to say."""

import subprocess
import sys
from pathlib import Path

import pytest

from examples.run_all import EXAMPLES, QUICK_START, story

ROOT = Path(__file__).parents[2]


def test_every_example_is_run() -> None:
    scripts = {path.stem for path in (ROOT / "examples").glob("*.py")} - {"kit", "run_all"}
    assert scripts == {*EXAMPLES, QUICK_START}


@pytest.mark.parametrize(
    ("name", "outcomes"),
    [
        ("timer_in_the_wrong_directory", ["resume:", "fork:"]),
        ("session_on_another_machine", ["reseed:", "transfer:", "resume:"]),
        ("empty_session_after_a_restart", ["resume:", "hold:", "reseed:", "refuse:"]),
        ("the_latest_session_was_anothers", ["resume:", "reseed:", "refuse:"]),
        ("heartbeat_that_dragged_the_past", ["blank:", "resume:"]),
    ],
)
def test_an_example_shows_the_failure_and_the_answer(name: str, outcomes: list[str]) -> None:
    assert "The failing sequence" in story(name)
    shown = subprocess.run(
        [sys.executable, "-m", f"examples.{name}"], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    assert shown.returncode == 0, shown.stderr
    for outcome in outcomes:
        assert outcome in shown.stdout
    assert "  session    session-1, generation 1:" in shown.stdout
