"""Views of the work in worktrees: what changed, and what became of it; and of the worktrees themselves."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class WorkView:
    """What a lane's worktree has that its base does not, as it was last counted: after a run, a commit or a merge."""

    base: str
    files: int
    uncommitted: int
    """Files of these with changes that are in no commit."""
    commits: int | None
    at: float
    words: str
    """In short, as "3 files changed, 1 uncommitted"; empty if there are none."""
    merged_into: str | None = None
    merged_at: float | None = None


@dataclass(frozen=True, slots=True)
class DiffView:
    """The work of one agent in a thread, against the base or as one run changed it."""

    thread: str
    agent: str
    directory: str
    branch: str | None
    work: WorkView
    text: str
    """As git prints it, without colours."""
    words: str = ""
    """What the text leaves out, and why; usually empty."""
    newer: tuple[str, ...] = ()
    """Later work of other agents that this does not have, a sentence each. Empty if the agent was named."""


@dataclass(frozen=True, slots=True)
class CommitView:
    """A commit of what an agent left uncommitted."""

    thread: str
    agent: str
    branch: str
    commit: str
    words: str
    work: WorkView
    newer: tuple[str, ...] = ()
    """Later work of other agents that this does not have, a sentence each. Empty if the agent was named."""


@dataclass(frozen=True, slots=True)
class MergeView:
    """A merge of an agent's branch. `commit` is the new tip of `into`."""

    thread: str
    agent: str
    branch: str
    into: str
    commit: str
    words: str
    directory: str
    """The worktree, which is not needed any more."""
    left: tuple[str, ...] = ()
    """Work of other agents in the thread that is not merged, a sentence each."""
    copies: tuple[str, ...] = ()
    """The worktrees of other agents in the thread that changed nothing: they are not needed any more either."""


@dataclass(frozen=True, slots=True)
class ProposalView:
    """A pull request that was opened (`url`), or how to open one: `push` is the command that sends the branch,
    `address` the page to open it at."""

    thread: str
    agent: str
    branch: str
    url: str | None
    push: str
    address: str | None


@dataclass(frozen=True, slots=True)
class CheckoutView:
    """An agent's worktree. `branch` is the one it is on, `former` the lane's before."""

    thread: str
    agent: str
    directory: str
    branch: str | None
    former: str | None
    checked_out: bool
    hand_back: str = ""
    """The command that hands it back to the agent."""


@dataclass(frozen=True, slots=True)
class WorkspaceView:
    directory: str
    state: str
    lane: str | None
    thread: str | None
    agent: str | None
    project: str | None
    branch: str | None
    bytes: int
    changes: int
    unmerged: int | None
    used_by: str
    last_used: float | None
    note: str


@dataclass(frozen=True, slots=True)
class CleanedView:
    directory: str
    removed: bool
    code: str
    words: str
