"""A worktree that somebody deleted between two turns is made again from its branch, and the conversation goes on."""

import shutil
from pathlib import Path

import pytest

from tests.providers.rig import Rig
from tests.story.kit import House, hire, repository

COMMIT = "git add door && git -c user.name=ada -c user.email=ada@example.org commit -q -m 'A door'"


@pytest.mark.case("D05", "C02")
@pytest.mark.parametrize("rig", ["claude"], indirect=True)
def test_a_deleted_worktree_is_there_again_with_all_that_was_committed(rig: Rig, home: House, tmp_path: Path) -> None:
    hire(home, rig, "full")
    home.post("/projects", {"name": "maze", "source": str(repository(tmp_path / "maze"))})
    body = f"FIRST WORD\nRUN: echo oak > door && {COMMIT}"
    page = home.post("/issues", {"title": "A door", "body": body, "project": "maze", "assignee": "ada"})
    ref = page["thread"]["ref"]
    page = home.quiet(ref)
    session, directory = page["runs"][0]["session"], Path(page["lanes"][0]["directory"])
    assert (directory / "door").read_text(encoding="utf-8") == "oak\n", page["entries"][-1]
    # Once while the agent is still open in it, once while nobody is.
    for moment in ("warm", "cold"):
        if moment == "cold":
            home.down()
        shutil.rmtree(directory)
        if moment == "cold":
            home.up()
        page = home.say(ref, "RUN: pwd && cat door")
        assert f"{directory}\noak" in page["entries"][-1]["text"], (moment, page)
        run = page["runs"][0]
        assert (run["session"], run["decision"], run["claim"]) == (session, "resume", "resumed"), (moment, run)
        assert "FIRST WORD" in (rig.heard() or ""), moment
        told = [step["words"] for step in home.events(ref, "step")]
        assert any(words.endswith("it is made again from the branch.") for words in told), told
