"""The work of a thread's agents: which worktree is meant, and what it has that its base does not."""

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from clew.control.actor import Actor
from clew.control.faults import BadRequest, NotNow, NoWork
from clew.control.services import Services
from clew.kernel import RunId, WorkspaceKind
from clew.ports.fault import Fault
from clew.ports.work import Diff, DiffWanted, Work
from clew.protocol.views import ThreadView
from clew.protocol.work_views import DiffView
from clew.store.engine.database import Transaction
from clew.store.operations.work import view_of
from clew.store.queries.names import ThreadRecord, run_called, thread_called
from clew.store.queries.runs import read_run
from clew.store.queries.threads import show_thread
from clew.store.queries.work import LaneWorktree, worktrees_of

_NAMED = 5


@dataclass(frozen=True, slots=True)
class ThreadWork:
    """The worktree that a request is about, and the others of the thread."""

    thread: ThreadRecord
    ref: str
    title: str
    lane: LaneWorktree
    others: tuple[LaneWorktree, ...]
    chosen: bool
    """Whether the request named the agent."""
    option: str
    """What a command about this worktree needs after the thread: --agent NAME, unless it is the default."""

    @property
    def to(self) -> str:
        """What `clew say` needs after the thread to reach the worktree's agent."""
        return "" if self.thread.assignee == self.lane.agent else f" --to {self.lane.agent_name}"

    def command(self, name: str, *rest: str) -> str:
        """A command about this worktree, as it is typed."""
        return " ".join((f"`clew {name} {self.ref}{self.option}", *rest)) + "`"

    def remedy(self, words: str) -> str:
        """A remedy of the machine, which knows no threads, with the thread's name and the agent's."""
        words = words.replace("clew say THREAD", f"clew say {self.ref}{self.to}")
        return words.replace("THREAD", f"{self.ref}{self.option}")

    def at_work(self) -> NotNow:
        """The refusal while its agent is in a run."""
        if self.lane.asks:
            words = f"{self.lane.agent_name} waits for your answer in {self.ref}."
            return NotNow(words, f"Answer it (`clew approvals`), or cancel the run: `clew cancel {self.ref}`.")
        return NotNow(
            f"{self.lane.agent_name} is working in {self.ref} now.",
            f"Wait for its end (`clew thread show {self.ref}`), or interrupt it: `clew interrupt {self.ref}`.",
        )


async def show_diff(
    services: Services,
    actor: Actor,
    ref: str,
    agent: str | None = None,
    run: str | None = None,
    paths: Sequence[str] = (),
    stat: bool = False,
) -> DiffView:
    """What an agent of the thread changed: everything that the base does not have, or what one run did."""

    def read(tx: Transaction) -> tuple[ThreadWork, RunId | None]:
        of_run = None if run is None else read_run(tx, run_called(tx, run))
        elsewhere = of_run is not None and of_run.thread != thread_called(tx, ref).id
        if of_run is not None and (elsewhere or agent not in (None, of_run.agent_name)):
            raise BadRequest(
                f"{of_run.name} is {of_run.agent_name}'s in {of_run.ref}.",
                f"Try `clew diff {of_run.ref} --run {of_run.name}`.",
            )
        found = find_work(tx, ref, agent if of_run is None else of_run.agent_name)
        return found, None if of_run is None else of_run.id

    for path in paths:
        if path.startswith("/") or ".." in path.split("/"):
            raise BadRequest(f"{path!r} is outside the project.", "Give a path relative to the project.")
    found, of = await services.read(read)
    wanted = DiffWanted(tuple(paths), stat, of)
    newer = () if of is not None else await newer_work(services, actor, found)
    said = await services.ask_worktrees(str(found.lane.machine), lambda at: at.diff(found.lane.workspace, wanted))
    return DiffView(
        thread=found.ref,
        agent=found.lane.agent_name,
        directory=found.lane.directory,
        branch=said.work.branch,
        work=view_of(said.work, time.time()),
        text=said.text,
        words=_left_out(said),
        newer=tuple(
            f"This is {found.lane.agent_name}'s work. {newer_words(found, lane)}: "
            f"`clew diff {found.ref} --agent {lane.agent_name}`."
            for lane in newer
        ),
    )


