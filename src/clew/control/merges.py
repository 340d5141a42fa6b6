"""From done to merged: the work of a thread's agent is committed, merged, or proposed as a pull request."""

import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TypeVar

from clew.control.actor import Actor, author_of, name_of
from clew.control.faults import BadRequest, NotNow
from clew.control.services import Services
from clew.control.validation import check_size
from clew.control.wakes import message
from clew.control.work import ThreadWork, find_work, newer_words, newer_work, work_of
from clew.ports.fault import Fault
from clew.ports.work import WorkOf
from clew.protocol.requests import Commit, Merge, Propose
from clew.protocol.work_views import CommitView, MergeView, ProposalView
from clew.store.engine.database import Transaction
from clew.store.engine.hints import hint_thread
from clew.store.operations.journal import Tried, append_once
from clew.store.operations.work import keep_merged, keep_work, view_of, work_words

T = TypeVar("T")


async def commit_work(services: Services, actor: Actor, ref: str, asked: Commit) -> CommitView:
    """Commit everything in the worktree that git does not ignore, on the agent's branch."""
    text = check_size(asked.message.strip(), "The message")
    if not text:
        raise BadRequest("The commit message is empty.", 'Give one: -m "…".')
    found = await _idle_work(services, actor, ref, asked.agent)
    lane, by = found.lane, name_of(actor)
    newer = await newer_work(services, actor, found)
    done = await _ask(services, actor, found, lambda at: at.commit(lane.workspace, text, by))
    await services.write(lambda tx: keep_work(tx, done.work, time.time()))
    services.record(actor, f"committed the work of {lane.agent_name} in {found.ref}")
    files = "1 file" if done.files == 1 else f"{done.files} files"
    branch = str(done.work.branch)
    words = f"Committed {files} on {branch} ({done.commit[:10]})."
    return CommitView(
        thread=found.ref,
        agent=lane.agent_name,
        branch=branch,
        commit=done.commit,
        words=words,
        work=view_of(done.work, time.time()),
        newer=tuple(
            f"This is {lane.agent_name}'s work. {newer_words(found, each)}: "
            f'`clew commit {found.ref} --agent {each.agent_name} -m "…"`.'
            for each in newer
        ),
    )


async def merge_work(services: Services, actor: Actor, ref: str, asked: Merge) -> MergeView:
    """Merge the agent's branch. A conflict, or changes that are in no commit, refuse it, and nothing is changed. So
    does later work of another agent that the branch does not have, unless the agent was named."""
    found = await _idle_work(services, actor, ref, asked.agent)
    await _must_have_all(services, actor, found, "merge")
    lane, by = found.lane, name_of(actor)
    title = f": {found.title}" if found.title else ""
    text = f"Merge {found.ref}{title}\n\nBranch {lane.branch}, by {lane.agent_name}."
    done = await _ask(services, actor, found, lambda at: at.merge(lane.workspace, asked.into, text, by))
    words = f"Merged {lane.branch} into {done.into} ({done.commit[:10]})."
    said = message(author_of(actor), words)
    tried: Tried = {}

    def write(tx: Transaction) -> None:
        keep_merged(tx, done.work, done.into, time.time())
        append_once(tx, found.thread.id, said, tried)
        hint_thread(tx, found.thread.id)

    await services.write(write)
    services.record(actor, f"merged {lane.branch} of {found.ref} into {done.into}")
    left, copies = await _others(services, actor, found)
    return MergeView(
        thread=found.ref,
        agent=lane.agent_name,
        branch=str(lane.branch),
        into=done.into,
        commit=done.commit,
        words=words,
        directory=lane.directory,
        left=left,
        copies=copies,
    )


async def propose_work(services: Services, actor: Actor, ref: str, asked: Propose) -> ProposalView:
    """Open a pull request of the agent's branch by `gh`; where that is not installed, say how to open one."""
    found = await _idle_work(services, actor, ref, asked.agent)
    await _must_have_all(services, actor, found, "pr")
    lane = found.lane
    title = " ".join(asked.title.split()) or found.title or found.ref
    body = check_size(asked.body.strip(), "The text")
    done = await _ask(services, actor, found, lambda at: at.propose(lane.workspace, title, body))
    if done.url is not None:
        services.record(actor, f"opened pull request {done.url} for {found.ref}")
    return ProposalView(found.ref, lane.agent_name, done.branch, done.url, done.push, done.address)


async def _idle_work(services: Services, actor: Actor, ref: str, agent: str | None) -> ThreadWork:
    found = await services.read(lambda tx: find_work(tx, ref, agent))
    if found.lane.live:
        raise found.at_work()
    return found


async def _ask(services: Services, actor: Actor, found: ThreadWork, asked: Callable[[WorkOf], Awaitable[T]]) -> T:
    """The machine's answer. Its remedies get the names of the thread and the agent."""
    try:
        return await services.ask_worktrees(str(found.lane.machine), asked)
    except Fault as fault:
        fault.remedy = found.remedy(fault.remedy)
        raise


async def _must_have_all(services: Services, actor: Actor, found: ThreadWork, command: str) -> None:
    """Refuse where another agent worked later and the branch does not have that work: a person chooses."""
    if newer := await newer_work(services, actor, found):
        choices = " or ".join(
            f"`clew {command} {found.ref} --agent {each.agent_name}`" for each in (*newer, found.lane)
        )
        raise NotNow(f"{newer_words(found, newer[0])}.", f"Choose whose: {choices}.")


async def _others(services: Services, actor: Actor, found: ThreadWork) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What other agents of the thread have that the merge did not bring, as their machine counts it now, in words; and
    the worktrees that have nothing of their own."""
    left, copies = [], []
    for lane in found.others:
        work = await work_of(services, actor, lane)
        if work is None:
            continue
        await services.write(partial(keep_work, work=work, now=time.time()))
        if not (work.commits or work.uncommitted):
            copies += [] if lane.live else [lane.directory]
            continue
        words = work_words(work.files, work.uncommitted)
        left.append(
            f"Not merged: {words} on {lane.branch}. `clew diff {found.ref} --agent {lane.agent_name}` shows it."
        )
    return tuple(left), tuple(copies)
