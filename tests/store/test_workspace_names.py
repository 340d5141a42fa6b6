"""The names of directories and branches: for people, safe, and no two lanes have the same."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.kernel import Workspace
from clew.protocol.orders import Order
from clew.store.operations.workspace_names import LONGEST, branch_name, directory_name, slug
from clew.store.schema.tables import lanes, threads, workspaces
from tests.store.kit import BOB, LANE, OTHER_LANE, OTHER_THREAD, THREAD, Daemon, in_project


@pytest.mark.parametrize(
    ("title", "words"),
    [
        ("Login page", "login-page"),
        ("Crème brûlée: 2 & 3", "creme-brulee-2-3"),
        ("../../etc/passwd", "etc-passwd"),
        ("a.lock", "a-lock"),
        ("ログイン", ""),
        ("word " * 20, "word-word-word-word-word-word-word-word"),
        ("x" * 60, "x" * LONGEST),
    ],
)
def test_a_title_becomes_part_of_a_name(title: str, words: str) -> None:
    assert slug(title) == words


@given(st.text(), st.booleans())
def test_whatever_the_title_is_the_names_are_safe(title: str, first: bool) -> None:
    for kind, number in (("issue", 12), ("subject", None)):
        assert re.fullmatch(r"clew/[a-z0-9]+(-[a-z0-9]+)*", branch_name(kind, number, title, "ada", first))
        assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", directory_name(kind, number, title, "ada"))


def place(order: Order) -> Workspace:
    assert order.plan.workspace is not None
    return order.plan.workspace


def login_page(daemon: Daemon) -> None:
    in_project(daemon)
    daemon.put(threads, {"id": THREAD}, number=12, title="Login page")


def test_a_lane_gets_names_that_a_person_can_read(daemon: Daemon) -> None:
    login_page(daemon)
    daemon.say("begin")
    got = place(daemon.claim_one())
    assert (got.directory.path, got.branch) == ("/srv/work/maze/issue-12-ada", "clew/issue-12-login-page")


@pytest.mark.case("D09")
def test_a_second_lane_of_the_thread_has_names_of_its_own(daemon: Daemon) -> None:
    login_page(daemon)
    daemon.say("begin")
    daemon.claim_one()
    daemon.say("look", agent=BOB)
    got = place(daemon.claim_one())
    assert (got.directory.path, got.branch) == ("/srv/work/maze/issue-12-bob", "clew/issue-12-login-page-bob")


def test_a_lane_that_has_a_workspace_keeps_it(daemon: Daemon) -> None:
    login_page(daemon)
    daemon.say("begin")
    first = daemon.serve("n-1")
    daemon.put(workspaces, {"lane_id": LANE}, directory="/srv/work/pj_1/ln_1", branch="clew/ln_1")
    daemon.put(threads, {"id": THREAD}, title="Another title")
    for forgets in (False, True):
        if forgets:
            daemon.put(lanes, {"id": LANE}, workspace_id=None)
        daemon.say("go on")
        got = place(daemon.serve("n-1"))
        assert (got.id, got.directory.path, got.branch) == (place(first).id, "/srv/work/pj_1/ln_1", "clew/ln_1")


def test_a_directory_that_another_lane_had_is_not_handed_out_again(daemon: Daemon) -> None:
    login_page(daemon)
    daemon.add(lanes, id=OTHER_LANE, agent_id="ada", thread_id=OTHER_THREAD)
    taken = {"id": "ws-old", "lane_id": OTHER_LANE, "kind": "worktree", "machine_id": "laptop", "created_at": 1.0}
    daemon.add(workspaces, **taken, directory="/srv/work/maze/issue-12-ada", branch="clew/old")
    daemon.say("begin")
    assert place(daemon.claim_one()).directory.path == "/srv/work/maze/issue-12-ada-2"
