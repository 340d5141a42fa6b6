"""Places: directories, the workspace a run works in, and what to do with it as it is found on disk."""

import posixpath
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from clew.kernel.contract import must_be
from clew.kernel.ids import MachineId, ProjectId, WorkspaceId
from clew.kernel.reason import Reason


@dataclass(frozen=True, slots=True)
class Directory:
    """Equal if it is the same place, however its path is spelled. The machine that has the disk resolves links
    (`real`); the rest is done here."""

    path: str = field(compare=False)
    real: str | None = field(default=None, compare=False)
    place: str = field(init=False)

    def __post_init__(self) -> None:
        known = self.path if self.real is None else self.real
        must_be(known, str, "the path of a directory")
        if not known.startswith("/"):
            raise ValueError(f"a directory must be an absolute path, and {known!r} is not: give the whole path")
        # POSIX keeps exactly two leading slashes apart; no system Clew runs on does.
        object.__setattr__(self, "place", "/" + posixpath.normpath(known).lstrip("/"))

    def __str__(self) -> str:
        return self.path


class WorkspaceKind(StrEnum):
    WORKTREE = "worktree"
    DIRECTORY = "directory"
    AGENT_HOME = "agent-home"


@dataclass(frozen=True, slots=True)
class Workspace:
    """A directory a lane works in. `machine` is None when every machine can reach it. A new branch begins from branch
    `begins`, which is `begun_by`'s, an agent's; without it, from the project's base."""

    id: WorkspaceId
    kind: WorkspaceKind
    directory: Directory
    project: ProjectId | None = None
    machine: MachineId | None = None
    branch: str | None = None
    begins: str | None = None
    begun_by: str | None = None

    def reachable_from(self, machine: MachineId) -> bool:
        return self.machine is None or self.machine == machine


@dataclass(frozen=True, slots=True)
class PlaceFacts:
    """The facts about the lane's place. Deliberately without the wake's reason and without sessions.

    `project`: the thread's project. `remembered`: the lane's last workspace. `earlier`: the workspaces of the lane's
    earlier runs, newest first. `prepared`: the workspace that would be created for the project on this machine;
    `obstacle`: why none can be. `remade`: the lane's directory was gone and was created again, with what was lost; it
    stays set until the agent was told. `on_branch`: the machine made the workspace on this branch, because the name
    that was wanted is another's. `checked_out`: why the run has to wait for a person who works in its worktree.
    """

    agent_home: Workspace
    project: ProjectId | None = None
    remembered: Workspace | None = None
    earlier: tuple[Workspace, ...] = ()
    prepared: Workspace | None = None
    obstacle: str | None = None
    remade: str | None = None
    on_branch: str | None = None
    checked_out: str | None = None


class PlaceReason(Reason):
    REMEMBERED = "place:remembered", "The lane works in {workspace.directory}."
    RECOVERED = "place:recovered", "An earlier run of this lane worked in {workspace.directory}, so it goes back there."
    PREPARED = "place:prepared", "The lane gets its own workspace of the project: {workspace.directory}."
    SECOND = (
        "place:second",
        "The lane's workspace {other.directory} is on another machine; {workspace.directory} is used here.",
    )
    AGENT_HOME = "place:agent-home", "The lane has no project; it works in the agent's home {workspace.directory}."
    HOME_AWAY = "place:home-away", "The agent's home {other.directory} is on another machine; give it one here."
    CANNOT_MAKE = "place:cannot-make", "No workspace of project {project} can be made here: {obstacle}"
    CHECKED_OUT = "place:checked-out", "{obstacle}"
    UNREACHABLE = "place:unreachable", "The lane works in {other.directory}, which this machine cannot reach."


@dataclass(frozen=True, slots=True)
class PlaceChoice:
    """The workspace of a run. None holds the run: any other place would be wrong."""

    workspace: Workspace | None
    reason: PlaceReason
    other: Workspace | None = None
    project: ProjectId | None = None
    obstacle: str = ""

    @property
    def words(self) -> str:
        return self.reason.fill(
            workspace=self.workspace, other=self.other, project=self.project, obstacle=self.obstacle
        )


def choose_place(facts: PlaceFacts, machine: MachineId) -> PlaceChoice:
    """None while a person works there. Else in this order: the thread's project, the lane's workspace, its earlier
    workspaces, the agent's home."""
    if facts.checked_out:
        return PlaceChoice(None, PlaceReason.CHECKED_OUT, facts.remembered, obstacle=facts.checked_out)
    places = _memory(facts)
    project = facts.project or (places[0].project if places else None)
    if project is not None:
        return _in_project(facts, project, machine)
    if not places:
        home = facts.agent_home
        reason = PlaceReason.AGENT_HOME if home.reachable_from(machine) else PlaceReason.HOME_AWAY
        return PlaceChoice(home if home.reachable_from(machine) else None, reason, home)
    for place in places:
        if place.project is None and place.reachable_from(machine):
            return PlaceChoice(place, PlaceReason.REMEMBERED if place is facts.remembered else PlaceReason.RECOVERED)
    return PlaceChoice(None, PlaceReason.UNREACHABLE, places[0])


def _memory(facts: PlaceFacts) -> list[Workspace]:
    """The lane's workspace, then its earlier ones. The agent's home is left out: it may be an overwritten record."""
    places = facts.earlier if facts.remembered is None else (facts.remembered, *facts.earlier)
    return [place for place in places if place.kind is not WorkspaceKind.AGENT_HOME]


