"""On a machine without npm the tests of the real agents are skipped, counted, and the end of the run says so."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
ONE_WITH_AND_ONE_WITHOUT = ("tests/providers/contract/test_start.py", "-k", "says_what_is_there and (guide or codex)")


def run(cache: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """As from a shell that knows no npm, with nothing installed."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "CLEW_"))}
    return subprocess.run(
        (sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *ONE_WITH_AND_ONE_WITHOUT, *arguments),
        cwd=ROOT,
        env={**kept, "PATH": "/nowhere", "CLEW_CACHE": str(cache), **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_what_was_skipped_is_counted_and_said_at_the_end_with_what_to_do(tmp_path: Path) -> None:
    """Also when the run is spread over processes, as by `make test`."""
    ended = run(tmp_path, "-n", "2")
    assert ended.returncode == 0, ended.stdout
    last = ended.stdout[ended.stdout.index("SKIPPED FOR WANT OF AN AGENT") :].splitlines()
    assert last[1] == "1 test: node is not here: install Node.js 18 or newer with npm, then run `make agents`."
    assert "1 passed, 1 skipped" in last[-1]
    assert not list(tmp_path.iterdir())


def test_where_the_agents_are_needed_their_absence_is_a_failure(tmp_path: Path) -> None:
    ended = run(tmp_path, CLEW_NEED_AGENTS="1")
    assert ended.returncode == 1
    assert "node is not here" in ended.stdout
    assert ended.stdout.splitlines()[-1].startswith("1 passed")
    assert "1 error" in ended.stdout.splitlines()[-1]
