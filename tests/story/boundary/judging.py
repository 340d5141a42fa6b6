"""The checker: what became of a word that a person said, by what the model was handed and by what a person is shown.

A word must have reached the model as a user's turn exactly once, in the session that its thread has been in; or be held
for a person, with a reason, and have reached nobody. An agent must not be told that a turn was cut off when none was,
or that it was told something that its conversation does not hold.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from tests.providers.loopback.heard import Role, Turn
from tests.story.boundary.conversations import Asked
from tests.story.boundary.words import Word


class Verdict(StrEnum):
    ONCE = "reached once"
    HELD = "held for a person"
    LOST = "lost"
    DOUBLED = "doubled"
    STRAYED = "in another session"
    STUCK = "neither told nor held"
    """It is still going on when nobody would wait any more."""


GOOD = frozenset({Verdict.ONCE, Verdict.HELD})

CUT_OFF = re.compile(r"cut off|[Ww]hat it had going is gone|ended abruptly|was interrupted")
"""What Clew says to an agent whose turn did not come to its end."""
TOLD = re.compile(r"told before|were told (already|earlier)")
"""What Clew says to an agent that has the words already."""
_SAW = re.compile(r'SAW users=\d+ first="(?:[^"\\]|\\.)*" last="(?:[^"\\]|\\.)*"')
_SAY = re.compile(r"^SAY:[ \t]*(?P<reply>.*?)[ \t]*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Shown:
    """What a person is shown of a word: whether it waits for them or was given up, and the reason."""

    held: bool
    words: str
    settled: bool = True
    """Nothing goes on in its thread any more."""
    answered: bool = False
    """Its whole reply stands in the thread."""


@dataclass(frozen=True, slots=True)
class Judged:
    verdict: Verdict
    falsely: tuple[str, ...] = ()
    """What the agent was told and was not so, each in a sentence."""
    forgotten: bool = False
    """It reached the model and was answered in full; the agent's own store has lost it."""

    @property
    def good(self) -> bool:
        return self.verdict in GOOD and not self.falsely


@dataclass
class History:
    """What is known of a thread before a word is said in it: its session, and which prompts were looked at."""

    session: str | None = None
    looked_at: set[tuple[str, int]] = field(default_factory=set)


def judge(word: Word, asked: Sequence[Asked], shown: Shown, history: History, later: Word | None = None) -> Judged:
    """`asked` are the requests since the word was said, and `later` was said in the same thread after it. The history
    is brought up to date."""
    told = [each for each in asked if each.times(word.token)]
    said = [word] if later is None else [word, later]
    mine = {each.session for each in asked if any(each.times(one.token) for one in said)} | {history.session}
    falsely = tuple(_falsely(word, [each for each in asked if each.session in mine], history))
    last = {each.session: each for each in asked}
    times = {session: each.times(word.token) for session, each in last.items() if each.times(word.token)}
    verdict, forgotten = _verdict(times, told, shown, history), False
    if verdict is Verdict.LOST and told and shown.answered:
        verdict, forgotten = Verdict.ONCE, True
    if times and history.session is None:
        history.session = next(iter(times))
    return Judged(verdict, falsely, forgotten)


def _verdict(times: dict[str, int], told: Sequence[Asked], shown: Shown, history: History) -> Verdict:
    if not shown.settled:
        return Verdict.STUCK
    if sum(times.values()) > 1:
        return Verdict.DOUBLED
    if times:
        strayed = history.session is not None and history.session not in times
        return Verdict.STRAYED if strayed else Verdict.ONCE
    return Verdict.HELD if shown.held and shown.words and not told else Verdict.LOST


# ---------------------------------------------------------------- what an agent is told that is not so


def _falsely(word: Word, asked: Iterable[Asked], history: History) -> Iterator[str]:
    for each in asked:
        for number, (before, prompt) in enumerate(_prompts(each.turns)):
            if (each.session, number) in history.looked_at:
                continue
            history.looked_at.add((each.session, number))
            if TOLD.search(prompt) and word.token not in prompt and not _has(before, word.token):
                yield f"It was told that it had the word, and its conversation does not hold it: {_short(prompt)}"
            if CUT_OFF.search(prompt) and not _was_cut_off(before):
                yield f"It was told that its turn was cut off, and none was: {_short(prompt)}"


def _prompts(turns: Sequence[Turn]) -> Iterator[tuple[Sequence[Turn], str]]:
    for at, turn in enumerate(turns):
        if turn.role is Role.USER:
            yield turns[:at], turn.text


def _was_cut_off(before: Sequence[Turn]) -> bool:
    """Whether the last prompt has no whole answer: the one it asked for, or the one that proves what was seen."""
    at = max((at for at, turn in enumerate(before) if turn.role is Role.USER), default=None)
    if at is None:
        return False
    wanted = _SAY.findall(before[at].text)
    answers = [turn.text for turn in before[at + 1 :]]
    return not any(wanted[-1] in text if wanted else _SAW.search(text) for text in answers)


def _has(turns: Sequence[Turn], token: str) -> bool:
    return any(token in turn.text for turn in turns if turn.role is Role.USER)


def _short(prompt: str) -> str:
    return " ".join(prompt.split())[:300]
