"""Warm sessions: idle ones are ended, used ones never."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.kernel.warm import Fate, Moment, Reaped, WarmFacts, WarmReason, confirm, reap, still_idle

LIMIT = 600.0
USED = Moment(wall=10_000.0, active=100.0)


def _facts(*, idle: float, slept: float = 0.0) -> WarmFacts:
    return WarmFacts(epoch=7, last_used=USED, now=Moment(USED.wall + idle + slept, USED.active + idle))


@pytest.mark.case("P15")
def test_a_session_idle_past_its_limit_is_ended_and_its_cursor_kept() -> None:
    kept = reap(_facts(idle=599.0), LIMIT)
    assert kept == Reaped(Fate.KEEP, WarmReason.RECENT, 7, 599.0, 0.0, LIMIT)
    assert kept.words == "Idle for 599 s of 600 s; 0 s of machine sleep do not count."
    ended = reap(_facts(idle=600.0), LIMIT)
    assert ended == Reaped(Fate.END, WarmReason.IDLE, 7, 600.0, 0.0, LIMIT)
    assert ended.words == "Idle for 600 s, 600 s allowed: the process is ended and its cursor kept."


@pytest.mark.case("P16")
def test_machine_sleep_is_not_idle_time() -> None:
    kept = reap(_facts(idle=30.0, slept=28_800.0), LIMIT)
    assert kept == Reaped(Fate.KEEP, WarmReason.RECENT, 7, 30.0, 28_800.0, LIMIT)
    assert kept.words == "Idle for 30 s of 600 s; 28800 s of machine sleep do not count."
    assert reap(_facts(idle=600.0, slept=28_800.0), LIMIT).fate is Fate.END


@pytest.mark.case("P16")
@given(st.floats(0, 1e6), st.floats(0, 1e6), st.floats(-1e6, 1e6))
def test_a_jump_of_the_wall_clock_changes_no_fate(idle: float, slept: float, jump: float) -> None:
    facts = _facts(idle=idle, slept=slept)
    jumped = replace(facts, now=replace(facts.now, wall=facts.now.wall + jump))
    assert reap(jumped, LIMIT).fate is reap(facts, LIMIT).fate


def test_clocks_that_run_backwards_count_as_nothing() -> None:
    facts = replace(_facts(idle=0.0), now=Moment(wall=9_000.0, active=50.0))
    assert (facts.idle, facts.slept) == (0.0, 0.0)
    barely = _facts(idle=0.5, slept=0.25)
    assert (barely.idle, barely.slept) == (0.5, 0.25)


@pytest.mark.case("P16")
def test_a_turn_that_starts_while_the_reaper_looks_wins() -> None:
    seen = reap(_facts(idle=900.0), LIMIT)
    assert seen.fate is Fate.END
    assert still_idle(seen.seen_epoch, 7)
    assert not still_idle(seen.seen_epoch, 8)
    assert not still_idle(seen.seen_epoch, 6)
    assert confirm(seen, 7) is seen
    used = confirm(seen, 8)
    assert used == replace(seen, fate=Fate.KEEP, reason=WarmReason.USED_MEANWHILE)
    assert used.words == "A turn started meanwhile, so the process is kept."


def test_what_is_kept_anyway_keeps_its_reason() -> None:
    kept = reap(_facts(idle=0.0), LIMIT)
    assert confirm(kept, 8) is kept


@pytest.mark.case("P16", "P17")
@pytest.mark.parametrize(
    ("turn", "question", "background", "reason"),
    [
        (True, True, True, WarmReason.TURN),
        (True, False, False, WarmReason.TURN),
        (False, True, True, WarmReason.QUESTION),
        (False, True, False, WarmReason.QUESTION),
        (False, False, True, WarmReason.BACKGROUND),
    ],
)
def test_a_session_with_something_open_is_kept(
    turn: bool, question: bool, background: bool, reason: WarmReason
) -> None:
    facts = replace(_facts(idle=1e9), turn_running=turn, open_question=question, background_work=background)
    kept = reap(facts, LIMIT)
    assert (kept.fate, kept.reason) == (Fate.KEEP, reason)
    assert kept.words == reason.sentence
