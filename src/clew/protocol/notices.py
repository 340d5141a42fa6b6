"""Notices: what a person may want to hear of while they look elsewhere. They have no content, only where it is."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class NoticeView:
    """A thread needs a person, or a run in it is done. `id` is the same as long as it is the same matter."""

    id: str
    kind: Literal["needs", "done"]
    """needs: an approval, a question, a run that waits for a person, or a failure. done: a run succeeded."""
    thread: str
