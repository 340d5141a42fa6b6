"""Directories: which workspace a run gets, and what the disk may say about it."""

from dataclasses import replace

import pytest

from clew.kernel import (
    Directory,
    Found,
    FoundReason,
    Outcome,
    PlaceFacts,
    PlaceStep,
    Policy,
    ProjectId,
    ResetPolicy,
    RuleReason,
    WaitsFor,
    WakeReason,
    Workspace,
    WorkspaceId,
    WorkspaceKind,
    decide,
    resolve_place,
)
from clew.kernel.place import FOUND_TABLE, PlaceReason, choose_place
from tests.kernel.kit import (
    AGENT_HOME,
    ELSEWHERE,
    LAPTOP,
    PROJECT,
    SERVER,
    WORKTREE,
    can,
    demand,
    finding,
    here,
    session,
    situation,
)

PLAIN = Workspace(WorkspaceId("ws-2"), WorkspaceKind.DIRECTORY, Directory("/srv/notes"), machine=LAPTOP)
ON_SERVER = replace(WORKTREE, id=WorkspaceId("ws-3"), machine=SERVER, directory=Directory("/srv/server/maze"))


@pytest.mark.case("D01")
@pytest.mark.parametrize("reason", WakeReason)
def test_no_reason_leads_a_projects_lane_to_the_agents_home(reason: WakeReason) -> None:
    for policy in (Policy(), Policy(reset=ResetPolicy(frozenset(WakeReason)))):
        plan = decide(situation([session()], demand=demand(reason), policy=policy))
        assert plan.workspace == WORKTREE


@pytest.mark.case("D02")
def test_a_lane_whose_memory_says_home_goes_back_to_the_project_of_an_earlier_run() -> None:
    facts = PlaceFacts(agent_home=AGENT_HOME, remembered=AGENT_HOME, earlier=(AGENT_HOME, WORKTREE))
    choice = choose_place(facts, LAPTOP)
    assert (choice.workspace, choice.reason) == (WORKTREE, PlaceReason.RECOVERED)
    assert choice.words == "An earlier run of this lane worked in /srv/maze, so it goes back there."
    unremembered = replace(facts, remembered=None)
    assert choose_place(unremembered, LAPTOP).workspace == WORKTREE


@pytest.mark.case("D02")
def test_an_earlier_workspace_counts_only_for_its_project_and_where_it_is_reachable() -> None:
    facts = PlaceFacts(agent_home=AGENT_HOME, project=PROJECT, earlier=(ON_SERVER, PLAIN, WORKTREE), prepared=ON_SERVER)
    assert choose_place(facts, LAPTOP).workspace == WORKTREE
    others = replace(WORKTREE, project=ProjectId("other"))
    other = replace(facts, project=ProjectId("other"), prepared=others)
    assert (choose_place(other, LAPTOP).workspace, choose_place(other, LAPTOP).reason) == (others, PlaceReason.PREPARED)


@pytest.mark.case("D03")
def test_a_project_whose_workspace_cannot_be_made_holds_the_run() -> None:
    facts = PlaceFacts(agent_home=AGENT_HOME, project=PROJECT, obstacle="the repository has no commit.")
    plan = decide(situation([session()], place=facts))
    assert (plan.outcome, plan.reason, plan.workspace) == (Outcome.HOLD, PlaceReason.CANNOT_MAKE, None)
    assert plan.words == "No workspace of project maze can be made here: the repository has no commit."
    assert plan.waits_for is WaitsFor.PERSON
    assert [step.outcome for step in plan.trace if step.subject == "workspace"] == ["hold"]
    unnamed = choose_place(replace(facts, obstacle=None), LAPTOP)
    assert unnamed.words.endswith("nothing is prepared for it on this machine.")


