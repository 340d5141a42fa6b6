"""The ground on which rounds are played: `clew up` in a process of its own, one kind of agent, and lanes of it."""

import http.client
import math
import statistics
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from clew.kernel import WakeEnd
from tests.providers.rig import Rig
from tests.story.boundary.conversations import Log, OfGuide, OfModel
from tests.story.boundary.judging import History, Shown
from tests.story.boundary.matrix import WITH_SERVER
from tests.story.boundary.striking import kill
from tests.story.boundary.tapping import Taps
from tests.story.boundary.words import Said, Word, Words
from tests.story.kit import House, rig_of

DEADLINE = 90.0
"""Seconds that a person waits for a thread to come to rest."""
_LOST = (OSError, http.client.HTTPException)


@dataclass
class Lane:
    """One agent in one chat, and what is known of it. A chat that went wrong, or got long, is left for a new one."""

    agent: str
    directory: str
    ref: str = ""
    words: int = 0
    history: History = field(default_factory=History)


@dataclass
class Delays:
    """Seconds from when a word was said to what became of it, as seen lately."""

    out: deque[float] = field(default_factory=lambda: deque(maxlen=9))
    asked: deque[float] = field(default_factory=lambda: deque(maxlen=9))

    @property
    def known(self) -> bool:
        return bool(self.out)

    def expect_out(self) -> float:
        return statistics.median(self.out) if self.out else 0.1

    def expect_asked(self) -> float:
        return statistics.median(self.asked) if self.asked else self.expect_out() + 0.005


