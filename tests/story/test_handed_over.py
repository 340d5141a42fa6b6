"""An issue that goes from one agent to another and back: each is handed what was said and done, and does none of it
again."""

from pathlib import Path
from typing import Any

import pytest

from tests.providers.rig import Rig
from tests.story.kit import House, hire, repository


def hand_over(home: House, ref: str, to: str) -> Any:
    home.post(f"/threads/{ref}/assign", {"agent": to})
    return home.quiet(ref)


@pytest.mark.case("W19")
@pytest.mark.proof("codex")
def test_what_one_agent_did_is_not_done_again_by_the_next(rig: Rig, home: House, tmp_path: Path) -> None:
    for name in ("ada", "bob"):
        hire(home, rig, "full", name)
    done = tmp_path / "done"
    home.post("/projects", {"name": "maze", "source": str(repository(tmp_path / "maze"))})
    asked = {"title": "A door", "body": f"FIRST WORD\nRUN: echo x >> {done}", "project": "maze", "assignee": "ada"}
    ref = home.post("/issues", asked)["thread"]["ref"]
    page = home.quiet(ref)
    assert done.read_text(encoding="utf-8") == "x\n", page
    page = home.say(ref, f"SECOND WORD\nRUN: echo y >> {done}")
    assert done.read_text(encoding="utf-8") == "x\ny\n", page
    first = page["runs"][0]["session"]
    for former, to in (("ada", "bob"), ("bob", "ada")):
        page = hand_over(home, ref, to)
        run = page["runs"][0]
        assert (run["agent"], run["state"], run["decision"]) == (to, "succeeded", "reseed"), page
        assert done.read_text(encoding="utf-8") == "x\ny\n", f"{to} did again what {former} had done"
        heard = rig.heard() or ""
        assert f"You take this issue over from {former}." in heard
        for word in ("FIRST WORD", "SECOND WORD", f"Gave this issue to {to} (it was {former}'s)."):
            assert word in heard
        assert heard.count("(you are asked for this now)") == 1
        assert run["session"] != first
        assert home.get(f"/why/{run['id']}")["headline"].endswith("[policy:handed-over]")
    # What is said next is done, in the conversation that the handover began.
    page = home.say(ref, f"RUN: echo z >> {done}")
    assert done.read_text(encoding="utf-8") == "x\ny\nz\n", page
    assert page["runs"][0]["session"] == run["session"]
