"""Whatever is killed when, the next word reaches the same conversation, in the same place, with the same rights.

History is proven by what the model saw, the directory by a tool's own output, the mode by a command that is refused.
"""

import os
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.providers.rig import Rig, Seen
from tests.story.kit import House, hire, programs, repository

EVERYTHING = os.environ.get("CLEW_THOROUGH") == "1"
WORDS = {"mid-answer": "SLOW: 60", "mid-tool": "RUN: sleep 60"}
VICTIMS = ("agent", "server", "everything")
MATRIX = [(victim, moment) for victim in VICTIMS for moment in WORDS]
BRIEF = [("agent", "mid-tool"), ("everything", "mid-answer")]


@pytest.mark.case("L01", "L12", "P12", "C28", "C02", "C32", "D10", "R05", "R09")
def test_after_any_kill_the_next_word_reaches_the_same_session(rig: Rig, home: House, tmp_path: Path) -> None:
    hire(home, rig, "edit")
    home.post("/projects", {"name": "maze", "source": str(repository(tmp_path / "maze"))})
    page = home.post("/issues", {"title": "A door", "body": "FIRST WORD", "project": "maze", "assignee": "ada"})
    ref = page["thread"]["ref"]
    page = home.quiet(ref)
    session, directory = page["runs"][0]["session"], page["lanes"][0]["directory"]
    assert Path(directory).is_dir()
    assert page["entries"][-1]["author"] == "ada", page
    wakes = [wake["id"] for wake in home.get(f"/why/{page['runs'][0]['id']}")["wakes"]]
    for victim, moment in MATRIX if EVERYTHING else BRIEF:
        wakes.append(strike(rig, home, ref, victim, moment))
        home.quiet(ref)
        wakes.append(goes_on(rig, home, ref, f"After {victim} {moment}."))
        run = home.get(f"/threads/{ref}")["runs"][0]
        assert (run["session"], run["decision"], run["claim"]) == (session, "resume", "resumed"), (victim, moment)
        why = home.get(f"/why/{run['id']}")
        assert why["landing"]["directory"] == directory
        assert why["decisions"][-1]["considered"], "the trace names what was considered"
    assert len(wakes) == len(set(wakes))
    assert {home.get(f"/wakes/{wake}")["state"] for wake in wakes} == {"served"}
    refuses_what_its_mode_forbids(rig, home, ref, tmp_path)


def strike(rig: Rig, home: House, ref: str, victim: str, moment: str) -> str:
    """Kill it while it answers, or while its tool runs. Returns the wake that this cuts short."""
    asked = len(rig.loopback.work)
    wake = wake_with(home, ref, WORDS[moment])
    rig.loopback.wait(asked + 1, 90)
    if moment == "mid-tool":
        home.until(lambda: home.allow(ref) and asleep(rig), "its tool runs")
    going = programs(home, rig)
    assert going, "an agent is at work"
    if victim in ("server", "everything"):
        home.kill()
    if victim in ("agent", "everything"):
        for pid in going:
            os.kill(pid, signal.SIGKILL)
    if victim in ("server", "everything"):
        home.up()
    return wake


def wake_with(home: House, ref: str, words: str) -> str:
    """The wake that these words make."""
    return str(home.post(f"/threads/{ref}/words", {"text": words})["wake"]["id"])


def asleep(rig: Rig) -> bool:
    return any(line.startswith(b"sleep\0") for line in rig.command_lines("a"))


def goes_on(rig: Rig, home: House, ref: str, words: str) -> str:
    """The history before it, by the model; the directory, by a tool. Returns the wake."""
    wake = wake_with(home, ref, f"{words}\nRUN: pwd")
    page = home.quiet(ref)
    reply = page["entries"][-1]["text"]
    assert page["lanes"][0]["directory"] in reply, page["entries"][-2:]
    assert "FIRST WORD" in (rig.heard() or ""), "the first word is in what the model was handed"
    assert Seen.in_(reply).users > 1
    return wake


def refuses_what_its_mode_forbids(rig: Rig, home: House, ref: str, tmp_path: Path) -> None:
    """The same session, now only to read: the mode is applied again, and the agent itself refuses."""
    home.change("/agents/ada", {"mode": "read"})
    planted = tmp_path / "planted"
    page: Any = home.say(ref, f"RUN: touch {planted}")
    assert page["thread"]["status"] == "idle", page["thread"]
    assert not planted.exists()
    run = page["runs"][0]
    assert run["decision"] == "resume"
    assert home.get(f"/why/{run['id']}")["landing"]["mode"] == "read", rig.name
