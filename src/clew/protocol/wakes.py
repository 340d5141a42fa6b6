"""A request that an agent act, the receipt for it, and the journal entry that hands an issue over."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from clew.kernel import (
    AccountId,
    AgentId,
    Author,
    EntrySeq,
    Freshness,
    Instant,
    Origin,
    Overlap,
    ProviderName,
    RouteKey,
    RunId,
    ThreadId,
    WakeId,
    WakeReason,
    WakeState,
)
from clew.protocol.files import SentFile


@dataclass(frozen=True, slots=True)
class Said:
    """A text for the journal. Where an agent wrote it, `provider` and `account` are the ones it used. It may take the
    place of an earlier entry; with an empty text it takes that one back."""

    author: Author
    body: str
    size: int = 0
    pair: str | None = None
    provider: ProviderName | None = None
    account: AccountId | None = None
    run: RunId | None = None
    replaces: EntrySeq | None = None
    files: tuple[SentFile, ...] = ()


@dataclass(frozen=True, slots=True)
class WakeRequest:
    """A request that an agent act. The caller chooses the wake's id, so that a repeated request makes no second wake.

    `entries` are earlier journal entries to act on, beside `said`. `isolated` gives the run its own context: it sees
    nothing earlier, and nothing later sees it. `preview` is what the sender was told that it would do
    (`clew.protocol.preview`).
    """

    id: WakeId
    agent: AgentId
    reason: WakeReason
    origin: Origin
    thread: ThreadId | None = None
    said: Said | None = None
    freshness: Freshness = Freshness.FOLLOW_POLICY
    resume_run: RunId | None = None
    priority: int = 0
    dedupe_key: str | None = None
    route: RouteKey | None = None
    isolated: bool = False
    entries: tuple[EntrySeq, ...] = ()
    preview: str | None = None


@dataclass(frozen=True, slots=True)
class Accepted:
    """The receipt: the wake made for the request, its state and why. `repeated` if an earlier request made it."""

    wake: WakeId
    state: WakeState
    code: str
    words: str
    entry: EntrySeq | None = None
    until: Instant | None = None
    overlap: Overlap | None = None
    repeated: bool = False


_FROM = re.compile(r"Gave this issue to \S+ \(it was (?P<former>\S+)'s\)\.")


def handover_words(to: str, former: str | None, open_entries: Sequence[EntrySeq] = (), busy: bool = False) -> str:
    """The entry that hands an issue over. `open_entries` are those that no agent has answered; `busy` says that a run
    of the former agent is live in the issue, and continues."""
    whose = "" if former is None else f" (it was {former}'s)"
    words = [f"Gave this issue to {to}{whose}."]
    if open_entries:
        words.append(f"Not answered yet: {', '.join(f'[{entry}]' for entry in open_entries)}.")
    if busy and former is not None:
        words.append(f"{former} was still at work on it.")
    return " ".join(words)


def former_of(words: str) -> str | None:
    """The former agent, read from such an entry; None if there was none."""
    found = _FROM.match(words)
    return None if found is None else found["former"]
