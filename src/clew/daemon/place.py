"""The place of a run: its directory is ensured before anything is opened, and the plan follows what the disk says."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace

from clew.daemon.limits import Limits
from clew.daemon.reports import Reports
from clew.daemon.settings import place_wanted
from clew.daemon.stop_signal import StopSignal
from clew.kernel import Directory, FoundReason, Plan, RunId, Workspace, WorkspaceKind, decide
from clew.ports.fault import Fault
from clew.ports.work import Work
from clew.ports.workspaces import Ensured, Held, PlaceWanted, Workspaces
from clew.programs.tasks import TaskSet
from clew.protocol.control import ControlPlane, GoOnRequest
from clew.protocol.orders import Order

_log = logging.getLogger("clew.daemon")


class NoPlace(Fault):
    code = "daemon:no-place"


class PlaceHeld(Exception):
    """The directory cannot be used now, and no other is used in its place."""

    def __init__(self, held: Held) -> None:
        super().__init__(held.words)
        self.reason: FoundReason = held.reason
        self.words, self.passing = held.words, held.passing


class PlaceQueue:
    """Runs that were given back because their directory was in use. They go on when one is released."""

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane
        self._waiting: set[RunId] = set()
        self._tasks = TaskSet()
        self.released = 0
        """How many directories were released so far."""

    def add(self, run: RunId, released: int) -> None:
        """`released` as it was before the directory was found to be in use: it may be free by now."""
        self._waiting.add(run)
        if self.released != released:
            self._call()

    def release(self) -> None:
        self.released += 1
        if self._waiting:
            self._call()

    def _call(self) -> None:
        runs, self._waiting = sorted(self._waiting), set()
        self._tasks.start(self._go_on(runs))

    async def _go_on(self, runs: Sequence[RunId]) -> None:
        try:
            await self._plane.go_on(GoOnRequest(tuple(runs)))
        except Fault as fault:
            # They are tried again in a while all the same.
            _log.warning("runs that waited for a directory: %s", fault)


@dataclass(frozen=True, slots=True)
class Placed:
    """A directory that is the lane's until it is released. `plan` is the order's plan, decided again where the disk
    adds a fact: a path that leads elsewhere, or a worktree that was made again."""

    directory: Directory
    plan: Plan
    wanted: PlaceWanted
    workspaces: Workspaces

    async def release(self) -> None:
        await self.workspaces.release(self.wanted)

    async def begin_run(self, run: RunId) -> None:
        """Note the files as they are. Where that fails the run goes on: only `clew diff --run` has less to show."""
        if self.wanted.workspace.kind is WorkspaceKind.WORKTREE:
            try:
                await self.workspaces.begin_run(self.wanted, run)
            except (Fault, OSError) as fault:
                _log.warning("run %s: its worktree could not be noted: %s", run, fault)

    async def end_run(self, run: RunId) -> Work | None:
        """What the worktree has now; None where there is none, or where git cannot tell."""
        if self.wanted.workspace.kind is not WorkspaceKind.WORKTREE:
            return None
        try:
            return await self.workspaces.end_run(self.wanted, run)
        except (Fault, OSError) as fault:
            _log.warning("run %s: its changes could not be counted: %s", run, fault)
            return None


async def ensure_place(
    order: Order, workspaces: Workspaces, stop: StopSignal, reports: Reports, limits: Limits
) -> Placed:
    wanted = place_wanted(order, order.plan)
    if wanted is None:
        raise NoPlace("The plan has no workspace.", "Give the thread a project, or the agent a home.")
    reports.log_step("workspace", order.plan.place.words)

    def progress(line: str) -> None:
        reports.log_step("setup", line)

    async def release(ensured: object) -> None:
        if not isinstance(ensured, Held):
            await workspaces.release(wanted)

    ensuring = workspaces.ensure(wanted, progress)
    ensured = await stop.within("workspace", limits.workspace, limits.cancel, ensuring, release)
    if isinstance(ensured, Held):
        raise PlaceHeld(ensured)
    if ensured.setup_output is not None:
        reports.log_step("workspace", f"{ensured.words} The output of its setup is in {ensured.setup_output}.")
    place = Placed(ensured.directory, _as_found(order.plan, ensured), wanted, workspaces)
    await place.begin_run(order.run)
    if not ensured.remade:
        return place
    reports.log_step("notice", ensured.remade)
    try:
        return await _report_remade(place, ensured.remade, stop, reports)
    except BaseException:
        await place.release()
        raise


async def _report_remade(place: Placed, words: str, stop: StopSignal, reports: Reports) -> Placed:
    """Decide again with the loss as one more fact. The server has it before the disk forgets it: whatever ends this
    run, the next one tells the agent."""
    known = place.plan.situation
    if known.place.remade != words:
        place = replace(place, plan=decide(replace(known, place=replace(known.place, remade=words))))
        await reports.ask(settled=(place.plan,))
        stop.check()
    await place.workspaces.acknowledge(place.wanted)
    return place


def _as_found(plan: Plan, ensured: Ensured) -> Plan:
    """The server cannot see this disk. Where the path leads elsewhere than it reads, or the branch has another name
    because that one was taken, that is one more fact."""
    known = plan.workspace
    if known is None or (known.directory == ensured.directory and known.branch == (ensured.branch or known.branch)):
        return plan
    real = Directory(known.directory.path, ensured.directory.place)
    branch = ensured.branch or known.branch

    def resolved(place: Workspace) -> Workspace:
        return replace(place, directory=real, branch=branch) if place.id == known.id else place

    facts = plan.situation.place
    resolved_facts = replace(
        facts,
        on_branch=branch if branch != known.branch else facts.on_branch,
        agent_home=resolved(facts.agent_home),
        remembered=None if facts.remembered is None else resolved(facts.remembered),
        earlier=tuple(map(resolved, facts.earlier)),
        prepared=None if facts.prepared is None else resolved(facts.prepared),
    )
    return decide(replace(plan.situation, place=resolved_facts))
