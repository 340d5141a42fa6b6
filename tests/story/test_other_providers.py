"""An agent that is moved to another provider between two turns knows what was said before."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.providers.agents import Agents
from tests.providers.rig import Rig, Seen
from tests.story.kit import House, hire, repository, rig_of

ANSWER = "SAW users=1"


@pytest.fixture
def other(tmp_path: Path, agents: Agents) -> Iterator[Rig]:  # noqa: ARG001 - installs them
    made = rig_of("codex", (tmp_path / "other").resolve())
    yield made
    made.close()


@pytest.mark.case("T04", "C21", "X02", "C26")
@pytest.mark.parametrize("rig", ["claude"], indirect=True)
def test_another_provider_is_told_what_was_said_before(rig: Rig, other: Rig, home: House, tmp_path: Path) -> None:
    hire(home, rig, "edit")
    home.post("/projects", {"name": "maze", "source": str(repository(tmp_path / "maze"))})
    page = home.post("/issues", {"title": "A door", "body": "FIRST WORD", "project": "maze", "assignee": "ada"})
    ref = page["thread"]["ref"]
    page = home.quiet(ref)
    first, directory = page["runs"][0], page["lanes"][0]["directory"]
    assert page["entries"][-1]["text"].startswith(ANSWER), page

    settings = other.settings("a")
    moved = {
        "provider": other.name,
        "program": list(settings.program),
        "home": dict(settings.home),
        "environment": dict(settings.environment),
    }
    home.change("/agents/ada", moved)
    asked = len(rig.loopback.requests)
    page = home.say(ref, "Where are you?\nRUN: pwd")

    reply, run = page["entries"][-1]["text"], page["runs"][0]
    assert directory in reply, page
    assert Seen.in_(reply).users == 1
    heard = other.heard() or ""
    assert "FIRST WORD" in heard
    assert ANSWER in heard
    assert len(rig.loopback.requests) == asked, "the first provider is not asked any more"
    assert (run["decision"], run["claim"]) == ("reseed", "started")
    assert run["session"] != first["session"]
    why = home.get(f"/why/{run['id']}")
    assert why["headline"].endswith("[provider:other]"), why["headline"]
    assert [each["session"] for each in why["decisions"][-1]["considered"]] == [first["session"]]
