"""A workspace that was made again: the agent is told, in every session that is told anything."""

from dataclasses import replace
from typing import Any

import pytest

from clew.kernel import (
    Archive,
    Audience,
    EntrySeq,
    NoticeReason,
    Outcome,
    PlaceFacts,
    Probe,
    ProbeKind,
    RunScope,
    SessionState,
    WakeReason,
    decide,
    decision_to_record,
    explain,
    replay,
    settle,
)
from tests.kernel.kit import AGENT_HOME, ELSEWHERE, LANE, RUN, THERE, demand, session, situation

WORDS = "/srv/maze was gone and was made again from branch {issue-7}."
PLACE = replace(situation().place, remade=WORDS)


@pytest.mark.case("D16")
@pytest.mark.parametrize(
    ("outcome", "sessions", "changes"),
    [
        (Outcome.RESUME, [session()], {}),
        (Outcome.FORK, [session(directory=ELSEWHERE)], {}),
        (Outcome.TRANSFER, [session(runtime=THERE, archive=Archive("loom/1", EntrySeq(2)))], {}),
        (Outcome.RESEED, [session(state=SessionState.LOST)], {}),
        (Outcome.RESEED, [], {"demand": demand(WakeReason.ASSIGNMENT, handed_over=True)}),
        (Outcome.BLANK, [session()], {"demand": demand(WakeReason.ASSIGNMENT)}),
    ],
)
def test_the_agent_is_told_whatever_its_session_is(
    outcome: Outcome, sessions: list[Any], changes: dict[str, Any]
) -> None:
    plan = decide(situation(sessions, place=PLACE, **changes))
    assert plan.outcome is outcome
    (notice,) = plan.notices
    assert (notice.audience, notice.reason, notice.words) == (Audience.AGENT, NoticeReason.WORKSPACE_REMADE, WORDS)
    assert ("agent", "notice:workspace-remade", WORDS) in [(each.subject, each.code, each.words) for each in plan.trace]
    assert WORDS in explain(plan)
    assert decide(situation(sessions, **changes)).notices == ()


@pytest.mark.case("D16")
def test_a_run_that_tells_nothing_or_stands_alone_leaves_it_for_the_next() -> None:
    held = decide(situation([session(busy_with="run-8")], place=PLACE))
    assert (held.outcome, held.notices) == (Outcome.HOLD, ())
    alone = decide(situation(place=PLACE, scope=RunScope(LANE, RUN)))
    assert (alone.outcome, alone.notices) == (Outcome.BLANK, ())


@pytest.mark.case("D16")
def test_it_has_no_say_in_where_a_run_works_and_stays_when_the_plan_is_settled() -> None:
    plan = decide(situation([session()], place=PLACE))
    assert plan.workspace == decide(situation([session()])).workspace
    settled = settle(plan, Probe(ProbeKind.FOUND_HERE))
    assert [each.reason for each in settled.notices] == [NoticeReason.WORKSPACE_REMADE]
    gone = decide(situation([session()], place=PLACE, machinery_gone=("a server",)))
    assert [each.reason for each in gone.notices] == [NoticeReason.MACHINERY_GONE, NoticeReason.WORKSPACE_REMADE]


@pytest.mark.case("D16", "C33")
def test_it_is_kept_and_made_again() -> None:
    record = decision_to_record(decide(situation([session()], place=PLACE)))
    again = replay(record)
    assert again.same
    assert again.plan.notices[0].words == WORDS
    # What an earlier release wrote knows nothing of it.
    known = record["situation"]
    assert isinstance(known, dict)
    assert isinstance(known["place"], dict)
    del known["place"]["remade"]
    assert replay(record).plan.notices == ()
    assert PlaceFacts(AGENT_HOME).remade is None
