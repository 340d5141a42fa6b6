"""The checker itself: each kind of wrong is seen in a log that was made up for it, and nothing else is."""

import pytest

from tests.providers.loopback.heard import Role, Turn
from tests.story.boundary.conversations import Asked
from tests.story.boundary.judging import History, Judged, Shown, Verdict, judge
from tests.story.boundary.words import Word

FIRST = Word("word-0000000001", "reply one is all of it")
WORD = Word("word-0000000002", "reply two is all of it")
LATER = Word("word-0000000003", "reply three is all of it")
QUIET = Shown(held=False, words="")
HELD = Shown(held=True, words="Nobody can tell whether the agent took the prompt.")
GIVEN_UP = Shown(held=True, words="Failed, not retrying.", given_up=True)
ANSWERED = Shown(held=False, words="", answered=True)
CUT = "Your last turn here was cut off. What it had going is gone."
GO_ON = "You were told before what is wanted of you ([2]), and your work on it was cut off. Look at it, and go on."
BEFORE = (FIRST.text, f"> {FIRST.reply}")
SAW = '> SAW users=3 first="a" last="b"'


def asked(*said: str, session: str = "s1") -> Asked:
    """What begins with > is the agent's."""
    turns = (Turn(Role.ASSISTANT, each[2:]) if each.startswith("> ") else Turn(Role.USER, each) for each in said)
    return Asked(session, tuple(turns))


def judged(*log: Asked, shown: Shown = QUIET, new: bool = False, ended: bool = True) -> Judged:
    history = History() if new else History("s1", {("s1", 0)})
    return judge(WORD, log, shown, history, ended=ended)


@pytest.mark.parametrize(
    ("log", "shown", "verdict"),
    [
        # A turn as it should be, and the word after it.
        ([asked(*BEFORE, WORD.text), asked(*BEFORE, WORD.text, f"> {WORD.reply}", LATER.text)], ANSWERED, Verdict.ONCE),
        # The agent has its answer, and nobody read it.
        ([asked(*BEFORE, WORD.text, f"> {WORD.reply}", LATER.text)], QUIET, Verdict.UNREAD),
        ([asked(*BEFORE, WORD.text, f"> {WORD.reply}", LATER.text)], GIVEN_UP, Verdict.UNREAD),
        # It was asked for another one, or has only half of it.
        ([asked(*BEFORE, WORD.text, f"> {WORD.reply}", GO_ON, SAW, LATER.text)], QUIET, Verdict.ONCE),
        ([asked(*BEFORE, WORD.text, "> reply two", LATER.text)], QUIET, Verdict.ONCE),
        # The agent asked its model twice for one turn.
        ([asked(*BEFORE, WORD.text), asked(*BEFORE, WORD.text)], QUIET, Verdict.ONCE),
        # Its prompt failed, and the next one stands right behind it.
        ([asked(*BEFORE, WORD.text), asked(*BEFORE, WORD.text, LATER.text)], QUIET, Verdict.ONCE),
        # The model was asked, the store did not hold it, and it was sent again.
        ([asked(*BEFORE, WORD.text), asked(*BEFORE, WORD.text), asked(*BEFORE, WORD.text)], QUIET, Verdict.ONCE),
        # Sent again although the session had it.
        ([asked(*BEFORE, WORD.text), asked(*BEFORE, WORD.text, WORD.text)], QUIET, Verdict.DOUBLED),
        # Sent again to another session.
        ([asked(*BEFORE, WORD.text), asked(WORD.text, session="s2")], QUIET, Verdict.DOUBLED),
        ([asked(WORD.text, session="s2")], QUIET, Verdict.STRAYED),
        ([asked(*BEFORE, GO_ON), asked(*BEFORE, GO_ON, SAW, LATER.text)], QUIET, Verdict.LOST),
        ([asked(*BEFORE, LATER.text)], QUIET, Verdict.LOST),
        ([asked(*BEFORE, LATER.text)], HELD, Verdict.HELD),
        ([], HELD, Verdict.HELD),
        # Nothing was sent, and yet nobody tries again.
        ([asked(*BEFORE, LATER.text)], GIVEN_UP, Verdict.GIVEN_UP),
        ([], GIVEN_UP, Verdict.GIVEN_UP),
        # Held without a reason that anybody could read.
        ([], Shown(held=True, words=""), Verdict.LOST),
        # It did reach the model, and the conversation has lost it.
        ([asked(*BEFORE, WORD.text), asked(*BEFORE, LATER.text)], GIVEN_UP, Verdict.LOST),
        ([asked(*BEFORE, WORD.text)], Shown(held=False, words="", settled=False), Verdict.STUCK),
    ],
)
def test_what_became_of_a_word(log: list[Asked], shown: Shown, verdict: Verdict) -> None:
    assert judged(*log, shown=shown).verdict is verdict


