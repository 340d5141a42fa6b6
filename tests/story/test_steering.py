"""Words for an agent that is at work: real agents hear them within the turn, or in the next one, and never twice."""

import json
import time
from pathlib import Path

import pytest

from tests.providers.rig import Rig
from tests.story.kit import House, hire

MARK = "meanwhile-we-say-this"
# The answer is not to repeat the mark, which is counted.
WORDS = f"{MARK}\nSAY: noted"


def heard(rig: Rig, since: int = 0) -> list[int]:
    """How often the mark stands in each request that the model got since then."""
    return [json.dumps(request.body).count(MARK) for request in rig.loopback.work[since:]]


def at_work(home: House, rig: Rig, tmp_path: Path, seconds: float) -> str:
    """A chat in which the agent runs a command for that long."""
    hire(home, rig, "full")
    ref: str = home.post("/chats", {"agent": "ada"})["ref"]
    begun = tmp_path / "begun"
    home.post(f"/threads/{ref}/words", {"text": f"RUN: touch {begun}; sleep {seconds:g}"})
    home.until(begun.exists, "the agent is at work")
    return ref


@pytest.mark.case("W13")
def test_words_during_a_long_tool_are_heard_in_the_same_turn_and_not_repeated(
    rig: Rig, home: House, tmp_path: Path
) -> None:
    ref = at_work(home, rig, tmp_path, 4.0)
    before = len(rig.loopback.work)
    wake = home.post(f"/threads/{ref}/words", {"text": WORDS, "overlap": "steer"})["wake"]
    assert wake["code"] == "accepted:steered"
    page = home.quiet(ref)
    (run,) = page["runs"]
    # The tool's result and the words reached the model together, in one turn of one run.
    assert heard(rig, before)[0] == 1
    assert home.get(f"/wakes/{wake['id']}")["run"] == run["id"]
    why = home.get(f"/why/{wake['id']}")
    assert why["headline"].startswith(f"steered: {run['ref']} told its agent")
    assert [(each["text"], each["taken"]) for each in why["steered"]] == [(WORDS, True)]
    assert [entry["author_kind"] for entry in page["entries"]] == ["human", "human", "agent"]
    # What was told is not told again.
    home.say(ref, "SAY: after")
    assert heard(rig)[-1] == 1
    assert len(home.get(f"/threads/{ref}")["runs"]) == 2


@pytest.mark.case("W13")
def test_words_that_come_as_the_turn_ends_are_told_exactly_once(rig: Rig, home: House) -> None:
    hire(home, rig, "full")
    ref = home.post("/chats", {"agent": "ada"})["ref"]
    home.post(f"/threads/{ref}/words", {"text": "SLOW: 2\nSAY: a long answer"})
    home.until(lambda: rig.loopback.work, "it answers")
    wake = home.post(f"/threads/{ref}/words", {"text": WORDS, "overlap": "steer"})["wake"]
    page = home.quiet(ref)
    assert home.get(f"/wakes/{wake['id']}")["state"] == "served"
    # Some take it into the answer, others leave it to the next turn; it was answered either way.
    assert heard(rig)[-1] == 1
    taken = [event["body"]["taken"] for run in page["runs"] for event in steers(home, run["id"])]
    assert len(page["runs"]) == (1 if taken == [True] else 2)
    assert page["entries"][-1]["text"].endswith("noted")
    home.say(ref, "SAY: after")
    assert heard(rig)[-1] == 1


def steers(home: House, run: str) -> list[dict[str, dict[str, bool]]]:
    return [event for event in home.get(f"/runs/{run}/events") if event["kind"] == "steer"]


@pytest.mark.case("W13", "W07")
def test_words_that_were_on_their_way_when_all_was_killed_are_told_exactly_once(
    rig: Rig, home: House, tmp_path: Path
) -> None:
    ref = at_work(home, rig, tmp_path, 60.0)
    wake = home.post(f"/threads/{ref}/words", {"text": WORDS, "overlap": "steer"})["wake"]
    carried = ("carried:steering", "carried:steered")
    home.until(lambda: home.get(f"/wakes/{wake['id']}")["code"] in carried, "the run carries it")
    # OpenCode has it at once, the others when their tool is over.
    home.until(lambda: rig.name != "opencode" or home.get(f"/wakes/{wake['id']}")["code"] == carried[1], "it is told")
    home.kill()
    home.up()
    page = home.quiet(ref)
    assert home.get(f"/wakes/{wake['id']}")["state"] == "served"
    assert heard(rig)[-1] == 1
    assert page["entries"][-1]["author_kind"] == "agent"


@pytest.mark.case("W13")
@pytest.mark.parametrize("how", ["cancel", "interrupt"])
def test_who_stops_the_turn_ends_what_the_agent_took_and_the_rest_is_told_in_the_next(
    rig: Rig, home: House, tmp_path: Path, how: str
) -> None:
    ref = at_work(home, rig, tmp_path, 40.0)
    wake = home.post(f"/threads/{ref}/words", {"text": WORDS, "overlap": "steer"})["wake"]
    # OpenCode has it at once, the others would when their tool is over.
    told = "carried:steered" if rig.name == "opencode" else "carried:steering"
    home.until(lambda: home.get(f"/wakes/{wake['id']}")["code"] == told, "the run carries it")
    (run,) = home.get(f"/threads/{ref}")["runs"]
    began = time.monotonic()
    home.post(f"/runs/{run['id']}/{how}")
    home.until(lambda: home.get(f"/runs/{run['id']}")["state"] == "cancelled", "the run ends")
    assert time.monotonic() - began < 8.0
    page = home.quiet(ref)
    found = home.get(f"/wakes/{wake['id']}")
    if rig.name == "opencode":
        assert (found["code"], found["run"], len(page["runs"])) == ("cancelled:by-user", run["id"], 1)
    else:
        assert (found["state"], found["run"] != run["id"], len(page["runs"])) == ("served", True, 2)
        assert heard(rig)[-1] == 1
