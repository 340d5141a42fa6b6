"""Evidence: what is asked of an agent's store, when again, and that nothing is sent in a lane before it is known."""

from dataclasses import replace
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.kernel import (
    HELD_BY_AGENT,
    NEVER_AGAIN,
    Audience,
    EntrySeq,
    Evidence,
    EvidenceReason,
    NoticeReason,
    Outcome,
    Probe,
    ProbeKind,
    ReadState,
    RunId,
    RunScope,
    SessionState,
    Situation,
    Source,
    SourceRead,
    Unheard,
    WaitsFor,
    WakeId,
    WakeReason,
    ask_next,
    decide,
    digest_of,
    explain,
    replay,
    settle,
    with_observed_work,
)
from clew.kernel import Attestation as Said
from clew.kernel.evidence import AskNext
from clew.kernel.record import decision_to_record
from tests.kernel.kit import (
    ELSEWHERE,
    GONE,
    LANE,
    OTHER_ACCOUNT,
    RUN,
    THERE,
    can,
    demand,
    here,
    session,
    situation,
)

LOST = RunId("run-7")
WAITS = [0.0, 0.5, 1.0, 2.0, 5.0, 15.0, 30.0]
"""Seconds until the store is asked, after it was asked in vain so many times."""

BY_PERSON = (
    "Clew cannot tell whether the agent took the prompt of run run-7{why}. "
    "`clew retry run-7 --not-taken` sends it again in full if it is still wanted; if the agent did take it, "
    "the work is done twice. `clew retry run-7 --taken` does not send it again: if the agent still has its "
    "session, it is asked to continue there; if the agent did not take it, say it again yourself."
)


def test_the_session_has_what_was_taken_whatever_became_of_the_turn() -> None:
    assert {Evidence.TAKEN, Evidence.CUT_OFF, Evidence.FINISHED} == HELD_BY_AGENT
    assert set(Evidence) - HELD_BY_AGENT == {Evidence.UNSENT, Evidence.UNKNOWN}


def test_a_digest_is_that_of_what_any_file_can_hold() -> None:
    assert digest_of("a\ud800b") == digest_of("a?b")
    assert digest_of("a") != digest_of("b")


@pytest.mark.case("P19")
@pytest.mark.parametrize("evidence", list(Evidence))
def test_an_agent_that_told_of_its_work_has_taken_the_prompt(evidence: Evidence) -> None:
    said = Said(evidence, "no line of it", reply="the reply", able=False)
    assert with_observed_work(said, worked=False) is said
    after = with_observed_work(said, worked=True)
    if evidence in (Evidence.UNSENT, Evidence.TAKEN):
        words = "it told of its work in the turn; its store: no line of it"
        assert after == Said(Evidence.CUT_OFF, words, "the reply", able=False)
    else:
        assert after is said


# ---------------------------------------------------------------- when it is asked


@pytest.mark.case("P19")
def test_where_everything_is_known_nothing_is_asked() -> None:
    assert ask_next([]) is None


@pytest.mark.case("P19")
@pytest.mark.parametrize(("asked", "wait"), list(enumerate(WAITS)))
def test_a_store_that_was_asked_in_vain_is_asked_again_after_a_growing_wait(asked: int, wait: float) -> None:
    words = (
        "Run run-7 ended after its prompt may have been sent; first checking in the agent's own store whether it was"
        " taken."
    )
    assert ask_next([Unheard(LOST, asked=asked)]) == AskNext(EvidenceReason.UNHEARD, words, wait)
    so_far = f" (asked {asked} times so far: is it mounted)" if asked else ""
    why = AskNext(EvidenceReason.UNHEARD, words.replace(" taken.", f" taken{so_far}."), wait)
    assert ask_next([Unheard(LOST, asked=asked, why="is it mounted?")]) == why


