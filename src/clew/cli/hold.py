"""A hold while it is watched: it is said once, whatever number of tries it takes, and again if its reason changes."""

import re
import time

from clew.cli.times import until
from clew.protocol.views import ThreadView

_TRY = re.compile(r" \(try \d+(?: of \d+)?\)")


class Hold:
    """`lasts` between two tries of the same thing: the next try is no news before its agent does something."""

    def __init__(self) -> None:
        self._reason = ""

    @property
    def lasts(self) -> bool:
        return bool(self._reason)

    def over(self) -> None:
        self._reason = ""

    def words_of(self, thread: ThreadView) -> str:
        """What the thread waits for; empty if that was said."""
        if thread.status != "held":
            # Between two tries a run is queued for a moment.
            return "" if self.lasts else thread.words
        reason, tries = _TRY.subn("", thread.words)
        if reason == self._reason:
            return ""
        self._reason = reason
        words = reason if thread.until is None else f"Held {until(thread.until, time.time())}: {reason}"
        return f"{words} (Further tries are not shown: `clew runs --thread {thread.ref} --all`.)" if tries else words
