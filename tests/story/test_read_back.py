"""An agent that finishes its turn while nobody hears it: its reply is read from its own store, and nothing is asked of
it again."""

import os
import signal
import time

import pytest

from tests.providers.rig import Rig
from tests.story.kit import House, hire

ENDS = 4.0
"""Seconds that an agent has to write down the end of its turn, after the last of its model's answer."""


@pytest.mark.case("C35")
@pytest.mark.proof("codex")
def test_a_reply_that_nobody_was_there_to_hear_is_read_back(rig: Rig, home: House) -> None:
    hire(home, rig, "full")
    ref = home.post("/chats", {"agent": "ada"})["ref"]
    home.say(ref, "SAY: the first answer")
    asked = len(rig.loopback.work)
    wake = home.post(f"/threads/{ref}/words", {"text": "SLOW: 1\nSAY: the whole answer"})["wake"]
    rig.loopback.wait(asked + 1, 60)
    # It hears nothing from here on, and is gone before it could.
    os.kill(home.pid, signal.SIGSTOP)
    time.sleep(1.0 + ENDS)
    home.kill()
    home.up()
    page = home.quiet(ref)
    assert [each["text"] for each in page["entries"]][-1] == "the whole answer", page
    assert len(rig.loopback.work) == asked + 1, "the model was asked once"
    found = home.get(f"/wakes/{wake['id']}")
    assert (found["state"], found["code"]) == ("served", "served:read-back")
    page = home.say(ref, "SAY: the last answer")
    assert page["entries"][-1]["text"] == "the last answer"
    assert "cut off" not in rig.loopback.work[-1].prompts[-1]
    assert "told before" not in rig.loopback.work[-1].prompts[-1]