def _in_project(facts: PlaceFacts, project: ProjectId, machine: MachineId) -> PlaceChoice:
    def serves(place: Workspace | None) -> bool:
        return place is not None and place.project == project and place.reachable_from(machine)

    if serves(facts.remembered):
        return PlaceChoice(facts.remembered, PlaceReason.REMEMBERED)
    for earlier in facts.earlier:
        if serves(earlier):
            return PlaceChoice(earlier, PlaceReason.RECOVERED)
    if not serves(facts.prepared):
        obstacle = facts.obstacle or "nothing is prepared for it on this machine."
        return PlaceChoice(None, PlaceReason.CANNOT_MAKE, project=project, obstacle=obstacle)
    if facts.remembered is not None and facts.remembered.project == project:
        return PlaceChoice(facts.prepared, PlaceReason.SECOND, facts.remembered)
    return PlaceChoice(facts.prepared, PlaceReason.PREPARED)


class Found(StrEnum):
    """The state in which a chosen workspace was found on disk."""

    READY = "ready"
    NOT_MADE = "not-made"
    ORPHANED_REFERENCE = "orphaned-reference"
    DIRECTORY_GONE = "directory-gone"
    BRANCH_GONE = "branch-gone"
    PROJECT_MOVED = "project-moved"
    OTHER_BRANCH = "other-branch"
    NO_GIT = "no-git"
    FOREIGN_MARKER = "foreign-marker"
    OUTSIDE_ROOT = "outside-root"
    IN_USE = "in-use"
    CANNOT_MAKE = "cannot-make"


class PlaceStep(StrEnum):
    USE = "use"
    MAKE = "make"
    REPAIR_THEN_MAKE = "repair-then-make"
    MAKE_AGAIN = "make-again"
    HOLD = "hold"


class FoundReason(Reason):
    READY = "workspace:ready", "{wanted} exists and belongs to the lane."
    MADE = "workspace:made", "{wanted} does not exist yet and is made."
    REPAIRED = "workspace:repaired", "A left-over reference to {wanted} is cleared, then it is made."
    MADE_AGAIN = "workspace:made-again", "{wanted} is gone but its branch is not; it is made again from the branch."
    BRANCH_GONE = "workspace:branch-gone", "{wanted} and its branch are both gone; choose a new workspace for the lane."
    PROJECT_MOVED = (
        "workspace:project-moved",
        (
            "The project of {wanted} is not where it was ({seen}); "
            "put it back, or name its new place with `clew project edit NAME --path DIR`."
        ),
    )
    OTHER_BRANCH = "workspace:other-branch", "{wanted} should be on branch {branch} but is on {seen}."
    NO_GIT = "workspace:no-git", "{wanted} should be on branch {branch} but is no git worktree ({seen})."
    FOREIGN_MARKER = "workspace:foreign-marker", "{wanted} carries the marker of another lane ({seen})."
    OUTSIDE_ROOT = "workspace:outside-root", "{wanted} leads outside of its root, to {seen}."
    IN_USE = "workspace:in-use", "{wanted} is in use: {seen}. The run starts when it is free."
    CANNOT_MAKE = "workspace:cannot-make", "{wanted} cannot be made: {seen}"


FOUND_TABLE: Mapping[Found, tuple[PlaceStep, FoundReason]] = {
    Found.READY: (PlaceStep.USE, FoundReason.READY),
    Found.NOT_MADE: (PlaceStep.MAKE, FoundReason.MADE),
    Found.ORPHANED_REFERENCE: (PlaceStep.REPAIR_THEN_MAKE, FoundReason.REPAIRED),
    Found.DIRECTORY_GONE: (PlaceStep.MAKE_AGAIN, FoundReason.MADE_AGAIN),
    Found.BRANCH_GONE: (PlaceStep.HOLD, FoundReason.BRANCH_GONE),
    Found.PROJECT_MOVED: (PlaceStep.HOLD, FoundReason.PROJECT_MOVED),
    Found.OTHER_BRANCH: (PlaceStep.HOLD, FoundReason.OTHER_BRANCH),
    Found.NO_GIT: (PlaceStep.HOLD, FoundReason.NO_GIT),
    Found.FOREIGN_MARKER: (PlaceStep.HOLD, FoundReason.FOREIGN_MARKER),
    Found.OUTSIDE_ROOT: (PlaceStep.HOLD, FoundReason.OUTSIDE_ROOT),
    Found.IN_USE: (PlaceStep.HOLD, FoundReason.IN_USE),
    Found.CANNOT_MAKE: (PlaceStep.HOLD, FoundReason.CANNOT_MAKE),
}
"""No state leads to another directory: the workspace is used or created, or the run is held."""


@dataclass(frozen=True, slots=True)
class ResolvedPlace:
    step: PlaceStep
    reason: FoundReason
    words: str


def resolve_place(workspace: Workspace, found: Found, seen: str = "") -> ResolvedPlace:
    """What to do with the chosen workspace as it was found on disk; `seen` is what was found instead."""
    step, reason = FOUND_TABLE[found]
    return ResolvedPlace(step, reason, reason.fill(wanted=workspace.directory, branch=workspace.branch, seen=seen))