@pytest.mark.case("D04")
def test_a_session_made_at_home_moves_into_the_project_with_its_history() -> None:
    made_at_home = session(1, directory=AGENT_HOME.directory)
    plan = decide(situation([made_at_home]))
    assert (plan.outcome, plan.reason, plan.workspace) == (Outcome.FORK, RuleReason.DIRECTORY_FORK, WORKTREE)
    assert finding(plan) == "It works in /srv/ada; its history is forked into /srv/maze."
    moves = here(capabilities=can(fork_into=False))
    plan = decide(situation([made_at_home], here=moves))
    assert (plan.outcome, plan.native_id) == (Outcome.RESUME, "n-1")
    assert plan.considered[0].findings == (RuleReason.DIRECTORY_MOVES,)
    fixed = here(capabilities=can(fork_into=False, resume_elsewhere=False))
    plan = decide(situation([made_at_home], here=fixed))
    assert (plan.outcome, plan.reason) == (Outcome.RESEED, RuleReason.DIRECTORY_FIXED)
    assert finding(plan) == "It works in /srv/ada and cannot be brought into /srv/maze."


@pytest.mark.case("C18")
@pytest.mark.parametrize(
    "spelling",
    [
        Directory("/srv/maze/"),
        Directory("/srv//maze"),
        Directory("//srv/maze"),
        Directory("/srv/./other/../maze"),
        Directory("/link/to/maze", real="/srv/maze"),
    ],
)
def test_a_directory_is_the_same_however_it_is_spelled(spelling: Directory) -> None:
    assert spelling == WORKTREE.directory
    assert hash(spelling) == hash(WORKTREE.directory)
    plan = decide(situation([session(1, directory=spelling)]))
    assert (plan.outcome, plan.considered[0].findings) == (Outcome.RESUME, ())


@pytest.mark.case("C18")
def test_what_a_link_leads_to_counts_and_not_its_name() -> None:
    link = Directory("/srv/maze", real="/srv/elsewhere")
    assert link != WORKTREE.directory
    assert link == ELSEWHERE
    assert str(link) == "/srv/maze"
    assert Directory("/Xavier").place == "/Xavier"
    assert Directory("/").place == "/"


@pytest.mark.parametrize("path", ["", "maze", "./maze", "~/maze"])
def test_a_directory_must_be_absolute(path: str) -> None:
    with pytest.raises(ValueError, match="must be an absolute path"):
        Directory(path)
    with pytest.raises(ValueError, match="must be an absolute path"):
        Directory("/srv", real=path)


@pytest.mark.case("C07")
def test_the_project_of_the_remembered_workspace_is_the_lanes() -> None:
    facts = PlaceFacts(agent_home=AGENT_HOME, remembered=WORKTREE, prepared=ON_SERVER)
    assert choose_place(facts, SERVER).reason is PlaceReason.SECOND


def test_what_was_seen_may_be_left_unsaid() -> None:
    assert resolve_place(WORKTREE, Found.CANNOT_MAKE).words == "/srv/maze cannot be made: "


@pytest.mark.case("C07")
def test_on_another_machine_a_second_workspace_stands_for_the_lanes_own() -> None:
    facts = PlaceFacts(agent_home=AGENT_HOME, project=PROJECT, remembered=WORKTREE, prepared=ON_SERVER)
    choice = choose_place(facts, SERVER)
    assert (choice.workspace, choice.reason) == (ON_SERVER, PlaceReason.SECOND)
    assert choice.words == ("The lane's workspace /srv/maze is on another machine; /srv/server/maze is used here.")


def test_a_new_lane_gets_the_workspace_that_is_prepared_for_it() -> None:
    choice = choose_place(PlaceFacts(agent_home=AGENT_HOME, project=PROJECT, prepared=WORKTREE), LAPTOP)
    assert (choice.workspace, choice.reason) == (WORKTREE, PlaceReason.PREPARED)
    assert choice.words == "The lane gets its own workspace of the project: /srv/maze."


