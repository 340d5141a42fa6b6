"""Many wakes at once, by many people, for many agents: each is served exactly once, and no turn is one too many."""

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.story.kit import PATIENCE, House

WAKES = 10_000 if os.environ.get("CLEW_THOROUGH") == "1" else 300
AGENTS, CHATS, PEOPLE = 6, 5, 8
PAGE = 200


@pytest.mark.case("W07", "W03", "W01", "R01", "L13")
def test_every_wake_is_served_exactly_once(home: House) -> None:
    names = [f"agent-{number}" for number in range(AGENTS)]
    for name in names:
        # As cheap as /bin/true, and it leaves a mark for each turn.
        program = ["/bin/sh", "-c", "echo >> turns"]
        home.post("/agents", {"name": name, "provider": "command", "program": program, "mode": "full", "most": 2})
    chats = [home.post("/chats", {"agent": name})["ref"] for name in names for _ in range(CHATS)]

    def say(number: int) -> Any:
        """As one does whose answer got lost: the same request twice."""
        asked = {"text": f"Word {number}.", "key": f"key-{number}"}
        first, second = (home.post(f"/threads/{chats[number % len(chats)]}/words", asked)["wake"] for _ in range(2))
        assert (first["repeated"], second["repeated"]) == (False, True)
        assert first["id"] == second["id"]
        return first["id"]

    with ThreadPoolExecutor(PEOPLE) as people:
        wakes = list(people.map(say, range(WAKES)))
        home.until(lambda: not any(each["live"] or each["waiting"] for each in home.get("/agents")), "all is quiet")
        states = Counter(receipt["state"] for receipt in people.map(lambda wake: home.get(f"/wakes/{wake}"), wakes))
        runs = list(all_runs(home))
        carried = [each["wakes"] for each in people.map(lambda run: home.get(f"/why/{run['id']}"), runs)]
    assert states == {"served": WAKES}
    assert {(run["state"], run["attempt"]) for run in runs} == {("succeeded", 1)}
    assert all(carried), "no run went for nothing"
    assert sorted(wake["id"] for wakes_of_run in carried for wake in wakes_of_run) == sorted(wakes)
    assert sum(turns(home, name) for name in names) == len(runs)
    assert sum(home.get(f"/threads/{ref}?limit=1")["thread"]["entries"] for ref in chats) == WAKES
    check = [sys.executable, "-m", "clew", "db", "check", "--database", str(home.data / "clew.db")]
    checked = subprocess.run(check, check=False, capture_output=True, text=True, timeout=PATIENCE)
    assert checked.returncode == 0, checked.stdout


def all_runs(home: House) -> Iterator[Any]:
    before = ""
    while page := home.get(f"/runs?limit={PAGE}{before}"):
        yield from page
        before = f"&before={page[-1]['id']}"


def turns(home: House, name: str) -> int:
    return len(Path(home.get(f"/agents/{name}")["home"], "turns").read_text(encoding="utf-8").splitlines())