@pytest.mark.case("P19")
@pytest.mark.parametrize(
    ("unheard", "why"),
    [
        (Unheard(LOST, asked=len(WAITS)), ""),
        (Unheard(LOST, asked=99, why=" it is locked. "), " (it is locked)"),
        (Unheard(LOST, asked=NEVER_AGAIN), ""),
        (Unheard(LOST, hears=False), ""),
        (Unheard(LOST, hears=False, asked=3, why="it keeps nothing"), " (it keeps nothing)"),
    ],
)
def test_at_last_a_person_decides_and_is_told_what_each_choice_risks(unheard: Unheard, why: str) -> None:
    assert ask_next([unheard]) == AskNext(EvidenceReason.UNKNOWN, BY_PERSON.format(why=why), None)


@pytest.mark.case("P19")
def test_of_several_the_one_that_takes_longest_sets_the_pace_and_one_for_a_person_stops_them_all() -> None:
    fast, slow, dumb = Unheard(LOST), Unheard(RunId("run-8"), asked=4), Unheard(RunId("run-6"), hears=False)
    both = ask_next([fast, slow])
    assert both is not None
    assert (both.reason, both.wait) == (EvidenceReason.UNHEARD, 5.0)
    assert both.words.startswith("Run run-7 ended ")
    for order in ([fast, slow, dumb], [dumb, fast], [slow, dumb]):
        stopped = ask_next(order)
        assert stopped is not None
        assert (stopped.reason, stopped.wait) == (EvidenceReason.UNKNOWN, None)
        assert "run-6" in stopped.words


@given(st.lists(st.builds(Unheard, st.just(LOST), st.booleans(), st.integers(0, 20)), min_size=1, max_size=4))
def test_every_prompt_of_which_nobody_knows_is_asked_for_or_shown(unheard: list[Unheard]) -> None:
    asks = ask_next(unheard)
    assert asks is not None
    assert (asks.wait is None) is any(not each.hears or each.asked >= len(WAITS) for each in unheard)
    assert asks.reason is (EvidenceReason.UNKNOWN if asks.wait is None else EvidenceReason.UNHEARD)
    if asks.wait is not None:
        assert asks.wait == max(WAITS[each.asked] for each in unheard)


# ---------------------------------------------------------------- nothing is sent before


SOURCES = (
    (SourceRead(Source.LANE, ReadState.ANSWERED, (session(1),)),),
    (SourceRead(Source.LANE, ReadState.EMPTY),),
    (SourceRead(Source.LANE, ReadState.FAILED, detail="it is locked"),),
    (SourceRead(Source.ASKED, ReadState.ANSWERED, (session(1),)),),
    (),
)
DEMANDS = (
    demand(),
    demand(WakeReason.ASSIGNMENT),
    demand(WakeReason.TIMER),
    demand(fresh_asked_by=WakeId("w1")),
    demand(resume_run=RunId("run-1")),
    demand(fresh_asked_by=WakeId("w1"), resume_run=RunId("run-1")),
)
UNHEARD = (
    (Unheard(LOST),),
    (Unheard(LOST, asked=3, why="it is locked"),),
    (Unheard(LOST, asked=99),),
    (Unheard(LOST, hears=False),),
    (Unheard(LOST), Unheard(RunId("run-8"), hears=False)),
)
ODD: tuple[dict[str, Any], ...] = (
    {},
    {"busy_with": "run-8"},
    {"cut_off": True},
    {"runtime": THERE},
    {"account": OTHER_ACCOUNT},
    {"directory": ELSEWHERE},
    {"state": SessionState.POISONED},
    {"seen": EntrySeq(5)},
)