def test_a_word_that_was_given_up_and_told_along_with_the_next_was_asked_of_nobody() -> None:
    log = [asked(*BEFORE, f"{WORD.text}\n{LATER.text}")]
    assert judge(WORD, log, GIVEN_UP, History("s1", {("s1", 0)}), LATER).verdict is Verdict.GIVEN_UP
    log = [asked(*BEFORE, WORD.text), asked(*BEFORE, WORD.text, LATER.text)]
    assert judge(WORD, log, GIVEN_UP, History("s1", {("s1", 0)}), LATER).verdict is Verdict.ONCE


def test_an_agent_that_forgets_what_it_has_answered_has_had_it_once() -> None:
    log = asked(*BEFORE, WORD.text), asked(*BEFORE, LATER.text)
    found = judged(*log, shown=Shown(held=False, words="", answered=True))
    assert (found.verdict, found.forgotten) == (Verdict.ONCE, True)


def test_a_new_thread_gets_the_session_that_its_first_word_reached() -> None:
    history = History()
    assert judge(WORD, [asked(WORD.text)], QUIET, history).good
    assert history.session == "s1"
    assert judge(LATER, [asked(WORD.text, LATER.text, session="s2")], QUIET, history).verdict is Verdict.STRAYED


@pytest.mark.parametrize(
    "log",
    [
        # It has the word, and no answer, or half of one, or its program's own filler.
        [asked(*BEFORE, WORD.text, GO_ON)],
        [asked(*BEFORE, WORD.text, "> reply two", GO_ON)],
        [asked(*BEFORE, WORD.text, "> No response requested.", GO_ON)],
        [asked(*BEFORE, WORD.text, f"{CUT}\n{LATER.text}")],
        # Cut off a second time while it went on.
        [asked(*BEFORE, WORD.text, GO_ON), asked(*BEFORE, WORD.text, GO_ON, GO_ON)],
        # What was looked at before the word was said is no matter of this word.
        [asked(f"{CUT}\n{FIRST.text}", f"> {FIRST.reply}", WORD.text)],
    ],
)
def test_what_is_so_may_be_told(log: list[Asked]) -> None:
    assert judged(*log).falsely == ()


@pytest.mark.parametrize(
    ("log", "count"),
    [
        # Two lies at once: it never had the word, and its last turn came to its end.
        ([asked(*BEFORE, GO_ON)], 2),
        ([asked(*BEFORE, f"{CUT}\n{WORD.text}")], 1),
        # The turn that is said to be cut off has its whole answer.
        ([asked(*BEFORE, WORD.text, f"> {WORD.reply}", GO_ON)], 1),
        ([asked(*BEFORE, WORD.text, GO_ON, SAW, GO_ON)], 1),
        # The model never saw it as its last prompt, and it is in the history all the same.
        ([asked(*BEFORE, f"{CUT}\n{WORD.text}", f"> {WORD.reply}", LATER.text)], 1),
    ],
)
def test_what_is_not_so_is_falsely_told(log: list[Asked], count: int) -> None:
    # However often the model is asked with it, it is told once.
    assert len(judged(*log, *log).falsely) == count


def test_a_turn_that_was_killed_before_its_agent_could_end_it_may_be_called_cut_off() -> None:
    log = asked(*BEFORE, WORD.text, f"> {WORD.reply}", GO_ON)
    found = judged(log, ended=False)
    assert (found.falsely, found.at_its_end) == ((), True)
    assert not judged(log).at_its_end
    # The turn before it had come to its end, whatever was killed since.
    assert judged(asked(*BEFORE, f"{CUT}\n{WORD.text}"), ended=False).falsely


def test_a_new_session_cannot_have_been_cut_off() -> None:
    assert judged(asked(f"{CUT}\n{WORD.text}"), new=True).falsely


def test_a_new_session_is_known_by_the_later_word_where_the_first_never_came() -> None:
    log = [asked(GO_ON), asked(GO_ON, SAW, LATER.text)]
    found = judge(WORD, log, QUIET, History(), LATER)
    assert found.verdict is Verdict.LOST
    assert len(found.falsely) == 2
