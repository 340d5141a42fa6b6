"""A person works in an agent's worktree: its wakes wait until the person is done. And a branch that an agent made."""

import time

from clew.control.actor import Actor, name_of
from clew.control.faults import NotNow, NoWork
from clew.control.services import Services
from clew.control.work import ThreadWork, find_work
from clew.protocol.requests import AcceptBranch, CheckOut
from clew.protocol.work_views import CheckoutView
from clew.store.engine.database import Transaction
from clew.store.engine.hints import hint_thread
from clew.store.operations.retry import go_now
from clew.store.operations.threads import lock_thread
from clew.store.operations.work import keep_work
from clew.store.operations.workspaces import check_out, set_branch
from clew.store.queries.work import thread_at


async def check_out_work(services: Services, actor: Actor, ref: str, asked: CheckOut) -> CheckoutView:
    """Reserve the agent's worktree for the person, or with `done` hand it back: what waited meanwhile starts."""
    found = await services.read(lambda tx: find_work(tx, ref, asked.agent))
    lane = found.lane
    work = await services.ask_worktrees(str(lane.machine), lambda at: at.work(lane.workspace))

    def write(tx: Transaction) -> ThreadWork:
        lock_thread(tx, found.thread.id)
        now = find_work(tx, ref, lane.agent_name)
        if asked.done and now.lane.checked_out is None:
            raise NotNow(f"{found.ref} is not checked out.", f"Check it out with {found.command('checkout')}.")
        if not asked.done and now.lane.live:
            raise now.at_work()
        check_out(tx, lane.lane, None if asked.done else name_of(actor))
        keep_work(tx, work, time.time())
        if asked.done:
            go_now(tx, lane.lane, found.thread.id)
        hint_thread(tx, found.thread.id)
        return now

    await services.write(write)
    services.record(actor, f"{'handed back' if asked.done else 'checked out'} {lane.directory} of {found.ref}")
    return _view(found, not asked.done, work.branch)


async def accept_branch(services: Services, actor: Actor, asked: AcceptBranch) -> CheckoutView:
    """The branch that an agent made in its worktree is its own from now on. A run that was held for it starts."""

    def read(tx: Transaction) -> ThreadWork:
        known = (thread_at(tx, machine, asked.name) for machine in services.machines)
        place = next((each for each in known if each is not None), None)
        if place is None and asked.name.startswith("/"):
            raise NoWork(f"{asked.name} is no workspace of Clew's.", "See them with `clew workspaces`.")
        return find_work(tx, asked.name, asked.agent) if place is None else find_work(tx, *place)

    found = await services.read(read)
    lane = found.lane
    work = await services.ask_worktrees(str(lane.machine), lambda at: at.accept_branch(lane.workspace))

    def write(tx: Transaction) -> None:
        set_branch(tx, lane.workspace, str(work.branch))
        keep_work(tx, work, time.time())
        go_now(tx, lane.lane, found.thread.id)
        hint_thread(tx, found.thread.id)

    await services.write(write)
    services.record(actor, f"accepted branch {work.branch} for {lane.agent_name} in {found.ref}")
    return _view(found, False, work.branch)


def _view(found: ThreadWork, checked_out: bool, branch: str | None) -> CheckoutView:
    lane = found.lane
    hand_back = found.command("checkout", "--done").strip("`")
    return CheckoutView(found.ref, lane.agent_name, lane.directory, branch, lane.branch, checked_out, hand_back)