def _everything_else(unheard: tuple[Unheard, ...]) -> list[Situation]:
    homeless = replace(situation().place, remembered=None, prepared=None, obstacle="no disk")
    found = [
        situation(
            sources=tuple(replace(read, sessions=tuple(replace(s, **odd) for s in read.sessions)) for read in sources),
            demand=wanted,
            scope=scope,
            unheard=unheard,
            **more,
        )
        for sources, wanted, odd, scope, more in product(
            SOURCES,
            DEMANDS,
            ODD,
            (situation().scope, RunScope(LANE, RUN)),
            ({}, {"place": homeless}, {"here": here(capabilities=can(modes=frozenset(), resume=False))}),
        )
    ]
    assert len(found) == 5 * 6 * 8 * 2 * 3
    return found


@pytest.mark.case("C27", "P19")
@pytest.mark.parametrize("unheard", UNHEARD, ids=str)
def test_nothing_but_to_hold_while_it_is_not_known_what_was_taken(unheard: tuple[Unheard, ...]) -> None:
    """Whatever else the situation has: sessions that fit, a demand for a fresh start, no place, no way to read."""
    asks = ask_next(unheard)
    assert asks is not None
    for known in _everything_else(unheard):
        plan = decide(known)
        assert (plan.outcome, plan.reason, plan.words) == (Outcome.HOLD, asks.reason, asks.words)
        assert plan.waits_for is (WaitsFor.PERSON if asks.wait is None else WaitsFor.ANOTHER_TRY)
        assert (plan.session, plan.session_changes, plan.notices, len(plan.catch_up)) == (None, (), (), 0)
        assert settle(plan, Probe(ProbeKind.MISSING, signal=GONE)) is plan


@pytest.mark.case("C33", "P19")
def test_once_it_is_known_the_same_situation_is_decided_as_ever() -> None:
    held = decide(situation([session()], unheard=(Unheard(LOST),)))
    assert held.outcome is Outcome.HOLD
    assert decide(replace(held.situation, unheard=())) == decide(situation([session()]))


@pytest.mark.case("C26", "C33", "P19")
def test_the_record_says_what_it_waits_for_and_is_decided_again_the_same_way() -> None:
    plan = decide(situation([session()], unheard=(Unheard(LOST, hears=False, asked=2, why="it keeps nothing"),)))
    again = replay(decision_to_record(plan))
    assert again.same
    assert again.plan.situation.unheard == plan.situation.unheard
    assert explain(plan).startswith("hold: Clew cannot tell whether the agent took the prompt of run run-7 (it keeps")


# ---------------------------------------------------------------- only what was cut off is called so


@pytest.mark.case("C39", "L11", "P12", "P21")
@pytest.mark.parametrize("cut_off", [True, False])
@pytest.mark.parametrize(
    ("odd", "policy"),
    [({}, {}), ({"directory": ELSEWHERE}, {}), ({"seen": EntrySeq(5)}, {}), ({"turns": 0}, {})],
)
def test_a_session_is_told_of_a_turn_that_was_cut_off_and_of_no_other(
    odd: dict[str, Any], policy: dict[str, Any], cut_off: bool
) -> None:
    plan = decide(situation([session(1, cut_off=cut_off, **odd)], **policy))
    assert plan.outcome in (Outcome.RESUME, Outcome.FORK)
    told = [(notice.audience, notice.reason) for notice in plan.notices]
    assert told == ([(Audience.AGENT, NoticeReason.CUT_OFF)] if cut_off else [])


@pytest.mark.case("L11", "P21")
@pytest.mark.parametrize(
    "known",
    [
        situation([session(1, cut_off=True, cursor=None)]),
        situation([session(1, cut_off=True)], demand=demand(WakeReason.ASSIGNMENT)),
        situation([session(1, cut_off=True, busy_with="run-8")]),
        situation([session(2), session(1, cut_off=True)]),
        situation([session(1, cut_off=True)], scope=RunScope(LANE, RUN)),
    ],
    ids=["lost", "fresh", "busy", "another is used", "another scope"],
)
def test_a_session_that_had_no_such_turn_hears_nothing_of_it(known: Situation) -> None:
    assert [notice for notice in decide(known).notices if notice.reason is NoticeReason.CUT_OFF] == []
