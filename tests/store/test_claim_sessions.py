"""Which session a claimed run continues in, and that no other is touched."""

import json

import pytest
from sqlalchemy import text

from clew.kernel import (
    Freshness,
    LaneScope,
    Outcome,
    Policy,
    Probe,
    ProbeKind,
    ResetPolicy,
    RouteKey,
    RouteKind,
    RunId,
    RunScope,
    SessionLimits,
    WakeReason,
    policy_to_record,
    replay,
    settle,
)
from clew.protocol.orders import ClaimRequest, Order
from clew.protocol.reports import Completed, Usage
from clew.store.operations.claim import claim
from clew.store.operations.decisions import decisions_of
from clew.store.schema.tables import agents, archives, lanes, runs, sessions, wakes, workspaces
from tests.store.kit import (
    ADA,
    ELSEWHERE,
    GONE,
    LANE,
    OTHER_LANE,
    OTHER_THREAD,
    RUNTIME,
    TRANSIENT,
    Daemon,
    bodies,
    in_project,
    numbers,
    prompted_of,
    sent,
)


def elsewhere(daemon: Daemon) -> Daemon:
    return Daemon(daemon.database, ELSEWHERE, "daemon-2")


# ---------------------------------------------------------------- which session


@pytest.mark.case("C01")
def test_an_assignment_starts_afresh_in_the_directory_of_the_lane(daemon: Daemon) -> None:
    in_project(daemon)
    daemon.say("zero")
    first = daemon.serve("n-1")
    daemon.say("yours", reason=WakeReason.ASSIGNMENT)
    order = daemon.claim_one()
    assert (order.plan.outcome, order.plan.reason.code) == (Outcome.BLANK, "policy:assignment")
    assert order.session != first.session
    assert bodies(order) == ["yours"]
    assert order.plan.workspace == first.plan.workspace
    daemon.prompt(order, "n-2")
    daemon.finish(order)
    # What was before the fresh start stays out of reach, even when its session is lost.
    lane = daemon.lane()
    assert (lane.floor_generation, lane.floor_entry, lane.floor_kept) == (1, 3, "[3]")
    daemon.put(sessions, {"native_id": "n-2"}, state="lost")
    daemon.say("go on")
    after = daemon.claim_one()
    assert (after.plan.outcome, after.plan.reason.code) == (Outcome.RESEED, "session:lost")
    assert bodies(after) == ["yours", "done", "go on"]


@pytest.mark.case("C03", "C04")
def test_a_demanded_fresh_start_does_not_even_read_the_sessions(daemon: Daemon) -> None:
    daemon.accept()
    daemon.serve("n-1")
    daemon.accept(freshness=Freshness.FRESH)
    (order,), statements = claim_and_overhear(daemon)
    assert (order.plan.outcome, order.plan.reason.code) == (Outcome.BLANK, "reset:demanded")
    assert reads_of_sessions(statements) == 0
    assert [read.detail for read in order.plan.situation.sources] == ["a fresh start was demanded"] * 2


@pytest.mark.case("C04")
def test_a_lane_is_read_once_and_a_lane_without_sessions_not_at_all(daemon: Daemon) -> None:
    daemon.accept()
    (first,), statements = claim_and_overhear(daemon)
    assert reads_of_sessions(statements) == 0
    daemon.prompt(first, "n-1")
    daemon.finish(first)
    daemon.accept()
    (second,), statements = claim_and_overhear(daemon)
    assert second.session == first.session
    assert reads_of_sessions(statements) == 1


@pytest.mark.case("C03", "C04", "C05")
def test_a_run_that_was_asked_for_is_read_and_the_lane_is_not(daemon: Daemon) -> None:
    daemon.say("one")
    first = daemon.serve("n-1")
    daemon.accept(freshness=Freshness.FRESH)
    second = daemon.serve("n-2")
    daemon.say("as before", reason=WakeReason.ASSIGNMENT, resume_run=first.run)
    (order,), statements = claim_and_overhear(daemon)
    assert (order.plan.outcome, order.session) == (Outcome.RESUME, first.session)
    assert order.session != second.session
    assert reads_of_sessions(statements) == 1
    assert [notice.reason.code for notice in order.plan.notices] == ["notice:asked"]
    asked, lane = order.plan.situation.sources
    assert (asked.state, lane.state) == ("answered", "not-read")
    # The lane goes on where it was asked to.
    daemon.prompt(order, "n-1")
    daemon.finish(order)
    daemon.say("and now")
    assert daemon.claim_one().plan.native_id == "n-1"


