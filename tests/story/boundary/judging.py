"""The checker: what became of a word that a person said, by what the model was handed and by what a person is shown.

A word must have reached the model as a user's turn exactly once, in the session that its thread has been in; or be held
for a person, with a reason, and have reached nobody. What reached nobody is not given up, and an answer that the agent
has kept stands in the thread. An agent must not be told that a turn was cut off when none was, or that it was told
something that its conversation does not hold.
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
    GIVEN_UP = "given up unsent"
    """Nobody was asked for it, and nobody tries again; at most it was told along with a later word."""
    UNREAD = "answer not read back"
    """The agent has answered it in full and keeps that; the thread has no answer, and the agent was asked for none."""
    DOUBLED = "doubled"
    STRAYED = "in another session"
    STUCK = "neither told nor held"
    """It is still going on when nobody would wait any more."""


GOOD = frozenset({Verdict.ONCE, Verdict.HELD})

CUT_OFF = re.compile(r"cut off|[Ww]hat it had going is gone|ended abruptly|was interrupted")
"""What Clew says to an agent whose turn did not come to its end."""
TOLD = re.compile(r"told before|were told (already|earlier)")
"""What Clew says to an agent that has the words already."""
_SAW = re.compile(
    r'(?:SAW users=|Prompts that I remember: )\d+,? (?:first=|from )"(?:[^"\\]|\\.)*" (?:last=|to )"(?:[^"\\]|\\.)*"'
)
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
    given_up: bool = False
    """It is not tried again unless a person asks for it."""


@dataclass(frozen=True, slots=True)
class Judged:
    verdict: Verdict
    falsely: tuple[str, ...] = ()
    """What the agent was told and was not so, each in a sentence."""
    forgotten: bool = False
    """It reached the model and was answered in full; the agent's own store has lost it."""
    at_its_end: bool = False
    """The turn was called cut off, and so it was: after the last of its answer, before its agent had ended it."""

    @property
    def good(self) -> bool:
        return self.verdict in GOOD and not self.falsely


@dataclass
class History:
    """What is known of a thread before a word is said in it: its session, and which prompts were looked at."""

    session: str | None = None
    looked_at: set[tuple[str, int]] = field(default_factory=set)


def judge(
    word: Word,
    asked: Sequence[Asked],
    shown: Shown,
    history: History,
    later: Word | None = None,
    *,
    ended: bool = True,
) -> Judged:
    """`asked` are the requests since the word was said, and `later` was said in the same thread after it. `ended`:
    nothing was killed before the agent had time to end its turn, once it had the last of the model's answer. The
    history is brought up to date."""
    told = [each for each in asked if each.times(word.token)]
    said = [word] if later is None else [word, later]
    mine = {each.session for each in asked if any(each.times(one.token) for one in said)} | {history.session}
    claims = [*_claims([each for each in asked if each.session in mine], history)]
    at_its_end = not ended and any(each.cut_off_whole and each.about(word) for each in claims)
    falsely = tuple(words for each in claims for words in each.falsely(word, ended))
    last = {each.session: each for each in asked}
    times = {session: each.times(word.token) for session, each in last.items() if each.times(word.token)}
    verdict, forgotten = _verdict(times, told, shown, history), False
    if verdict is Verdict.LOST and told and shown.answered:
        verdict, forgotten = Verdict.ONCE, True
    if (
        verdict is Verdict.ONCE
        and not shown.answered
        and any(_is_left_unread(word, each.turns) for each in last.values())
    ):
        verdict = Verdict.UNREAD
    if shown.settled and shown.given_up and not any(_is_asked_for(word, later, each.turns) for each in told):
        verdict = Verdict.GIVEN_UP
    if times and history.session is None:
        history.session = next(iter(times))
    return Judged(verdict, falsely, forgotten, at_its_end)


def _verdict(times: dict[str, int], told: Sequence[Asked], shown: Shown, history: History) -> Verdict:
    if not shown.settled:
        return Verdict.STUCK
    if sum(times.values()) > 1:
        return Verdict.DOUBLED
    if times:
        strayed = history.session is not None and history.session not in times
        return Verdict.STRAYED if strayed else Verdict.ONCE
    return Verdict.HELD if shown.held and shown.words and not told else Verdict.LOST


def _is_asked_for(word: Word, later: Word | None, turns: Sequence[Turn]) -> bool:
    """Whether it stands in a prompt of its own. The prompt of a later word tells what was said before it, too."""
    prompts = [turn.text for turn in turns if turn.role is Role.USER and word.token in turn.text]
    return any(later is None or later.token not in each for each in prompts)


def _is_left_unread(word: Word, turns: Sequence[Turn]) -> bool:
    """Whether the conversation went on after its whole answer, with a prompt that asks for no other."""
    mine = [each for each in _prompts(turns) if _has(each[0], word.token)]
    if not mine:
        return False
    before, prompt = mine[0]
    asks = CUT_OFF.search(prompt) or TOLD.search(prompt)
    return not asks and any(turn.role is Role.ASSISTANT and word.reply in turn.text for turn in before)


# ---------------------------------------------------------------- what an agent is told that is not so


@dataclass(frozen=True, slots=True)
class _Claim:
    """A prompt, and what was said in its conversation before it."""

    prompt: str
    before: Sequence[Turn]

    @property
    def cut_off_whole(self) -> bool:
        """It calls a turn cut off that has its whole answer."""
        return CUT_OFF.search(self.prompt) is not None and bool(_last(self.before)) and not _was_cut_off(self.before)

    def about(self, word: Word) -> bool:
        return word.token in _last(self.before)

    def falsely(self, word: Word, ended: bool) -> Iterator[str]:
        if TOLD.search(self.prompt) and word.token not in self.prompt and not _has(self.before, word.token):
            yield f"It was told that it had the word, and its conversation does not hold it: {_short(self.prompt)}"
        excused = not ended and self.about(word)
        if CUT_OFF.search(self.prompt) and not _was_cut_off(self.before) and not excused:
            yield f"It was told that its turn was cut off, and none was: {_short(self.prompt)}"


def _claims(asked: Iterable[Asked], history: History) -> Iterator[_Claim]:
    """Every prompt that was not looked at before."""
    for each in asked:
        for number, (before, prompt) in enumerate(_prompts(each.turns)):
            if (each.session, number) not in history.looked_at:
                history.looked_at.add((each.session, number))
                yield _Claim(prompt, before)


def _last(turns: Sequence[Turn]) -> str:
    """The last prompt of them."""
    return next((turn.text for turn in reversed(turns) if turn.role is Role.USER), "")


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
