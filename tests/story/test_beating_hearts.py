"""A timer's wake in a project's thread works where the thread's people do, and not in the agent's home."""

from pathlib import Path
from typing import Any

import pytest

from tests.providers.rig import Rig
from tests.story.kit import House, hire, repository


@pytest.mark.case("D01", "X01")
@pytest.mark.parametrize("rig", ["claude"], indirect=True)
def test_a_heartbeat_in_a_project_works_in_its_worktree(rig: Rig, home: House, tmp_path: Path) -> None:
    hire(home, rig, "edit")
    home.post("/projects", {"name": "maze", "source": str(repository(tmp_path / "maze"))})
    # Nobody was ever woken here: the timer is the first.
    ref = home.post("/issues", {"title": "A door", "project": "maze"})["thread"]["ref"]
    for decision in ("reseed", "resume"):
        home.post(f"/threads/{ref}/words", {"text": "RUN: pwd", "wakes": False})
        page = beat(home, ref)
        directory, run = page["lanes"][0]["directory"], page["runs"][0]
        assert directory in page["entries"][-1]["text"], page["entries"]
        assert Path(directory) != Path(home.get("/agents/ada")["home"])
        assert (Path(directory) / "README").is_file()
        assert run["decision"] == decision, run
        why = home.get(f"/why/{run['id']}")
        assert {wake["reason"] for wake in why["wakes"]} == {"timer"}
        assert why["landing"]["directory"] == directory


def beat(home: House, ref: str) -> Any:
    """The heart beats until it has woken the agent, and then no more."""
    before = len(home.get(f"/threads/{ref}")["runs"])
    home.change("/agents/ada", {"heartbeat": {"every": 15, "thread": ref, "isolated": False}})
    home.until(lambda: len(home.get(f"/threads/{ref}")["runs"]) > before, "a heartbeat")
    home.change("/agents/ada", {"no_heartbeat": True})
    return home.quiet(ref)
