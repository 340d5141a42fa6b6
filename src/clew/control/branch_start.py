"""The start of a branch: a person chooses where the branch of an agent that is new in a thread begins."""

import re

from clew.control.actor import Actor
from clew.control.faults import BadRequest, NoMachine, NotNow
from clew.control.services import Services
from clew.kernel import AgentId, ThreadId
from clew.ports.fault import Fault
from clew.ports.workspaces import SourceKind
from clew.protocol.views import ProjectView
from clew.store.engine.database import Transaction
from clew.store.operations.threads import make_lane
from clew.store.operations.workspaces import FROM_BASE, begin_from
from clew.store.queries.names import project_named, thread_called
from clew.store.queries.threads import show_thread
from clew.store.queries.work import worktrees_of

_BRANCH = re.compile(r"(?!-)(?!.*(?:\.\.|//|@\{|\.lock$|/$|\.$))[^\x00-\x20~^:?*\[\\\x7f]{1,200}")


_NO_BRANCH = "source:no-such-base"


async def check_branch_start(services: Services, actor: Actor, ref: str, asked: str) -> None:
    """Refuse a branch that the project does not have: the run that is to begin from it would be held."""

    def read(tx: Transaction) -> ProjectView | None:
        thread = thread_called(tx, ref)
        known = {name for lane in worktrees_of(tx, thread.id) for name in (lane.agent_name, lane.branch)}
        project = show_thread(tx, thread.id).project
        return None if project is None or asked in {FROM_BASE, *known} else project_named(tx, project)

    project = await services.read(read)
    # The branches of an address are known once it is cloned.
    if project is None or project.kind != SourceKind.REPOSITORY or _BRANCH.fullmatch(asked) is None:
        return
    try:
        machine = services.remaining_machine(project.machine)
    except NoMachine:
        # It can tell once it is back, and the run waits for it.
        return
    try:
        await machine.inspect(project.source, False, f"refs/heads/{asked}")
    except Fault as fault:
        if fault.code != _NO_BRANCH:
            raise
        words = f"{project.name} has no branch {asked!r}."
        raise BadRequest(words, f"Name a branch of it, an agent of the thread, or {FROM_BASE}.") from fault


def choose_branch_start(tx: Transaction, thread: ThreadId, agent: AgentId, asked: str) -> None:
    """Let the agent's branch in that thread begin from an agent's branch, a branch, or the base. Refused if the agent
    already has a branch here."""
    known, lanes = show_thread(tx, thread), worktrees_of(tx, thread)
    if thread_called(tx, thread).project is None:
        raise BadRequest(f"{known.ref} has no project, so no branch is made.", "Leave --from out.")
    mine = next((lane for lane in lanes if lane.agent == agent), None)
    if mine is not None:
        raise NotNow(
            f"{mine.agent_name} works in {known.ref} on {mine.branch} already.",
            "Leave --from out: it is for an agent that is new in the thread.",
        )
    branch = next((lane.branch for lane in lanes if lane.agent_name == asked and lane.branch), asked)
    if _BRANCH.fullmatch(branch) is None:
        raise BadRequest(f"{asked!r} cannot be a branch.", f"Name a branch, an agent of the thread, or {FROM_BASE}.")
    begin_from(tx, make_lane(tx, agent, thread), branch)