async def choose_agent(
    services: Services, actor: Actor, ref: str, agent: str | None = None, run: str | None = None
) -> str:
    """The agent whose worktree is meant: the named one, that of the run, or the thread's. A thread without a worktree
    says why."""

    def read(tx: Transaction) -> str:
        named = agent if agent is not None or run is None else read_run(tx, run_called(tx, run)).agent_name
        return find_work(tx, ref, named).lane.agent_name

    return await services.read(read)


def find_work(tx: Transaction, ref: str, agent: str | None = None) -> ThreadWork:
    """The worktree of that agent; by default of the thread's agent, or else of the one that worked last."""
    thread = thread_called(tx, ref)
    known = show_thread(tx, thread.id)
    lanes = worktrees_of(tx, thread.id)
    default = [lane for lane in lanes if lane.agent == thread.assignee]
    default = default or sorted(lanes, key=lambda lane: lane.worked_at)[-1:]
    chosen = default if agent is None else [lane for lane in lanes if lane.agent_name == agent]
    if not chosen:
        raise _nothing(known, agent, lanes)
    lane = chosen[0]
    if lane.kind != WorkspaceKind.WORKTREE:
        raise NoWork(
            f"{lane.agent_name} works in {lane.directory}, which is used in place and has no branch of its own.",
            "Look at it there.",
        )
    return ThreadWork(
        thread=thread,
        ref=known.ref,
        title=known.title,
        lane=lane,
        others=tuple(each for each in lanes if each.lane != lane.lane),
        chosen=agent is not None,
        option="" if default == [lane] else f" --agent {lane.agent_name}",
    )


async def newer_work(services: Services, actor: Actor, found: ThreadWork) -> tuple[LaneWorktree, ...]:
    """Where no agent was named: the worktrees of agents that worked later, with work that the found one lacks."""
    newer = [lane for lane in found.others if not found.chosen and lane.worked_at > found.lane.worked_at]
    return tuple([lane for lane in newer if await _lacks(services, actor, found.lane, lane)])


async def _lacks(services: Services, actor: Actor, lane: LaneWorktree, other: LaneWorktree) -> bool:
    work = await work_of(services, actor, other)
    if work is None or not (work.files or work.commits):
        return False
    if work.uncommitted:
        return True
    with suppress(Fault):
        return not await services.ask_worktrees(str(lane.machine), lambda at: at.contains(lane.workspace, work.head))
    return True


async def work_of(services: Services, actor: Actor, lane: LaneWorktree) -> Work | None:
    """As its machine counts it now; None where it cannot."""
    with suppress(Fault):
        return await services.ask_worktrees(str(lane.machine), lambda at: at.work(lane.workspace))
    return None


def newer_words(found: ThreadWork, lane: LaneWorktree) -> str:
    return (
        f"{lane.agent_name} worked in {found.ref} after {found.lane.agent_name}, on {lane.branch}, and "
        f"{found.lane.agent_name}'s branch does not have that work"
    )


def _nothing(thread: ThreadView, agent: str | None, lanes: Sequence[LaneWorktree]) -> NoWork:
    ref, project = thread.ref, thread.project
    if agent is not None:
        there = ", ".join(lane.agent_name for lane in lanes)
        words = f"{agent!r} has no worktree in {ref}."
        return NoWork(words, f"Agents that have one: {there}." if there else "No agent has one yet.")
    if project is None:
        return NoWork(
            f"{ref} has no project, so its agent works in its own home.",
            f"Give it a project, and the next run gets a branch: `clew issue edit {ref} --project NAME`.",
        )
    if thread.assignee is not None:
        # It may have worked before the project was given, in its home.
        return NoWork(
            f"{thread.assignee} has not worked in {ref} since it has the project {project}.",
            f"Its next run gets a branch: `clew say {ref} TEXT`.",
        )
    return NoWork(f"No agent has worked in {ref} yet.", f"Assign it: `clew issue assign {ref} AGENT`.")


def _left_out(said: Diff) -> str:
    words = ["It is too long, and its end is missing: name files to see less."] if said.cut else []
    if said.left_out:
        more = len(said.left_out) - _NAMED
        named = ", ".join(said.left_out[:_NAMED]) + (f" and {more} more" if more > 0 else "")
        words.append(f"New files that are too large to show: {named}.")
    return " ".join(words)