@pytest.mark.case("C05")
def test_an_asked_run_stands_for_its_session_however_often_it_was_recorded(daemon: Daemon) -> None:
    daemon.say("one")
    first = daemon.serve("n-1")
    daemon.accept(freshness=Freshness.FRESH)
    second = daemon.serve("n-2")
    for run, native in ((first, "n-1"), (second, "n-2")):
        daemon.say(f"back to {native}", resume_run=run.run)
        daemon.serve(native)
    assert [row[:2] for row in daemon.sessions()] == [(1, "n-1"), (2, "n-2"), (3, "n-1"), (4, "n-2")]
    daemon.say("once more", resume_run=first.run)
    order = daemon.claim_one()
    assert order.plan.session is not None
    assert (order.plan.native_id, order.plan.session.generation) == ("n-1", 3)
    # What it was told in its third generation is not said again.
    assert bodies(order) == ["back to n-2", "done", "once more"]
    assert numbers(order) == list(range(order.plan.session.seen + 1, order.plan.situation.head + 1))


def test_a_run_that_has_no_session_is_asked_for_in_vain_and_a_person_is_told(daemon: Daemon) -> None:
    daemon.accept()
    nothing = daemon.serve(None)
    daemon.accept(resume_run=nothing.run)
    assert daemon.claim() == ()
    (run,) = daemon.rows(runs, state="queued")
    assert (run.hold, run.hold_code) == ("person", "asked:none")
    assert run.words == f"Run {nothing.run} was asked for, but it has no known session."
    (decision,) = daemon.database.read(lambda connection: decisions_of(connection, RunId(run.id)))
    assert (decision["outcome"], decision["code"]) == ("hold", "asked:none")
    # Something new is a reason to look again, and what was asked still stands.
    daemon.accept(freshness=Freshness.FRESH)
    assert daemon.claim_one().plan.reason.code == "reset:demanded"


@pytest.mark.case("C07")
def test_another_runtime_goes_on_in_the_lanes_directory_without_the_session(daemon: Daemon) -> None:
    daemon.say("one")
    shared = {"id": "ws-shared", "lane_id": LANE, "kind": "directory", "directory": "/mnt/maze", "created_at": 1.0}
    daemon.add(workspaces, **shared)
    daemon.put(lanes, {"id": LANE}, workspace_id="ws-shared")
    daemon.serve("n-1")
    daemon.put(agents, {"id": ADA}, runtime_id=ELSEWHERE)
    daemon.say("two")
    assert daemon.claim() == ()
    order = elsewhere(daemon).claim_one()
    assert (order.plan.outcome, order.plan.reason.code) == (Outcome.RESEED, "archive:missing")
    assert order.plan.workspace is not None
    assert order.plan.workspace.directory.path == "/mnt/maze"
    assert bodies(order) == ["one", "done", "two"]


@pytest.mark.case("C08")
def test_a_run_that_waits_for_a_runtime_resumes_there_after_its_agent_moved(daemon: Daemon) -> None:
    daemon.accept()
    first = daemon.serve("n-1")
    daemon.accept()
    daemon.put(agents, {"id": ADA}, runtime_id=ELSEWHERE)
    assert elsewhere(daemon).claim() == ()
    order = daemon.claim_one()
    assert (order.plan.outcome, order.session, order.runtime) == (Outcome.RESUME, first.session, RUNTIME)