def test_a_lane_that_changed_its_project_leaves_the_old_workspace() -> None:
    others = replace(WORKTREE, project=ProjectId("other"))
    facts = PlaceFacts(agent_home=AGENT_HOME, project=ProjectId("other"), remembered=WORKTREE, prepared=others)
    assert choose_place(facts, LAPTOP).reason is PlaceReason.PREPARED


def test_a_lane_without_a_project_works_at_home_or_where_it_worked() -> None:
    home = choose_place(PlaceFacts(agent_home=AGENT_HOME), LAPTOP)
    assert (home.workspace, home.reason) == (AGENT_HOME, PlaceReason.AGENT_HOME)
    assert home.words == "The lane has no project; it works in the agent's home /srv/ada."
    old_home = replace(AGENT_HOME, machine=SERVER)
    assert choose_place(PlaceFacts(agent_home=AGENT_HOME, remembered=old_home), LAPTOP).workspace == AGENT_HOME
    plain = choose_place(PlaceFacts(agent_home=AGENT_HOME, remembered=PLAIN), LAPTOP)
    assert (plain.workspace, plain.reason, plain.words) == (
        PLAIN,
        PlaceReason.REMEMBERED,
        "The lane works in /srv/notes.",
    )


@pytest.mark.case("C07", "C09")
def test_back_on_the_first_machine_its_plain_directory_is_the_lanes_again() -> None:
    there = replace(PLAIN, id=WorkspaceId("ws-9"), machine=SERVER, directory=Directory("/srv/there"))
    facts = PlaceFacts(agent_home=AGENT_HOME, remembered=there, earlier=(there, WORKTREE, PLAIN))
    choice = choose_place(facts, LAPTOP)
    assert (choice.workspace, choice.reason) == (PLAIN, PlaceReason.RECOVERED)


@pytest.mark.case("C07", "D03")
def test_a_plain_directory_out_of_reach_is_not_replaced_by_another_place() -> None:
    choice = choose_place(PlaceFacts(agent_home=AGENT_HOME, remembered=PLAIN), SERVER)
    assert (choice.workspace, choice.reason) == (None, PlaceReason.UNREACHABLE)
    assert choice.words == "The lane works in /srv/notes, which this machine cannot reach."


@pytest.mark.case("D02")
def test_a_plain_directory_is_remembered_and_recovered_as_a_project_is() -> None:
    kept = PlaceFacts(agent_home=AGENT_HOME, remembered=PLAIN, earlier=(WORKTREE,))
    assert (choose_place(kept, LAPTOP).workspace, choose_place(kept, LAPTOP).reason) == (PLAIN, PlaceReason.REMEMBERED)
    for remembered in (AGENT_HOME, None):
        lost = choose_place(PlaceFacts(agent_home=AGENT_HOME, remembered=remembered, earlier=(PLAIN,)), LAPTOP)
        assert (lost.workspace, lost.reason) == (PLAIN, PlaceReason.RECOVERED)


@pytest.mark.case("D03")
@pytest.mark.parametrize("prepared", [AGENT_HOME, PLAIN, ON_SERVER, replace(WORKTREE, project=ProjectId("other"))])
def test_what_is_prepared_must_be_the_projects_and_here(prepared: Workspace) -> None:
    choice = choose_place(PlaceFacts(agent_home=AGENT_HOME, project=PROJECT, prepared=prepared), LAPTOP)
    assert (choice.workspace, choice.reason) == (None, PlaceReason.CANNOT_MAKE)


@pytest.mark.case("D03")
def test_an_agents_home_on_another_machine_is_not_used() -> None:
    choice = choose_place(PlaceFacts(agent_home=replace(AGENT_HOME, machine=SERVER)), LAPTOP)
    assert (choice.workspace, choice.reason) == (None, PlaceReason.HOME_AWAY)
    assert choice.words == "The agent's home /srv/ada is on another machine; give it one here."


