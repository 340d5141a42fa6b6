"""What stands in a thread's journal when it changes hands, and how whoever makes the prompt reads it."""

import re
from collections.abc import Sequence

from clew.kernel import EntrySeq

_FROM = re.compile(r"Gave this issue to \S+ \(it was (?P<former>\S+)'s\)\.")


def handover_words(to: str, former: str | None, open_entries: Sequence[EntrySeq] = (), busy: bool = False) -> str:
    """The entry that hands an issue over. `open_entries` are those that no agent has answered; `busy` says that the
    former agent has a run going in it, which goes on."""
    whose = "" if former is None else f" (it was {former}'s)"
    words = [f"Gave this issue to {to}{whose}."]
    if open_entries:
        words.append(f"Not answered yet: {', '.join(f'[{entry}]' for entry in open_entries)}.")
    if busy and former is not None:
        words.append(f"{former} was still at work on it.")
    return " ".join(words)


def former_of(words: str) -> str | None:
    """Whose the issue was, by the entry that hands it over; None where it was nobody's."""
    found = _FROM.match(words)
    return None if found is None else found["former"]
