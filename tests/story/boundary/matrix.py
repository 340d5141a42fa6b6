"""The matrix: which agent, in what state, is killed how. Its tries are dealt out so that few of them cover much."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain, product, zip_longest
from typing import TypeVar

from tests.story.boundary.moments import DENSE, MOMENTS, PIPE, Anchor, Moment

T = TypeVar("T")


class Victim(StrEnum):
    AGENT = "agent"
    """The agent's own program."""
    SERVER = "server"
    """The agent's server, which all its sessions share."""
    DAEMON = "daemon"
    """`clew up`."""
    EVERYTHING = "everything"
    CONNECTION = "connection"
    """Nobody dies; what goes over the wire to the agent's server is disturbed."""


class Trouble(StrEnum):
    """What is wrong with the connection. It comes once for a word."""

    CUT = "cut"
    """The call that carries the prompt is cut before it arrives."""
    CUT_AFTER = "cut-after"
    """It arrives, and its answer is cut."""
    SEVER = "sever"
    """It arrives, and every connection is cut."""
    FAILS = "500"
    """It does not arrive, and is answered 500."""
    FAILS_AFTER = "500-after"
    """It arrives, and is answered 500."""
    HTML = "404"
    """It does not arrive, and is answered 404 with a page."""
    LATE = "delay"
    """It does not arrive before Clew's deadline, and never after it."""
    LATE_ANSWER = "delay-answer"
    """It arrives, and its answer comes after Clew's deadline."""
    LOOK_FAILS = "get-500"
    """The session is asked for before the prompt, and that is answered 500."""
    LOOK_HTML = "get-404"
    """The same, answered 404 with a page."""


SLOW_TROUBLES = frozenset({Trouble.LATE, Trouble.LATE_ANSWER})
"""Each takes longer than the deadline of an answer, which is 30 s."""


@dataclass(frozen=True, slots=True)
class Combination:
    agent: str
    victim: Victim
    resumed: bool
    cold: bool
    traced: bool = False
    """With a tap between Clew and the agent that says when the prompt passes."""

    def __str__(self) -> str:
        session, state = "resumed" if self.resumed else "new", "cold" if self.cold else "warm"
        return f"{self.agent}, {session}, {state}, kills {self.victim}{', traced' if self.traced else ''}"


@dataclass(frozen=True, slots=True)
class Round:
    """Tries of one combination at once, each in a lane of its own."""

    combination: Combination
    moments: tuple[Moment, ...] = ()
    troubles: tuple[Trouble, ...] = ()

    def __len__(self) -> int:
        return len(self.moments) or len(self.troubles)


AGENTS = ("claude", "codex", "opencode", "guide", "acp:codex")
WITH_SERVER = frozenset({"opencode"})
"""Agents whose sessions share one server."""
WITHOUT_TAP = frozenset({"guide"})
"""Agents of which no other program can be named."""
LANES = 6


def victims(agent: str) -> tuple[Victim, ...]:
    own = Victim.SERVER if agent in WITH_SERVER else Victim.AGENT
    return own, Victim.DAEMON, Victim.EVERYTHING


def rounds(agent: str, tries: int, seed: str, *, brief: bool = False, lanes: int = LANES) -> list[Round]:
    """At least so many tries. Each combination comes once before any comes twice, each with other moments."""
    drawn = random.Random(f"{seed} {agent}")
    dealt = [list(_of_combination(each, drawn, brief, lanes)) for each in _combinations(agent, brief)]
    drawn.shuffle(dealt)
    if agent in WITH_SERVER:
        dealt.insert(0, list(_of_connection(agent, drawn, brief, lanes)))
    ordered = [each for each in chain.from_iterable(zip_longest(*dealt)) if each is not None]
    chosen: list[Round] = []
    while sum(map(len, chosen)) < tries:
        chosen.append(ordered[len(chosen) % len(ordered)])
    return chosen


def _combinations(agent: str, brief: bool) -> Iterator[Combination]:
    for victim, resumed, cold in product(victims(agent), (True, False), (False, True)):
        yield Combination(agent, victim, resumed, cold)
        if not brief and agent not in WITHOUT_TAP:
            yield Combination(agent, victim, resumed, cold, traced=True)


def _of_combination(combination: Combination, drawn: random.Random, brief: bool, lanes: int) -> Iterator[Round]:
    moments = list(DENSE if brief else MOMENTS)
    drawn.shuffle(moments)
    if combination.traced:
        # What a tap is for: moments that it can find exactly, and the one that nobody else can.
        moments = [each for each in moments if each.anchor is Anchor.OUT and each.ms >= 0]
        moments = [moment for each in moments for moment in (each, PIPE)][: len(moments)]
    for group in _grouped(moments, lanes):
        yield Round(combination, moments=tuple(group))


def _of_connection(agent: str, drawn: random.Random, brief: bool, lanes: int) -> Iterator[Round]:
    for resumed, cold in ((True, False), (False, False), (True, True), (False, True)):
        combination = Combination(agent, Victim.CONNECTION, resumed, cold, traced=True)
        # A new session is asked for nothing before its first prompt.
        troubles = [each for each in Trouble if resumed or each not in (Trouble.LOOK_FAILS, Trouble.LOOK_HTML)]
        quick = [each for each in troubles if each not in SLOW_TROUBLES]
        drawn.shuffle(quick)
        for group in _grouped(quick, lanes):
            yield Round(combination, troubles=tuple(group))
        if not brief:
            yield Round(combination, troubles=tuple(each for each in troubles if each in SLOW_TROUBLES))


def _grouped(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    for at in range(0, len(items), size):
        yield items[at : at + size]
