"""A storm: the server killed again and again while four callers speak and `command` agents write down what they hear.

python -m tests.story.boundary.storm --kills 60
"""

import argparse
import http.client
import random
import re
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.story.boundary.words import TOKEN
from tests.story.kit import House
from tests.story.postgres import serving

CALLERS = 4
_WORDS = 8
"""Said in one chat before another is opened: what a lane holds for a person keeps its later words waiting."""
_PACE = 0.04
_DEADLINE = 120.0

# It keeps every prompt before it says what came of it, each in a file that is there as a whole or not at all.
AGENT = r"""#!/bin/sh
case "$1" in
--version) echo 1 ;;
show) [ -e "$COMMAND_HOME/$2" ] || exit 44 ;;
turn)
    if [ -n "$2" ]; then id="$2"; else id="s$$-$(date +%s%N)"; : > "$COMMAND_HOME/$id"; echo "session: $id"; fi
    cat > "$COMMAND_HOME/part-$$" && mv "$COMMAND_HOME/part-$$" "$COMMAND_HOME/prompt-$(date +%s%N)-$$"
    echo "done" ;;
esac
"""
_ENTRY = re.compile(r"^(\[\d+\] [^\n]*)\n--- begin (?:\w+) ---\n(.*?)\n--- end ", re.MULTILINE | re.DOTALL)
OPTIONS = {
    "start": "turn",
    "resume": "turn {session}",
    "session": "session: (.+)",
    "probe": "show {session}",
    "missing": "44",
    "version": "--version",
}


@dataclass
class Caller:
    """Says one word after the other until it is told to stop. What the server has not answered is said again."""

    house: House
    agent: str
    drawn: random.Random
    accepted: dict[str, str] = field(default_factory=dict)
    """By token, the wake."""
    chats: list[str] = field(default_factory=list)
    stop: threading.Event = field(default_factory=threading.Event)
    fault: BaseException | None = None

    def speak(self) -> None:
        try:
            self._speak()
        except BaseException as fault:  # noqa: BLE001 - it is raised where the callers are counted
            self.fault = fault

    def _speak(self) -> None:
        while not self.stop.is_set():
            if len(self.accepted) % _WORDS == 0:
                self.chats.append(self._until_answered("/chats", {"agent": self.agent})["ref"])
            token = f"word-{self.drawn.getrandbits(40):010x}"
            asked = {"text": f"A person says {token}.", "key": token}
            self.accepted[token] = self._until_answered(f"/threads/{self.chats[-1]}/words", asked)["wake"]["id"]
            self.stop.wait(self.drawn.random() * 2 * _PACE)

    def _until_answered(self, path: str, body: object) -> Any:
        end = time.monotonic() + _DEADLINE
        while True:
            try:
                return self.house.post(path, body)
            except (OSError, http.client.HTTPException):
                assert time.monotonic() < end, f"{path} was not answered within {_DEADLINE:g} s"
                time.sleep(0.02)


@dataclass(frozen=True)
class Sums:
    kills: int
    accepted: int
    once: int
    held: int
    lost: tuple[str, ...]
    doubled: tuple[str, ...]

    @property
    def good(self) -> bool:
        return not self.lost and not self.doubled

    def __str__(self) -> str:
        told = f"{self.accepted} words accepted: {self.once} handed over once, {self.held} held for a person"
        sums = f"The server was killed {self.kills} times. {told}, {len(self.lost)} lost, {len(self.doubled)} doubled."
        lost, doubled = (f"lost: {each}" for each in self.lost), (f"doubled: {each}" for each in self.doubled)
        return "\n".join([sums, *lost, *doubled])