class Ground:
    def __init__(self, root: Path, agent: str, traced: bool, lanes: int, seed: str) -> None:
        self.agent, self.traced = agent, traced
        self.rig: Rig = rig_of(agent, root / "rig")
        self.house = House(root)
        self.words = Words(f"{seed} {agent} {traced}")
        self.taps = Taps(root, agent in WITH_SERVER) if traced else None
        self.delays: dict[tuple[bool, bool], Delays] = {}
        model = self.rig.model
        self.log: Log = OfModel(model) if model is not None else OfGuide(root / "rig" / "a")
        # A program is known by its directory, so each lane has an agent of its own; a server's lanes share one, for it
        # takes its time in every directory anew.
        names = [f"ada{0 if agent in WITH_SERVER else number}" for number in range(lanes)]
        self.lanes = [Lane(name, str(root / "data" / "homes" / name)) for name in names]

    def begin(self) -> None:
        self.house.up()
        settings = self.rig.settings("a")
        program, environment = settings.program, dict(settings.environment)
        if self.taps is not None:
            program, environment = self.taps.before(program), {**environment, **self.taps.environment}
        for name in dict.fromkeys(lane.agent for lane in self.lanes):
            asked = {
                "name": name,
                "provider": self.agent.partition(":")[0],
                "program": list(program),
                "home": dict(settings.home),
                "create_home": True,
                "environment": environment,
                "options": dict(settings.options),
                "mode": "full",
                "most": len(self.lanes),
            }
            self.house.post("/agents", asked)

    def end(self) -> None:
        with suppress(Exception):
            self.house.down()
        kill(self.rig.processes("a"))
        if self.taps is not None:
            self.taps.close()
        self.rig.close()

    # ---------------------------------------------------------------- the server

    def restart(self) -> None:
        """As a person does it, who goes on once the agents are said to be there."""
        self.house.down()
        self.up()
        with suppress(AssertionError):
            self.house.until(lambda: self._said().count("  agents ") >= self._said().count("Clew is ready"), "agents")

    def up(self) -> None:
        self.house.up()

    def _said(self) -> str:
        return (self.house.root / "up.log").read_text(encoding="utf-8")

    # ---------------------------------------------------------------- threads

    def open_chat(self, lane: Lane) -> None:
        if lane.ref:
            self.house.post(f"/threads/{lane.ref}/close")
        lane.ref = self.house.post("/chats", {"agent": lane.agent})["ref"]
        lane.words, lane.history = 0, History()

    def say(self, lane: Lane, word: Word) -> Said:
        """However often it is said: the word's token names it, so that the server takes it once."""
        said = Said(word, lane.ref, time.monotonic(), time.time())
        lane.words += 1
        with suppress(*_LOST):
            said.wake = self._post(said)
        return said

    def say_again(self, said: Said) -> None:
        """The answer was lost with the server, so a person says it once more."""
        if said.wake is None:
            said.wake = self._post(said)

    def _post(self, said: Said) -> dict[str, Any]:
        wake: dict[str, Any] = self.house.post(
            f"/threads/{said.ref}/words", {"text": said.word.text, "key": said.word.token}
        )["wake"]
        return wake

    def at_rest(self, lanes: Sequence[Lane], seconds: float = DEADLINE) -> set[str]:
        """Wait until nothing goes on in these threads. Those in which something still does are left out."""
        began = time.monotonic()
        end = began + seconds
        waiting = {lane.ref for lane in lanes}
        rested: set[str] = set()
        while waiting - rested and time.monotonic() < end:
            threads = {each["ref"]: each for each in self.house.get("/threads?state=open&limit=100")}
            rested |= {ref for ref in waiting - rested if self._rests(threads[ref])}
            if waiting - rested:
                # What takes long is looked at less often.
                time.sleep(min(0.25, 0.05 + (time.monotonic() - began) / 10))
        return rested

    def _rests(self, thread: dict[str, Any]) -> bool:
        if thread["status"] == "held":
            return bool(self.run_of(thread["ref"])["held"] == "person")
        if thread["status"] == "waiting":
            self.house.allow(thread["ref"])
        return bool(thread["status"] == "idle")

    def run_of(self, ref: str) -> dict[str, Any]:
        """The newest of a thread."""
        run: dict[str, Any] = self.house.get(f"/threads/{ref}?limit=1")["runs"][0]
        return run

    def shown(self, said: Said, settled: bool) -> Shown:
        """What a person sees of a word: of its wake, and of what the thread waits for."""
        assert said.wake is not None
        wake = self.house.get(f"/wakes/{said.wake['id']}")
        page = self.house.get(f"/threads/{said.ref}?limit=20")
        run = page["runs"][0] if page["runs"] else {"held": None, "words": ""}
        answered = any(said.word.reply in each["text"] for each in page["entries"] if each["author_kind"] != "human")
        if wake["state"] in ("cancelled", "skipped"):
            return Shown(True, wake["words"], settled, answered, wake["code"] == WakeEnd.GAVE_UP.code)
        if wake["state"] == "pending" and run["held"] == "person":
            return Shown(True, run["words"] or page["thread"]["words"], settled, answered)
        return Shown(False, wake["words"], settled, answered)

    def session_of(self, lane: Lane) -> str | None:
        """The agent's own id of the session that the thread is in."""
        found = [each for each in self.house.get(f"/sessions?thread={lane.ref}") if not each["superseded"]]
        return found[0]["native_id"] if found else None

    # ---------------------------------------------------------------- how long what takes

    def learn(self, said: Sequence[Said], kind: tuple[bool, bool], mark: int) -> None:
        """By the first run of each word: when its prompt was let out, and when the model was asked."""
        delays = self.delays.setdefault(kind, Delays())
        first: dict[str, float] = {}
        for each in self.log.since(mark):
            for one in said:
                if each.times(one.word.token):
                    first.setdefault(one.word.token, each.at)
        for one in said:
            # What came after the strike came by another way.
            until = one.struck or math.inf
            if (out := self._out(one)) is not None and one.posted + out <= until:
                delays.out.append(out)
                one.out = one.posted + out
            if (at := first.get(one.word.token)) and one.posted < at <= until:
                delays.asked.append(at - one.posted)

    def _out(self, said: Said) -> float | None:
        if self.taps is not None and (at := self.taps.passed(said.word.token)) is not None:
            return at - said.posted
        runs = self.house.get(f"/threads/{said.ref}?limit=1")["runs"]
        first = [run for run in runs if run["queued_at"] > said.posted_wall - 0.1][-1:]
        for event in self.house.get(f"/runs/{first[0]['id']}/events") if first else []:
            if event["kind"] == "step" and event["body"].get("what") == "verify":
                return float(event["at"] - said.posted_wall)
        return None


@contextmanager
def ground(root: Path, agent: str, traced: bool, lanes: int, seed: str) -> Iterator[Ground]:
    made = Ground(root, agent, traced, lanes, seed)
    try:
        made.begin()
        yield made
    finally:
        made.end()
