"""A house where work goes on, for tests of pages and for screenshots. Everything in it came of real runs.

Its agents are guides and actors, so it looks the same everywhere.
"""

import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from clew.providers.guide.memory import home_of
from tests.web.actor import NAME, install
from tests.web.kit import House
from tests.web.playbook import (
    BACK,
    EXPORTS,
    FOOTER,
    INVOICES,
    LEFT,
    NAMES,
    PAYMENT,
    PLAYBOOK,
    SEARCH,
    SLASHES,
)

_Agent = tuple[str, str, dict[str, object]]
ADA: _Agent = ("ada", "edit", {"most": 4, "instructions": "Small commits. Run the tests before you answer."})
BOB: _Agent = ("bob", "ask", {})
WATCH: _Agent = ("watch", "full", {"heartbeat": {"every": 15}, "instructions": "Report only what is new."})


@dataclass(frozen=True)
class Scene:
    """The refs of its threads, by what is to be seen in them."""

    house: House
    story: str
    """Several runs of one agent: a plan, tools, changes, a lost session and the break it made."""
    asks: str
    """An approval that nobody has answered."""
    held: str
    """A run that waits until a usage limit ends."""
    failed: str
    running: str
    """A run that streams its answer for an hour, and a message that waits behind it."""
    merged: str
    long: str
    """A journal of more than a screen."""
    chat: str
    """With a start that a person wanted fresh."""

    @property
    def examples(self) -> Mapping[str, str]:
        """A value for each name in the addresses of pages."""
        run = self.house.get(f"/threads/{self.story}")["runs"][0]["ref"]
        return {"ref": self.story, "run": run, "name": "ada", "agent": "ada", "project": "shop"}


def build(house: House) -> Scene:
    limited = {INVOICES: f"FAIL: 429 {int(time.time()) + 3 * 3600}"}
    install(house.programs, home_of(house.environment), {**PLAYBOOK, **limited})
    _hire(house)
    house.post("/projects", {"name": "shop", "source": str(_repository(house.root / "shop"))})
    story = _story(house)
    merged = _merged(house)
    asks = _issue(house, "Remove the old exports", EXPORTS, "bob")
    held = _issue(house, "Translate the invoices", INVOICES, "ada")
    failed = _issue(house, "Update the payment library", PAYMENT, "ada")
    long = _discussion(house)
    chat = _chat(house)
    running = _issue(house, "Measure how fast the search is", SEARCH, "ada")
    for ref, status in ((asks, "waiting"), (held, "held"), (running, "running")):
        _wait(house, ref, status)
    house.quiet(failed)
    house.post(f"/threads/{running}/words", {"text": "Please measure the first search after a restart as well."})
    house.until(lambda: house.get("/runs?agent=watch"), "a heartbeat")
    house.quiet("own-watch")
    house.change("/agents/watch", {"heartbeat": {"every": 3600}})
    return Scene(house, story, asks, held, failed, running, merged, long, chat)


def _hire(house: House) -> None:
    # As a heartbeat waits a while, its agent comes first.
    for name, mode, more in (WATCH, ADA, BOB):
        house.post("/agents", {"name": name, "mode": mode, **actor(), **more})


def actor() -> dict[str, object]:
    """How an agent is added that follows the guide's script, and answers with Markdown."""
    modes = {f"mode.{mode}": mode for mode in ("read", "ask", "edit", "full")}
    options = {"list": "whole", "history": "first", **modes}
    return {"provider": "acp", "program": [NAME], "options": options}


def _issue(house: House, title: str, body: str, agent: str) -> str:
    page = house.post("/issues", {"title": title, "body": body, "project": "shop", "assignee": agent})
    return str(page["thread"]["ref"])


def _wait(house: House, ref: str, status: str) -> None:
    house.until(lambda: house.get(f"/threads/{ref}")["thread"]["status"] == status, f"{ref} is {status}")


def _story(house: House) -> str:
    ref = _issue(house, "Send people back to where they came from after the login", BACK, "ada")
    house.quiet(ref)
    house.say(ref, SLASHES)
    kept = house.get(f"/sessions?thread={ref}")[0]
    house.post(f"/threads/{ref}/release")
    (home_of(house.environment) / "sessions" / f"{kept['native_id']}.json").unlink()
    house.say(ref, NAMES)
    page = house.say(ref, LEFT)
    decisions = [run["decision"] for run in page["runs"]]
    assert decisions == ["resume", "reseed", "resume", "blank"], decisions
    return ref


def _merged(house: House) -> str:
    ref = _issue(house, "Wrong year in the footer", FOOTER, "ada")
    house.quiet(ref)
    house.post(f"/threads/{ref}/commit", {"message": "The footer has the right year"})
    house.post(f"/threads/{ref}/merge")
    house.post(f"/threads/{ref}/close")
    return ref


def _discussion(house: House) -> str:
    page = house.post("/issues", {"title": "What shall the next release have?", "project": "shop"})
    ref = str(page["thread"]["ref"])
    for number in range(1, 71):
        text = f"Wish {number}: a shorter way from the basket to the end, with fewer questions on the way."
        house.post(f"/threads/{ref}/words", {"text": text, "wakes": False})
    return ref


def _chat(house: House) -> str:
    ref = str(house.post("/chats", {"agent": "guide", "title": "A first look"})["ref"])
    house.say(ref, "Hello! What can you do?")
    house.post(f"/threads/{ref}/words", {"text": "Start again, please.", "fresh": True})
    house.quiet(ref)
    return ref


def _repository(path: Path) -> Path:
    files = {
        "README.md": "# Shop\n\nA small shop.\n",
        "footer.html": "<p>2025</p>\n",
        "shop/__init__.py": "",
        "shop/login.py": '"""The login."""\n\n\ndef login(name, password):\n    return find(name, password)\n',
        "exports/2019/all.csv": "number,amount\n1,20\n",
    }
    for name, text in files.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_text(text, encoding="utf-8")
    named = ["-c", "user.name=a person", "-c", "user.email=person@example.org"]
    for arguments in (["init", "-q", "-b", "main"], ["add", "."], ["commit", "-q", "-m", "A small shop"]):
        subprocess.run(["git", "-C", path, *named, *arguments], check=True, capture_output=True)
    return path
