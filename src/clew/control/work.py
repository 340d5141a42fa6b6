"""The work of a thread's agents: which worktree is meant, and what it has that its base does not."""

import time
from collections.abc import Sequence
from dataclasses import dataclass

from clew.control.actor import Actor
from clew.control.faults import BadRequest, NoWork
from clew.control.services import Services
from clew.kernel import RunId, WorkspaceKind
from clew.ports.work import Diff, DiffWanted
from clew.protocol.views import DiffView
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
        found = find_work(tx, ref, of_run.agent_name if of_run is not None and agent is None else agent)
        if of_run is not None and of_run.lane != found.lane.lane:
            raise BadRequest(
                f"Run {of_run.id} is {of_run.agent_name}'s in {of_run.ref}.", f"Try `clew diff {of_run.ref} --run …`."
            )
        return found, None if of_run is None else of_run.id

    found, of = await services.read(read)
    wanted = DiffWanted(tuple(paths), stat, of)
    said = await services.ask_worktrees(str(found.lane.machine), lambda at: at.diff(found.lane.workspace, wanted))
    return DiffView(
        thread=found.ref,
        agent=found.lane.agent_name,
        directory=found.lane.directory,
        branch=said.work.branch,
        work=view_of(said.work, time.time()),
        text=said.text,
        words=_left_out(said),
    )


def find_work(tx: Transaction, ref: str, agent: str | None = None) -> ThreadWork:
    """The worktree of that agent; by default of the thread's agent, or else of the one that worked last."""
    thread = thread_called(tx, ref)
    known = show_thread(tx, thread.id)
    lanes = worktrees_of(tx, thread.id)
    if agent is not None:
        chosen = [lane for lane in lanes if lane.agent_name == agent]
    else:
        chosen = [lane for lane in lanes if lane.agent == thread.assignee]
        chosen = chosen or sorted(lanes, key=lambda lane: lane.worked_at)[-1:]
    if not chosen:
        raise _nothing(known.ref, known.project, agent, lanes)
    lane = chosen[0]
    if lane.kind != WorkspaceKind.WORKTREE:
        raise NoWork(
            f"{lane.agent_name} works in {lane.directory}, which is used in place and has no branch of its own.",
            "Look at it there.",
        )
    return ThreadWork(thread, known.ref, known.title, lane, tuple(each for each in lanes if each.lane != lane.lane))


def _nothing(ref: str, project: str | None, agent: str | None, lanes: Sequence[LaneWorktree]) -> NoWork:
    if agent is not None:
        there = ", ".join(lane.agent_name for lane in lanes)
        words = f"{agent!r} has no worktree in {ref}."
        return NoWork(words, f"Agents that have one: {there}." if there else "No agent has one yet.")
    if project is None:
        return NoWork(
            f"{ref} has no project, so its agent works in its own home.",
            "Open an issue with --project to get a branch.",
        )
    return NoWork(f"No agent has worked in {ref} yet.", f"Assign it: `clew issue assign {ref} AGENT`.")


def _left_out(said: Diff) -> str:
    words = ["It is too long, and its end is missing: name files to see less."] if said.cut else []
    if said.left_out:
        more = len(said.left_out) - _NAMED
        named = ", ".join(said.left_out[:_NAMED]) + (f" and {more} more" if more > 0 else "")
        words.append(f"New files that are too large to show: {named}.")
    return " ".join(words)
