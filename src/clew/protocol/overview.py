"""What a person wants to see first: what waits for them, and what goes on."""

from dataclasses import dataclass

from clew.protocol.views import ApprovalView, RunView, ThreadView


@dataclass(frozen=True, slots=True)
class OverviewView:
    approvals: tuple[ApprovalView, ...]
    """What agents ask, the oldest first."""
    held: tuple[RunView, ...]
    """Runs that start only after a person has acted."""
    live: tuple[RunView, ...]
    queued: tuple[RunView, ...]
    """Runs that wait by themselves: for their turn, a time or a machine."""
    agents: tuple[str, ...]
    threads: int
    """How many issues and chats are open and not archived, up to 50 of each."""
    ready: tuple[ThreadView, ...] = ()
    """Issues that are ready for review, the newest first."""
    unread: tuple[ThreadView, ...] = ()
    """Threads in which something is new for the person who asks, up to 50, without agents' own."""
    archived: bool = False
    """Whether there are archived threads."""
    failed: tuple[RunView, ...] = ()
    """Runs that failed or were lost in an open thread, and nothing was asked of the agent there since."""