@pytest.mark.case("C09")
def test_back_on_its_first_runtime_a_lane_resumes_there_and_is_told_what_happened_elsewhere(daemon: Daemon) -> None:
    other = elsewhere(daemon)
    daemon.say("on a")
    first = daemon.serve("n-a")
    daemon.put(lanes, {"id": LANE}, runtime_id=ELSEWHERE)
    daemon.say("on b")
    other.serve("n-b")
    daemon.put(lanes, {"id": LANE}, runtime_id=RUNTIME)
    daemon.say("on a again")
    back = daemon.claim_one()
    assert (back.plan.outcome, back.session) == (Outcome.RESUME, first.session)
    assert bodies(back) == ["on b", "done", "on a again"]
    daemon.prompt(back, "n-a")
    daemon.finish(back)
    assert daemon.sessions() == [(1, "n-a", "healthy"), (2, "n-b", "healthy"), (3, "n-a", "healthy")]
    one, two, three = daemon.rows(sessions, "generation")
    assert [one.superseded, two.superseded, three.superseded] == [1, 0, 0]
    # The same conversation, not a new one: its history, its age and its proof go with it.
    assert (three.turns, three.begins, three.also) == (2, one.begins, one.also)
    assert three.born_at == one.born_at
    assert three.seen == 6
    assert (three.runtime_id, two.runtime_id) == (RUNTIME, ELSEWHERE)
    # And there and back again.
    daemon.put(lanes, {"id": LANE}, runtime_id=ELSEWHERE)
    daemon.say("on b again")
    there = other.claim_one()
    assert (there.plan.native_id, bodies(there)) == ("n-b", ["on a again", "done", "on b again"])


@pytest.mark.case("C13")
def test_a_session_that_its_agent_no_longer_has_is_lost_and_the_lane_starts_anew(daemon: Daemon) -> None:
    daemon.say("one")
    first = daemon.serve("n-1")
    daemon.say("two")
    order = daemon.claim_one()
    missing = settle(order.plan, Probe(ProbeKind.MISSING, signal=GONE))
    assert missing.outcome is Outcome.RESEED
    daemon.report(order, opens=True, settled=(missing,))
    assert daemon.sessions() == [(1, "n-1", "lost")]
    daemon.prompt(order, opens=False, pin=None, prompted=prompted_of(order, session=None))
    daemon.finish(order)
    made = daemon.database.read(lambda connection: decisions_of(connection, order.run))
    assert [(each["step"], each["outcome"], each["code"]) for each in made] == [
        (0, "resume", "session:fits"),
        (1, "reseed", "session:lost"),
    ]
    daemon.say("three")
    after = daemon.claim_one()
    assert after.session != first.session
    assert (after.plan.outcome, after.plan.reason.code) == (Outcome.RESEED, "session:lost")
    assert "n-1" in {weighed.session.cursor.native_id for weighed in after.plan.considered}  # type: ignore[union-attr]


@pytest.mark.case("C24")
def test_a_failed_look_at_the_sessions_gives_the_claim_back_whole(daemon: Daemon) -> None:
    daemon.say("one")
    first = daemon.serve("n-1")
    accepted = daemon.say("two")
    rename = "ALTER TABLE {} RENAME TO {}"
    daemon.write(lambda connection: connection.execute(text(rename.format("archives", "away"))).rowcount)
    with pytest.raises(Exception, match=r"archives"):
        daemon.claim()
    assert [(row.state, row.attempt) for row in daemon.rows(runs, state="queued")] == [("queued", 0)]
    assert daemon.wake(accepted.wake).state == "pending"
    daemon.write(lambda connection: connection.execute(text(rename.format("away", "archives"))).rowcount)
    assert daemon.rows(archives) == []
    order = daemon.claim_one()
    assert (order.plan.outcome, order.session) == (Outcome.RESUME, first.session)


@pytest.mark.case("C25")
def test_a_lane_whose_session_was_never_captured_is_told_its_history_and_the_first_prompt_is_not_sent_again(
    daemon: Daemon,
) -> None:
    daemon.say("one")
    daemon.serve(None)
    daemon.say("two")
    order = daemon.claim_one()
    assert (order.plan.outcome, order.plan.reason.code) == (Outcome.RESEED, "session:never-captured")
    assert bodies(order) == ["one", "done", "two"]
    # Of these only the new one is to be acted on.
    assert order.plan.act_on == (3,)


