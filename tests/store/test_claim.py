"""Claiming: what waits is handed out once, decided, with everything that its agent has to be told."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy import Table, text

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
    ThreadId,
    WakeReason,
    policy_to_record,
    replay,
    settle,
)
from clew.store.check import check
from clew.store.claim import claim
from clew.store.database import Database
from clew.store.decisions import decisions_of
from clew.store.opening import open_database
from clew.store.schema import upgrade
from clew.store.tables import (
    agents,
    archives,
    journal,
    lanes,
    machines,
    projects,
    runs,
    runtimes,
    sessions,
    threads,
    wakes,
    workspaces,
)
from clew.wire.ends import Completed, Usage
from clew.wire.orders import ClaimRequest, Order
from tests.store.kit import (
    ADA,
    BOB,
    ELSEWHERE,
    GONE,
    LANE,
    OTHER_LANE,
    OTHER_THREAD,
    RUNTIME,
    THREAD,
    TRANSIENT,
    Daemon,
    bodies,
    furnish,
    numbers,
    sent,
)


def elsewhere(daemon: Daemon) -> Daemon:
    return Daemon(daemon.database, ELSEWHERE, "daemon-2")


def claimed_by(daemon: Daemon, order: Order) -> list[str]:
    """The wakes that a run carries, in the order they came."""
    assert [wake.id for wake in order.wakes] == [row.id for row in daemon.rows(wakes, "accepted_at", run_id=order.run)]
    return [row.state for row in daemon.rows(wakes, run_id=order.run)]


# ---------------------------------------------------------------- what is carried and told


def test_an_order_holds_all_that_is_needed_to_serve_it(daemon: Daemon) -> None:
    route = RouteKey(RouteKind.WEBHOOK, "https://example.invalid/")
    accepted = daemon.say("look", route=route)
    order = daemon.claim_one()
    assert (order.lane, order.thread.id, order.agent.id, order.runtime) == (LANE, THREAD, ADA, RUNTIME)
    assert (order.attempt, order.route) == (1, route)
    assert [wake.id for wake in order.wakes] == [accepted.wake]
    assert bodies(order) == ["look"]
    assert order.plan.workspace is not None
    assert order.plan.workspace.directory.path == "/srv/ada"
    run, wake = daemon.run(order.run), daemon.wake(accepted.wake)
    assert (run.state, run.attempt, run.claimed_by, run.session_id) == ("claimed", 1, "daemon-1", order.session)
    assert run.lease_until == order.lease_until
    assert (wake.state, wake.run_id, wake.code) == ("claimed", order.run, "carried:by-run")
    assert wake.words == f"Run {order.run} carries it."


@pytest.mark.case("W01")
def test_what_is_said_during_a_run_is_carried_by_one_run_after_it_in_order(daemon: Daemon) -> None:
    daemon.say("zero")
    first = daemon.claim_one()
    daemon.prompt(first, "n-1")
    for text_ in ("one", "two", "three"):
        assert daemon.say(text_).code == "accepted:queued"
    assert daemon.claim() == ()
    daemon.finish(first)
    (second,) = daemon.claim(most=10)
    assert second.run != first.run
    assert [wake.entries for wake in second.wakes] == [(2,), (3,), (4,)]
    # The reply came after the three; the agent was told none of them yet.
    assert bodies(second) == ["one", "two", "three", "done"]
    assert claimed_by(daemon, second) == ["claimed"] * 3
    daemon.prompt(second)
    daemon.finish(second)
    assert {row.state for row in daemon.rows(wakes)} == {"served"}
    assert daemon.claim() == ()


@pytest.mark.case("W02")
@pytest.mark.parametrize("at", [0, 1, 2])
def test_one_wake_that_demands_a_fresh_start_makes_the_whole_run_fresh(daemon: Daemon, at: int) -> None:
    daemon.say("zero")
    daemon.serve("n-1")
    kinds = [Freshness.FRESH if at == number else Freshness.FOLLOW_POLICY for number in range(3)]
    fresh = [daemon.accept(freshness=kind).wake for kind in kinds][at]
    order = daemon.claim_one()
    assert (order.plan.outcome, order.plan.reason.code) == (Outcome.BLANK, "reset:demanded")
    assert order.plan.words == f"A fresh start was demanded by wake {fresh}."
    assert len(order.wakes) == 3


@pytest.mark.case("C31", "X01")
def test_the_run_after_another_resumes_its_session_and_is_told_only_what_is_new(daemon: Daemon) -> None:
    daemon.say("one")
    first = daemon.serve("n-1")
    daemon.say("two")
    second = daemon.claim_one()
    assert (second.plan.outcome, second.plan.reason.code) == (Outcome.RESUME, "session:fits")
    assert (second.session, second.plan.native_id) == (first.session, "n-1")
    assert bodies(second) == ["two"]
    daemon.prompt(second)
    # Said while it works: it is not told before its next turn.
    daemon.say("three")
    daemon.finish(second, Completed("answer to two"))
    third = daemon.claim_one()
    assert third.session == first.session
    assert bodies(third) == ["three", "answer to two"]


@pytest.mark.case("X01")
def test_what_others_said_meanwhile_is_told_too(daemon: Daemon) -> None:
    daemon.say("to ada")
    daemon.serve("n-ada")
    daemon.say("to bob", agent=BOB)
    assert bodies(daemon.serve("n-bob")) == ["to ada", "done", "to bob"]
    daemon.say("to ada again")
    order = daemon.claim_one()
    assert order.agent.id == ADA
    assert numbers(order) == [3, 4, 5]
    assert [entry.facts.author.agent for entry in order.entries] == [None, BOB, None]
    assert order.plan.act_on == (5,)


@pytest.mark.case("L02")
def test_what_was_accepted_before_a_crash_is_handed_out_once_after_it(address: str) -> None:
    with opened(address) as database:
        database.write(upgrade).result(30)
        database.write(furnish).result(30)
        accepted = Daemon(database).say("remember me")
    with opened(address) as database:
        restarted = Daemon(database)
        order = restarted.claim_one()
        assert [wake.id for wake in order.wakes] == [accepted.wake]
        assert bodies(order) == ["remember me"]
        assert restarted.claim(most=10) == ()
        assert database.read(check) == ()


def test_the_runs_of_a_paused_agent_wait_until_it_goes_on(daemon: Daemon) -> None:
    daemon.accept()
    daemon.put(agents, {"id": ADA}, state="paused")
    assert daemon.claim() == ()
    daemon.put(agents, {"id": ADA}, state="active")
    assert len(daemon.claim()) == 1


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
    assert run.words == f"Run {nothing.run} was asked for, and no session of it is known."
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
    daemon.prompt(order, opens=False, pin=None)
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
    assert (run.hold, run.hold_code, run.words) == ("session-free", "session:busy", "It is in use by other.")
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
    assert order.plan.words == "It has 100 tokens; the limit is 100."
    assert daemon.sessions() == [(1, "n-1", "retired")]


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


# ---------------------------------------------------------------- where it works


def in_project(daemon: Daemon, machine: str = "laptop") -> None:
    daemon.add(projects, id="maze", name="maze", source="/src/maze", machine_id=machine)
    daemon.put(threads, {"id": THREAD}, project_id="maze")
    daemon.put(machines, {"id": "laptop"}, root="/srv/work")


def test_a_lane_of_a_project_gets_a_workspace_of_its_own_and_keeps_it(daemon: Daemon) -> None:
    in_project(daemon)
    daemon.accept()
    daemon.accept(agent=BOB)
    mine, bobs = daemon.serve("n-1"), daemon.serve("n-2")
    places = [order.plan.workspace.directory.path for order in (mine, bobs) if order.plan.workspace is not None]
    assert places == [f"/srv/work/maze/{mine.lane}", f"/srv/work/maze/{bobs.lane}"]
    assert daemon.lane().workspace_id == mine.plan.workspace.id  # type: ignore[union-attr]
    daemon.accept()
    assert daemon.claim_one().plan.place.reason.code == "place:remembered"


@pytest.mark.case("D02")
def test_a_lane_that_forgot_its_place_gets_the_projects_workspace_back(daemon: Daemon) -> None:
    in_project(daemon)
    daemon.accept()
    first = daemon.serve("n-1")
    daemon.put(lanes, {"id": LANE}, workspace_id=None)
    daemon.accept(reason=WakeReason.TIMER)
    order = daemon.claim_one()
    assert order.plan.workspace == first.plan.workspace
    assert order.plan.place.reason.code == "place:recovered"
    assert daemon.lane().workspace_id == first.plan.workspace.id  # type: ignore[union-attr]


def test_a_workspace_that_cannot_be_made_holds_the_run_for_a_person(daemon: Daemon) -> None:
    in_project(daemon, machine="server")
    daemon.accept()
    daemon.accept(thread=OTHER_THREAD)
    assert daemon.claim_one().lane == OTHER_LANE
    (run,) = daemon.rows(runs, state="queued")
    assert (run.lane_id, run.hold, run.hold_code) == (LANE, "person", "place:cannot-make")
    assert run.words.endswith("its source is a directory of machine server.")


# ---------------------------------------------------------------- who goes first, and how many


@pytest.mark.case("R12")
def test_what_waits_gains_rank_until_it_goes_before_urgent_work(daemon: Daemon) -> None:
    daemon.accept(priority=0)
    daemon.accept(thread=OTHER_THREAD, priority=2)
    (low,) = daemon.rows(runs, lane_id=LANE)
    (high,) = daemon.rows(runs, lane_id=OTHER_LANE)
    assert (low.queued_at - low.rank, high.queued_at - high.rank) == (0, 600)
    assert daemon.claim_one().lane == OTHER_LANE
    # Ten minutes are worth two steps of priority: what has waited for eleven goes before what is new.
    daemon.put(runs, {"id": low.id}, rank=low.rank - 660)
    daemon.accept(agent=BOB, thread=OTHER_THREAD, priority=2)
    daemon.put(agents, max_live=2)
    assert daemon.claim_one().lane == LANE


@pytest.mark.case("R12")
def test_what_comes_back_keeps_the_rank_of_the_first_wake_it_is_for(daemon: Daemon) -> None:
    daemon.accept()
    order = daemon.serve("n-1", TRANSIENT)
    (wake,) = daemon.rows(wakes)
    (again,) = daemon.rows(runs, state="queued")
    assert again.id != order.run
    assert again.rank == pytest.approx(wake.accepted_at)
    assert again.queued_at > again.rank


def test_an_agent_that_is_full_does_not_stand_before_the_others(daemon: Daemon) -> None:
    threads_ = [ThreadId(f"t-{number}") for number in range(5)]
    for thread in threads_:
        daemon.add(threads, id=thread, kind="issue", created_at=0.0)
        daemon.accept(thread=thread)
    daemon.accept(agent=BOB)
    orders = daemon.claim(most=2)
    assert [order.agent.id for order in orders] == [ADA, BOB]
    assert daemon.claim(most=2) == ()


@pytest.mark.case("R01")
def test_many_daemons_that_claim_at_once_get_every_run_once_and_keep_to_the_limits(daemon: Daemon) -> None:
    many_lanes(daemon, agents_=4, threads_=5, agent_limit=2, runtime_limit=5)
    with ThreadPoolExecutor(8) as pool:
        claims = list(pool.map(lambda number: Daemon(daemon.database, by=f"d-{number}").claim(most=2), range(16)))
    orders = [order for each in claims for order in each]
    assert len({order.run for order in orders}) == len(orders) == 5
    assert len(daemon.rows(runs, state="claimed")) == 5
    live = [row.agent_id for row in daemon.rows(runs, state="claimed")]
    assert max(live.count(agent) for agent in live) <= 2


@pytest.mark.case("R01", "W07")
def test_many_daemons_serve_a_queue_to_its_end_and_every_wake_once(daemon: Daemon) -> None:
    many_lanes(daemon, agents_=4, threads_=4, agent_limit=2, runtime_limit=3)
    over: list[str] = []

    def work(number: int) -> list[Order]:
        mine = Daemon(daemon.database, by=f"d-{number}")
        served: list[Order] = []
        while daemon.rows(runs, ended_at=None):
            for order in mine.claim():
                over.extend(too_many(daemon, agent=2, runtime=3))
                mine.prompt(order, f"n-{order.lane}")
                mine.finish(order)
                served.append(order)
        return served

    with ThreadPoolExecutor(6) as pool:
        served = [order for each in pool.map(work, range(6)) for order in each]
    assert over == []
    assert len({order.lane for order in served}) == len(served) == 16
    assert {row.state for row in daemon.rows(wakes)} == {"served"}


def many_lanes(daemon: Daemon, agents_: int, threads_: int, agent_limit: int, runtime_limit: int) -> None:
    daemon.put(runtimes, {"id": RUNTIME}, max_live=runtime_limit)
    for number in range(agents_):
        home = {"provider": "loom", "runtime_id": RUNTIME, "home": "/srv/home", "max_live": agent_limit}
        daemon.add(agents, id=f"a-{number}", name=f"a-{number}", **home)
    for number in range(threads_):
        daemon.add(threads, id=f"t-{number}", kind="issue", created_at=0.0)
        for agent in range(agents_):
            daemon.accept(agent=f"a-{agent}", thread=f"t-{number}")


def too_many(daemon: Daemon, agent: int, runtime: int) -> list[str]:
    live = [row for row in daemon.rows(runs) if row.lease_until is not None]
    by_agent = [row.agent_id for row in live]
    by_lane = [row.lane_id for row in live]
    over = [each for each in set(by_agent) if by_agent.count(each) > agent]
    over += [each for each in set(by_lane) if by_lane.count(each) > 1]
    return over + ([f"{len(live)} on the runtime"] if len(live) > runtime else [])


# ---------------------------------------------------------------- rows that cannot be read

NO_JSON = "{not json"


@pytest.mark.case("S11", "L09")
@pytest.mark.parametrize(
    ("table", "where", "values", "named"),
    [
        (agents, {"id": ADA}, {"policy": NO_JSON}, "The row ada of agents cannot be read (policy)"),
        (agents, {"id": ADA}, {"policy": '{"reset": {"reasons": ["whim"]}}'}, "The row ada of agents"),
        (agents, {"id": ADA}, {"home": "not/absolute"}, "The row ada of agents cannot be read (home)"),
        (sessions, {"native_id": "n-1"}, {"also": '["one"]'}, "of sessions cannot be read (its values)"),
        (sessions, {"native_id": "n-1"}, {"state": "sleepy"}, "of sessions cannot be read (its values)"),
        (sessions, {"native_id": "n-1"}, {"directory": "."}, "of sessions cannot be read (its values)"),
        (lanes, {"id": LANE}, {"floor_kept": "[true]"}, "of lanes cannot be read (floor_kept)"),
        (wakes, {"state": "pending", "lane_id": LANE}, {"reason": "whim"}, "of wakes cannot be read (its values)"),
        (wakes, {"state": "pending", "lane_id": LANE}, {"route": '"x"'}, "of wakes cannot be read (its values)"),
        (wakes, {"state": "pending", "lane_id": LANE}, {"entry": 99}, "of wakes cannot be read (entry)"),
        (journal, {"seq": 3}, {"author_kind": "ghost"}, "The row issue-7/3 of journal cannot be read"),
    ],
)
def test_a_lane_with_a_row_that_cannot_be_read_says_which_and_stops_no_other(
    daemon: Daemon, table: Table, where: dict[str, Any], values: dict[str, Any], named: str
) -> None:
    daemon.accept()
    daemon.serve("n-1")
    daemon.accept()
    # Behind it, also where both came at the same moment.
    daemon.accept(agent=BOB, thread=OTHER_THREAD, priority=-1)
    (before,) = [{name: getattr(row, name) for name in values} for row in daemon.rows(table, *where, **where)]
    daemon.put(table, where, **values)
    order = daemon.claim_one()
    assert (order.agent.id, order.thread.id) == (BOB, OTHER_THREAD)
    (held,) = daemon.rows(runs, state="queued")
    assert (held.lane_id, held.hold, held.hold_code) == (LANE, "person", "store:unreadable")
    assert named in held.words
    assert "clew db check" in held.words
    # Mended, the lane goes on with the next word; nothing was lost meanwhile.
    mended = dict(where, **{name: value for name, value in values.items() if name in where})
    daemon.put(table, mended, **before)
    daemon.accept()
    order = daemon.claim_one()
    assert (order.lane, len(order.wakes), order.plan.outcome) == (LANE, 2, Outcome.RESUME)


@pytest.mark.case("S11")
def test_a_runtime_whose_capabilities_cannot_be_read_stops_no_other(daemon: Daemon) -> None:
    daemon.accept()
    daemon.put(agents, {"id": BOB}, runtime_id=ELSEWHERE)
    daemon.accept(agent=BOB)
    able = daemon.rows(runtimes, id=RUNTIME)[0].capabilities
    daemon.put(runtimes, {"id": RUNTIME}, capabilities=NO_JSON)
    both = ClaimRequest("daemon-1", (RUNTIME, ELSEWHERE), most=2)
    (order,) = daemon.write(lambda connection: claim(connection, both))
    assert order.agent.id == BOB
    (held,) = daemon.rows(runs, state="queued")
    assert f"The row {RUNTIME} of runtimes cannot be read (capabilities)" in held.words
    daemon.put(runtimes, {"id": RUNTIME}, capabilities=able)


def test_a_queue_full_of_unreadable_lanes_is_passed_in_one_claim(daemon: Daemon) -> None:
    for number in range(5):
        daemon.add(threads, id=f"t-{number}", kind="issue", created_at=0.0)
        daemon.accept(thread=f"t-{number}")
    daemon.accept(agent=BOB)
    before = daemon.rows(agents, id=ADA)[0].policy
    daemon.put(agents, {"id": ADA}, policy=NO_JSON)
    assert daemon.claim_one().agent.id == BOB
    daemon.put(agents, {"id": ADA}, policy=before)


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


@contextmanager
def opened(address: str) -> Iterator[Database]:
    database = open_database(address)
    try:
        yield database
    finally:
        database.close()