def test_a_workspace_without_a_machine_is_reachable_from_all() -> None:
    assert replace(PLAIN, machine=None).reachable_from(SERVER)
    assert PLAIN.reachable_from(LAPTOP)
    assert not PLAIN.reachable_from(SERVER)


@pytest.mark.parametrize(
    ("found", "step", "words"),
    [
        (Found.READY, PlaceStep.USE, "/srv/maze exists and belongs to the lane."),
        (Found.NOT_MADE, PlaceStep.MAKE, "/srv/maze does not exist yet and is made."),
        (
            Found.ORPHANED_REFERENCE,
            PlaceStep.REPAIR_THEN_MAKE,
            "A left-over reference to /srv/maze is cleared, then it is made.",
        ),
        pytest.param(
            Found.DIRECTORY_GONE,
            PlaceStep.MAKE_AGAIN,
            "/srv/maze is gone but its branch is not; it is made again from the branch.",
            marks=pytest.mark.case("D05"),
        ),
        pytest.param(
            Found.BRANCH_GONE,
            PlaceStep.HOLD,
            "/srv/maze and its branch are both gone; choose a new workspace for the lane.",
            marks=pytest.mark.case("D06"),
        ),
        pytest.param(
            Found.PROJECT_MOVED,
            PlaceStep.HOLD,
            "The project of /srv/maze is not where it was (X); put it back, or name its new place with "
            "`clew project edit NAME --path DIR`.",
            marks=pytest.mark.case("D13"),
        ),
        pytest.param(
            Found.OTHER_BRANCH,
            PlaceStep.HOLD,
            "/srv/maze should be on branch issue-7 but is on X.",
            marks=pytest.mark.case("D08"),
        ),
        pytest.param(
            Found.NO_GIT,
            PlaceStep.HOLD,
            "/srv/maze should be on branch issue-7 but is no git worktree (X).",
            marks=pytest.mark.case("D08"),
        ),
        (Found.IN_USE, PlaceStep.HOLD, "/srv/maze is in use: X. The run starts when it is free."),
        pytest.param(
            Found.FOREIGN_MARKER,
            PlaceStep.HOLD,
            "/srv/maze carries the marker of another lane (X).",
            marks=pytest.mark.case("D07"),
        ),
        pytest.param(
            Found.OUTSIDE_ROOT,
            PlaceStep.HOLD,
            "/srv/maze leads outside of its root, to X.",
            marks=pytest.mark.case("D07"),
        ),
        pytest.param(Found.CANNOT_MAKE, PlaceStep.HOLD, "/srv/maze cannot be made: X", marks=pytest.mark.case("D03")),
    ],
)
def test_the_disk_has_its_say_but_never_leads_elsewhere(found: Found, step: PlaceStep, words: str) -> None:
    settled = resolve_place(WORKTREE, found, seen="X")
    assert (settled.step, settled.words) == (step, words)
    assert settled.reason.code.startswith("workspace:")


def test_every_answer_of_the_disk_is_in_the_table() -> None:
    assert set(FOUND_TABLE) == set(Found)
    assert len({reason for _, reason in FOUND_TABLE.values()}) == len(FoundReason)


@pytest.mark.case("D13")
def test_after_the_project_was_pointed_at_its_new_place_the_session_moves_along() -> None:
    moved = replace(WORKTREE, directory=Directory("/srv/renamed"))
    facts = replace(situation().place, remembered=moved, prepared=moved)
    plan = decide(situation([session()], place=facts))
    assert (plan.outcome, plan.session, plan.workspace) == (Outcome.FORK, session(), moved)


def test_an_agents_home_on_this_machine_is_used() -> None:
    home = replace(AGENT_HOME, machine=LAPTOP)
    choice = choose_place(PlaceFacts(agent_home=home), LAPTOP)
    assert (choice.workspace, choice.reason) == (home, PlaceReason.AGENT_HOME)