@pytest.mark.case("C29")
def test_a_session_that_another_live_run_has_open_is_waited_for(daemon: Daemon) -> None:
    first = busy_elsewhere(daemon)
    daemon.say("two")
    assert daemon.claim() == ()
    (run,) = daemon.rows(runs, lane_id=LANE, state="queued")
    assert (run.hold, run.hold_code, run.words) == (
        "session-free",
        "session:busy",
        "Waiting for session 1. It is in use by other.",
    )
    assert run.not_before > run.queued_at
    free_elsewhere(daemon)
    daemon.put(runs, {"id": run.id}, not_before=None)
    assert daemon.claim_one().session == first.session


@pytest.mark.case("C29")
def test_a_busy_session_is_forked_where_the_policy_allows_it(daemon: Daemon) -> None:
    first = busy_elsewhere(daemon)
    daemon.put(agents, {"id": ADA}, policy=json.dumps(policy_to_record(Policy(parallel=True))))
    daemon.say("two")
    order = daemon.claim_one()
    assert (order.plan.outcome, order.plan.reason.code) == (Outcome.FORK, "session:busy-fork")
    assert order.session != first.session
    free_elsewhere(daemon)


@pytest.mark.case("C29")
def test_no_two_live_runs_share_a_session_whatever_the_code_does(daemon: Daemon) -> None:
    first = busy_elsewhere(daemon)
    daemon.say("two")
    (run,) = daemon.rows(runs, lane_id=LANE, state="queued")
    places = {"agent_place": 3, "runtime_place": 3, "lease_until": 1e12}
    with pytest.raises(Exception, match=r"(?i)unique"):
        daemon.put(runs, {"id": run.id}, state="running", session_id=first.session, **places)
    free_elsewhere(daemon)


@pytest.mark.case("C30")
def test_a_session_over_its_limit_is_retired_and_the_lane_goes_on_in_a_new_one(daemon: Daemon) -> None:
    daemon.put(agents, {"id": ADA}, policy=json.dumps(policy_to_record(Policy(limits=SessionLimits(tokens=100)))))
    daemon.say("one")
    daemon.serve("n-1", Completed("done", usage=Usage(turns=1, tokens=100)))
    daemon.say("two")
    order = daemon.claim_one()
    assert (order.plan.outcome, order.plan.reason.code) == (Outcome.RESEED, "limit:tokens")
    assert (
        order.plan.words
        == "New conversation with the thread's history, in place of session 1. It has 100 tokens; the limit is 100."
    )
    assert daemon.sessions() == [(1, "n-1", "retired")]


@pytest.mark.case("C30")
@pytest.mark.parametrize(("older", "outcome"), [(0, Outcome.RESUME), (7200, Outcome.RESEED)])
def test_a_session_is_as_old_as_its_record(daemon: Daemon, older: int, outcome: Outcome) -> None:
    daemon.put(agents, {"id": ADA}, policy=json.dumps(policy_to_record(Policy(limits=SessionLimits(age=3600.0)))))
    daemon.say("one")
    daemon.serve("n-1")
    daemon.put(sessions, {"native_id": "n-1"}, born_at=sessions.c.born_at - older)
    daemon.say("two")
    assert daemon.claim_one().plan.outcome is outcome


@pytest.mark.case("C26", "C33")
def test_every_run_has_a_decision_that_can_be_shown_and_made_again(daemon: Daemon) -> None:
    daemon.say("one")
    daemon.serve("n-1")
    daemon.say("two", reason=WakeReason.ASSIGNMENT)
    order = daemon.claim_one()
    (kept,) = daemon.database.read(lambda connection: decisions_of(connection, order.run))
    assert (kept["attempt"], kept["step"], kept["outcome"], kept["code"]) == (1, 0, "blank", "policy:assignment")
    record = json.loads(kept["record"])
    assert [step[0] for step in record["plan"]["trace"]][:4] == ["asked", "lane", "workspace", "mode"]
    assert replay(record).same
    otherwise = replay(record, Policy(reset=ResetPolicy(frozenset())))
    assert otherwise.plan.outcome is Outcome.RESUME
    assert "outcome" in {change.field for change in otherwise.changes}


