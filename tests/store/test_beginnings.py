"""Where a lane's branch begins, and a lane whose worktree a person has checked out."""

import pytest

from clew.kernel import MachineId, RunId, Workspace, WorkspaceId
from clew.kernel.place import PlaceReason
from clew.ports.work import Work
from clew.protocol.orders import Order
from clew.store.operations.retry import go_now
from clew.store.operations.work import keep_merged, keep_work
from clew.store.operations.workspaces import FROM_BASE, begin_from, check_out
from clew.store.queries.runs import show_run
from clew.store.queries.threads import show_thread
from clew.store.queries.work import lanes_in_open_threads, thread_at, worktrees_of
from clew.store.schema.tables import lanes, threads
from tests.store.kit import BOB, BOBS_LANE, LANE, THREAD, Daemon, in_project, queued

BRANCH = "clew/issue-12-login-page"


@pytest.fixture
def issue(daemon: Daemon) -> Daemon:
    in_project(daemon)
    daemon.put(threads, {"id": THREAD}, number=12, title="Login page")
    return daemon


def place(order: Order) -> Workspace:
    assert order.plan.workspace is not None
    return order.plan.workspace


@pytest.mark.case("D14")
def test_a_second_lane_begins_from_the_branch_of_the_lane_that_worked_last(issue: Daemon) -> None:
    issue.say("begin")
    first = place(issue.serve("n-1"))
    assert (first.branch, first.begins, first.begun_by) == (BRANCH, None, None)
    issue.say("look", agent=BOB)
    second = place(issue.serve("n-2"))
    assert (second.begins, second.begun_by) == (BRANCH, "ada")
    # It stays known, also when the lane's place is looked up again.
    for forgets in (False, True):
        if forgets:
            issue.put(lanes, {"id": BOBS_LANE}, workspace_id=None)
        issue.say("look again", agent=BOB)
        assert place(issue.serve("n-2")) == second


@pytest.mark.case("D14")
@pytest.mark.parametrize(("chosen", "begins"), [(FROM_BASE, None), ("release", "release")])
def test_a_person_chooses_where_a_lane_begins(issue: Daemon, chosen: str, begins: str | None) -> None:
    issue.say("begin")
    issue.serve("n-1")
    issue.say("look", agent=BOB)
    issue.write(lambda tx: begin_from(tx, BOBS_LANE, chosen))
    got = place(issue.serve("n-2"))
    assert (got.begins, got.begun_by) == (begins, None)


def test_a_run_waits_while_a_person_has_the_worktree_and_says_who_and_how_it_goes_on(issue: Daemon) -> None:
    issue.say("begin")
    issue.serve("n-1")
    issue.write(lambda tx: check_out(tx, LANE, "eva"))
    issue.say("go on")
    assert issue.claim() == ()
    (run,) = issue.write(queued)
    view = issue.write(lambda tx: show_run(tx, run.id))
    assert (view.held, view.code) == ("person", PlaceReason.CHECKED_OUT.code)
    assert view.words is not None
    assert view.words.startswith("eva works in /srv/work/maze/issue-12-ada by hand. It goes on after `clew checkout ")
    assert "issue-12 --agent ada --done`." in view.words
    issue.write(lambda tx: check_out(tx, LANE, None))
    assert issue.write(lambda tx: go_now(tx, LANE, THREAD)) == RunId(run.id)
    issue.claim_one()


def test_what_was_counted_is_kept_and_merged_until_there_is_more(issue: Daemon) -> None:
    issue.say("begin")
    workspace = WorkspaceId(place(issue.serve("n-1")).id)
    work = Work(workspace, BRANCH, "main", "c0ffee", files=3, uncommitted=1, commits=2)
    issue.write(lambda tx: keep_work(tx, work, 5.0))
    (lane,) = issue.write(lambda tx: worktrees_of(tx, THREAD))
    assert lane.work is not None
    assert (lane.work.words, lane.work.merged_into, lane.live) == ("3 files changed, 1 uncommitted", None, False)
    assert issue.write(lambda tx: show_thread(tx, THREAD)).stage == "ready for review"
    assert issue.write(lanes_in_open_threads) == {LANE: "issue-12 is open."}
    done = Work(workspace, BRANCH, "main", "c0ffee", commits=0)
    issue.write(lambda tx: keep_merged(tx, done, "main", 6.0))
    assert issue.write(lambda tx: show_thread(tx, THREAD)).stage == "merged"
    assert issue.write(lanes_in_open_threads) == {}
    issue.say("one thing more")
    assert issue.write(lanes_in_open_threads) == {LANE: "issue-12 has a run that waits or works."}
    issue.serve("n-1")
    assert issue.write(lanes_in_open_threads) == {}
    issue.write(lambda tx: keep_work(tx, done, 7.0))
    assert issue.write(lambda tx: show_thread(tx, THREAD)).stage == "merged"
    issue.write(lambda tx: keep_work(tx, work, 8.0))
    assert issue.write(lambda tx: show_thread(tx, THREAD)).stage == "ready for review"


def test_a_directory_names_its_thread_and_agent(issue: Daemon) -> None:
    issue.say("begin")
    got = place(issue.serve("n-1"))
    laptop = MachineId("laptop")
    assert issue.write(lambda tx: thread_at(tx, laptop, got.directory.path)) == (THREAD, "ada")
    assert issue.write(lambda tx: thread_at(tx, laptop, "/elsewhere")) is None
