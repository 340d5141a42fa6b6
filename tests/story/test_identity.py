"""Two agents in one home, each with a key of its own: over restarts neither is taken for the other, and a key that is
changed under an open session goes on in the same conversation at once."""

import os
import sqlite3
import time
from collections.abc import Mapping
from contextlib import closing
from typing import Any

import pytest

from tests.providers.rig import Rig, Seen
from tests.story.kit import House

KEYS = {"claude": "ANTHROPIC_API_KEY", "codex": "LOOPBACK_KEY", "opencode": "LOOPBACK_API_KEY"}
RESTARTS = int(os.environ.get("CLEW_RESTARTS", "1"))
AT_ONCE = 60.0
"""Seconds. A session that nobody uses is ended after ten minutes: whoever had to wait for that would take longer."""


def hire(home: House, rig: Rig, name: str, key: str) -> str:
    settings = rig.settings("a")
    asked = {
        "name": name,
        "provider": rig.name,
        "program": list(settings.program),
        "home": dict(settings.home),
        "environment": {**settings.environment, KEYS[rig.name]: key},
        "options": dict(settings.options),
        "mode": "edit",
    }
    home.post("/agents", asked)
    ref: str = home.post("/chats", {"agent": name})["ref"]
    return ref


def kept(home: House) -> list[Mapping[str, Any]]:
    """The sessions as they are written down, with whose they are."""
    asked = """
        SELECT a.name, s.native_id, s.account, s.credential FROM sessions s
        JOIN lanes l ON l.id = s.lane_id JOIN agents a ON a.id = l.agent_id ORDER BY a.name, s.generation
    """
    with closing(sqlite3.connect(f"file:{home.data / 'clew.db'}?mode=ro", uri=True)) as database:
        database.row_factory = sqlite3.Row
        return [dict(row) for row in database.execute(asked)]


def say(home: House, ref: str, text: str, users: int) -> Any:
    """Said in a conversation of that many words, the newest among them."""
    page = home.say(ref, text)
    reply, run = page["entries"][-1]["text"], page["runs"][0]
    assert (run["state"], run["claim"]) == ("succeeded", "resumed" if users > 1 else "started"), page
    assert Seen.in_(reply).users == users, page
    return run


def codes(home: House, run: Any) -> set[str]:
    why = home.get(f"/why/{run['id']}")
    return {step["code"] for decision in why["decisions"] for each in decision["considered"] for step in each["steps"]}


@pytest.mark.case("S14")
def test_two_agents_in_one_home_are_never_taken_for_one_another(rig: Rig, home: House) -> None:
    refs = {name: hire(home, rig, name, f"key-of-{name}") for name in ("ada", "bob")}
    for number in range(1, RESTARTS + 2):
        for name, ref in sorted(refs.items(), reverse=number % 2 == 0):
            run = say(home, ref, f"WORD {number} FOR {name}", number)
            assert "key:drift" not in codes(home, run)
        if number <= RESTARTS:
            home.down()
            home.up()
    found = kept(home)
    assert [each["name"] for each in found] == ["ada", "bob"]
    assert {each["account"] for each in found} == {None}
    assert len({each["credential"] for each in found}) == 2
    assert None not in {each["credential"] for each in found}
    said = {each["name"]: each["state"] for each in home.get("/doctor")}
    assert (said["agent ada"], said["agent bob"]) == ("ok", "ok")


@pytest.mark.case("S15", "S17")
@pytest.mark.proof("codex")
def test_a_key_that_is_changed_under_an_open_session_goes_on_at_once(rig: Rig, home: House) -> None:
    ref = hire(home, rig, "ada", "the-first-key")
    say(home, ref, "FIRST WORD", 1)
    (before,) = kept(home)
    home.change("/agents/ada", {"add_environment": {KEYS[rig.name]: "the-second-key"}})
    began = time.monotonic()
    run = say(home, ref, "SECOND WORD", 2)
    assert time.monotonic() - began < AT_ONCE
    assert "key:drift" in codes(home, run)
    (after,) = kept(home)
    assert after["native_id"] == before["native_id"]
    assert after["credential"] not in (before["credential"], None)
    # Anything else that it is started with, too.
    home.change("/agents/ada", {"add_environment": {"SOMETHING": "else"}})
    began = time.monotonic()
    run = say(home, ref, "THIRD WORD", 3)
    assert time.monotonic() - began < AT_ONCE
    assert "key:drift" not in codes(home, run)