# ---------------------------------------------------------------- scopes of a run's own


@pytest.mark.case("H01", "H02")
def test_isolated_runs_share_a_route_and_nothing_else(daemon: Daemon) -> None:
    route = RouteKey(RouteKind.CHANNEL, "ops")
    daemon.say("zero")
    shared = daemon.serve("n-0")
    scopes, told = [], []
    for number in range(3):
        daemon.say(f"tick {number}", reason=WakeReason.TIMER, isolated=True, route=route)
        order = daemon.serve(f"n-tick-{number}")
        assert order.route == route
        assert (order.plan.outcome, order.plan.reason.code) == (Outcome.BLANK, "scope:isolated")
        scopes.append(order.plan.situation.scope)
        told.append(bodies(order))
    assert told == [["tick 0"], ["tick 1"], ["tick 2"]]
    assert len(set(scopes)) == 3
    assert all(isinstance(scope, RunScope) for scope in scopes)
    # The lane's own conversation goes on as if there had been none.
    daemon.say("one")
    order = daemon.claim_one()
    assert (order.plan.situation.scope, order.session) == (LaneScope(LANE), shared.session)
    assert daemon.sessions() == [(1, "n-0", "healthy")]


@pytest.mark.case("H01", "H04")
def test_a_retry_of_an_isolated_run_keeps_its_scope_and_its_session(daemon: Daemon) -> None:
    daemon.say("tick", reason=WakeReason.TIMER, isolated=True)
    first = daemon.serve("n-tick", TRANSIENT)
    daemon.put(runs, {"state": "queued"}, not_before=None)
    daemon.put(wakes, not_before=None)
    again = daemon.claim_one()
    assert again.run != first.run
    assert again.plan.situation.scope == first.plan.situation.scope == RunScope(LANE, first.run)
    assert (again.plan.outcome, again.session) == (Outcome.RESUME, first.session)


def test_a_run_takes_wakes_of_one_scope_and_the_others_come_next(daemon: Daemon) -> None:
    daemon.say("shared one")
    daemon.say("tick", isolated=True)
    daemon.say("shared two")
    first = daemon.serve("n-1")
    assert bodies(first) == ["shared one", "tick", "shared two"]
    assert first.plan.act_on == (1, 3)
    second = daemon.serve("n-2")
    assert (bodies(second), second.plan.situation.scope) == (["tick"], RunScope(LANE, second.run))
    assert {row.state for row in daemon.rows(wakes)} == {"served"}


# ---------------------------------------------------------------- what these tests share


def claim_and_overhear(daemon: Daemon) -> tuple[tuple[Order, ...], list[str]]:
    return sent(daemon.database, lambda connection: claim(connection, ClaimRequest("daemon-1", (RUNTIME,))))


def reads_of_sessions(statements: list[str]) -> int:
    return sum(text_.startswith("SELECT sessions.") for text_ in statements)


def busy_elsewhere(daemon: Daemon) -> Order:
    """The lane's session is open in a run that is not the lane's, as after a hand-made change."""
    daemon.say("one")
    first = daemon.serve("n-1")
    daemon.accept(thread=OTHER_THREAD)
    live = {"state": "running", "lease_until": 1e12, "agent_place": 2, "runtime_place": 2, "attempt": 0}
    daemon.put(runs, {"lane_id": OTHER_LANE}, id="other", session_id=first.session, **live)
    daemon.put(agents, {"id": ADA}, max_live=3)
    daemon.put(wakes, {"lane_id": OTHER_LANE}, state="claimed", run_id="other")
    return first


def free_elsewhere(daemon: Daemon) -> None:
    daemon.put(runs, {"id": "other"}, session_id=None)
