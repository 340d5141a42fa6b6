"""A hold while it is watched: it is said once, whatever number of tries it takes, and again if its reason changes."""

import re
import time

from clew.cli.times import until
from clew.protocol.views import RunView

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

    def words_of(self, run: RunView | None, otherwise: str) -> str:
        """What the run waits for; empty if that was said. `otherwise`: what is said where no run is queued."""
        if run is None or not run.held:
            # Between two tries a run is queued for a moment.
            return "" if self.lasts else (run.words if run is not None else "") or otherwise
        reason, tries = _TRY.subn("", run.words or "")
        if reason == self._reason:
            return ""
        self._reason = reason
        now = time.time()
        lasts = run.not_before is not None and run.not_before > now
        words = f"Held {until(run.not_before or now, now)}: {reason}" if lasts else reason
        return f"{words} (Further tries are not shown: `clew runs --thread {run.thread} --all`.)" if tries else words
