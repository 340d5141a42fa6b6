"""A worktree that somebody deleted between two turns is made again from its branch, and the conversation goes on."""

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.providers.rig import Rig
from tests.story.kit import House, hire, repository

COMMIT = "git add door && git -c user.name=ada -c user.email=ada@example.org commit -q -m 'A door'"


@pytest.mark.case("D05", "D16", "C02")
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
    for turn, moment in enumerate(("warm", "cold"), 1):
        (directory / "sill").write_text("stone\n", encoding="utf-8")
        subprocess.run(["git", "-C", directory, "add", "sill"], check=True)
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
        steps = [step["words"] for step in home.events(ref, "step")]
        told = next(words for words in steps if words.startswith(f"{directory} was gone and was made again"))
        assert f"from branch {page['lanes'][0]['branch']}, at commit " in told
        assert "(A door). Whatever was not committed there is lost. Staged there and never committed: sill." in told
        # The agent itself was told, once for each time.
        prompts = rig.loopback.work[-1].prompts
        assert sum(told in each for each in prompts) == turn, prompts
