"""The marks that a person has set on a thread."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class MarksView:
    """A thread's marks, as the person who asks has set them."""

    unread: bool
    """Whether an agent, Clew or the outside wrote something after `seen`."""
    pinned: bool
    seen: int
    """The last entry that was read."""