def storm(root: Path, kills: int, seed: str) -> Sums:
    house, home = House(root), root / "agents"
    home.mkdir()
    program = home / "agent"
    program.write_text(AGENT, encoding="ascii")
    program.chmod(0o755)
    house.up()
    callers = [Caller(house, f"ada{number}", random.Random(f"{seed} {number}")) for number in range(CALLERS)]
    try:
        for caller in callers:
            _hire(house, caller.agent, program, home / caller.agent)
        speaking = [threading.Thread(target=caller.speak) for caller in callers]
        for thread in speaking:
            thread.start()
        try:
            _kill(house, kills, random.Random(seed))
        finally:
            for caller in callers:
                caller.stop.set()
            for thread in speaking:
                thread.join(_DEADLINE)
        for caller in callers:
            if caller.fault is not None:
                raise caller.fault
        _at_rest(house, [chat for caller in callers for chat in caller.chats])
        return _counted(house, kills, callers, home)
    finally:
        with suppress(Exception):
            house.down()


def _hire(house: House, name: str, program: Path, home: Path) -> None:
    home.mkdir()
    where = {"COMMAND_HOME": str(home), "HOME": str(home)}
    asked = {"name": name, "provider": "command", "program": [str(program)], "home": where, "options": OPTIONS}
    house.post("/agents", {**asked, "mode": "full", "most": 4})


def _kill(house: House, kills: int, drawn: random.Random) -> None:
    """Each start has a while in which to work: some have just begun, and some have caught up."""
    for _ in range(kills):
        time.sleep(drawn.choice((0.1, 0.3, 0.6, 1.0, 2.0)) * (0.5 + drawn.random()))
        house.kill()
        house.up()


def _at_rest(house: House, chats: Sequence[str]) -> None:
    end = time.monotonic() + _DEADLINE
    waiting = set(chats)
    while waiting:
        for ref in sorted(waiting):
            page = house.get(f"/threads/{ref}?limit=1")
            held = page["runs"] and page["runs"][0]["held"] == "person"
            if page["thread"]["status"] == "idle" or held:
                waiting.discard(ref)
        if time.monotonic() > end:
            return
        time.sleep(0.2)


def _counted(house: House, kills: int, callers: Sequence[Caller], home: Path) -> Sums:
    handed: Counter[str] = Counter()
    for prompt in home.glob("*/prompt-*"):
        handed.update(asked_for(prompt.read_text(encoding="utf-8")))
    accepted = {token: wake for caller in callers for token, wake in caller.accepted.items()}
    held, lost = 0, []
    for token, wake in accepted.items():
        if not handed[token]:
            shown = house.get(f"/why/{wake}")
            state, words = shown["wakes"][0]["state"], shown["headline"]
            waits = shown["run"] is not None and shown["run"]["held"] == "person"
            if words and (state in ("cancelled", "skipped") or (state == "pending" and waits)):
                held += 1
            else:
                lost.append(f"{token} ({wake}) is {state}: {words}")
    doubled = tuple(f"{token} ({accepted[token]}) {handed[token]} times" for token in accepted if handed[token] > 1)
    once = sum(handed[token] == 1 for token in accepted)
    return Sums(kills, len(accepted), once, held, tuple(lost), doubled)


def asked_for(prompt: str) -> list[str]:
    """The words that an agent is to act on. What a new session is told of the past was handed over in another one."""
    told = _ENTRY.findall(prompt)
    if not told:
        return TOKEN.findall(prompt)
    return [token for who, text in told if "asked for this" in who for token in TOKEN.findall(text)]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.story.boundary.storm")
    parser.add_argument("--kills", type=int, default=60, help="how often the server is killed (%(default)s)")
    parser.add_argument("--seed", default=str(random.SystemRandom().randrange(10**6)))
    parser.add_argument("--database", choices=("sqlite", "postgresql"), default="sqlite", help="of the servers")
    asked = parser.parse_args()
    root = tempfile.TemporaryDirectory(prefix="clew-storm-", ignore_cleanup_errors=True)
    with serving(asked.database), root as place:
        sums = storm(Path(place).resolve(), asked.kills, asked.seed)
    print(f"seed {asked.seed}\n{sums}")
    return 0 if sums.good else 1


if __name__ == "__main__":
    sys.exit(main())
