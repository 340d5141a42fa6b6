"""Where the branch of an agent that is new in a thread begins, if a person chooses."""

import re

from clew.control.faults import BadRequest, NotNow
from clew.kernel import AgentId, ThreadId
from clew.store.engine.database import Transaction
from clew.store.operations.threads import make_lane
from clew.store.operations.workspaces import FROM_BASE, begin_from
from clew.store.queries.names import thread_called
from clew.store.queries.threads import show_thread
from clew.store.queries.work import worktrees_of

_BRANCH = re.compile(r"(?!-)(?!.*(?:\.\.|//|@\{|\.lock$|/$|\.$))[^\x00-\x20~^:?*\[\\\x7f]{1,200}")


def choose_beginning(tx: Transaction, thread: ThreadId, agent: AgentId, asked: str) -> None:
    """Let the agent's branch in that thread begin from an agent's branch, a branch, or the base. Refused where it has
    one: a branch begins once."""
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
