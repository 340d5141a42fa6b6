"""Context: which journal entries a prompt has in full, in a brief or not at all, and what follows if its engine
fails."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from enum import StrEnum

from clew.kernel.ids import EntrySeq
from clew.kernel.journal import JournalEntry, Reader
from clew.kernel.reason import Reason


class BudgetReason(Reason):
    ALL = "context:all", "All entries are given in full: {size} of {total} tokens."
    COMPACTED = "context:compacted", "Entries given as a brief: {compacted}. With the rest: {size} of {total} tokens."
    OVER = (
        "context:over-budget",
        "The entries that must be given need {size} tokens; the budget is {total}. Raise it, or shorten them.",
    )
    WITHHELD = (
        "context:withheld",
        "Entries withheld because another account's agent wrote them: {withheld}. The agent's owner may allow them.",
    )


@dataclass(frozen=True, slots=True)
class Budget:
    """In tokens. `brief` is reserved for the brief, if there is one. An entry above `entry_cap` goes into it."""

    total: int
    brief: int
    entry_cap: int | None = None


@dataclass(frozen=True, slots=True)
class Selection:
    """Every entry is in exactly one of the three tuples, in journal order.

    `size` is the size of `verbatim` and the brief. It exceeds `total` only when `fits` is false: then it is the size
    that would be needed, and nothing may be sent.
    """

    verbatim: tuple[EntrySeq, ...]
    compacted: tuple[EntrySeq, ...]
    withheld: tuple[EntrySeq, ...]
    size: int
    total: int
    reason: BudgetReason

    @property
    def fits(self) -> bool:
        return self.reason is not BudgetReason.OVER

    @property
    def words(self) -> str:
        told = self.reason.fill(size=self.size, total=self.total, compacted=len(self.compacted))
        if not self.withheld:
            return told
        return f"{told} {BudgetReason.WITHHELD.fill(withheld=len(self.withheld))}"


@dataclass(frozen=True, slots=True)
class _Group:
    """Entries that stay together: a single one, or a tool's call and its result."""

    entries: tuple[JournalEntry, ...]
    size: int


def select(
    entries: Iterable[JournalEntry],
    budget: Budget,
    reader: Reader,
    act_on: Collection[EntrySeq] = (),
) -> Selection:
    """Select the latest entries in full and the older ones for the brief. Entries to act on are always in full.

    Entries that the reader may not see are withheld and counted. An entry to act on is never withheld: it was
    addressed to the reader.
    """
    must, may, withheld = _sorted_out(_groups(entries), frozenset(act_on), reader)
    whole = [group for group in may if not _over_cap(group, budget)]
    size = sum(group.size for group in must + whole)
    if len(whole) == len(may) and size <= budget.total:
        return _selection(must + may, [], withheld, size, budget, BudgetReason.ALL)
    size = sum(group.size for group in must) + (budget.brief if may else 0)
    if size > budget.total:
        return _selection(must, may, withheld, size, budget, BudgetReason.OVER)
    latest: list[_Group] = []
    for group in reversed(whole):
        if size + group.size > budget.total:
            break
        size += group.size
        latest.append(group)
    kept = {group.entries[0].seq for group in latest}
    brief = [group for group in may if group.entries[0].seq not in kept]
    return _selection(must + latest, brief, withheld, size, budget, BudgetReason.COMPACTED)


def _groups(entries: Iterable[JournalEntry]) -> list[_Group]:
    """Ordered by each group's last entry, so that a call is as recent as its result."""
    ordered = sorted(entries, key=lambda entry: entry.seq)
    if len({entry.seq for entry in ordered}) < len(ordered):
        raise ValueError("two entries claim the same place in the journal")
    members: dict[str | EntrySeq, list[JournalEntry]] = {}
    for entry in ordered:
        key = entry.seq if entry.pair is None else entry.pair
        # Reinserted at the end: the last member determines the group's position.
        group = members.pop(key, [])
        group.append(entry)
        members[key] = group
    return [_Group(tuple(each), sum(entry.size for entry in each)) for each in members.values()]


def _sorted_out(
    groups: list[_Group], act_on: frozenset[EntrySeq], reader: Reader
) -> tuple[list[_Group], list[_Group], list[_Group]]:
    """The groups that must be in the prompt, those that may be, and those that must not."""
    must: list[_Group] = []
    may: list[_Group] = []
    withheld: list[_Group] = []
    found: set[EntrySeq] = set()
    for group in groups:
        asked = {entry.seq for entry in group.entries if entry.seq in act_on}
        found |= asked
        if asked:
            must.append(group)
        elif not all(map(reader.may_see, group.entries)):
            withheld.append(group)
        else:
            may.append(group)
    if found != act_on:
        raise ValueError(f"entries to act on are not in the journal handed in: {sorted(act_on - found)}")
    return must, may, withheld


def _over_cap(group: _Group, budget: Budget) -> bool:
    return budget.entry_cap is not None and any(entry.size > budget.entry_cap for entry in group.entries)


def _selection(
    verbatim: list[_Group],
    compacted: list[_Group],
    withheld: list[_Group],
    size: int,
    budget: Budget,
    reason: BudgetReason,
) -> Selection:
    return Selection(_seqs(verbatim), _seqs(compacted), _seqs(withheld), size, budget.total, reason)


def _seqs(groups: list[_Group]) -> tuple[EntrySeq, ...]:
    return tuple(sorted(entry.seq for group in groups for entry in group.entries))


class EnginePolicy(StrEnum):
    HOLD = "hold"
    FALL_BACK = "fall-back"


class EngineReason(Reason):
    HELD = "engine:held", "The context engine {engine} failed, and the run is held as configured: {why}"
    FELL_BACK = "engine:fell-back", "The context engine {engine} failed, and {fallback} takes over as configured: {why}"
    NO_FALLBACK = "engine:no-fallback", "The context engine {engine} failed, and none is left to take over: {why}"


@dataclass(frozen=True, slots=True)
class EngineFailure:
    """The answer. `fallback` is the engine that takes over, None when the run is held."""

    fallback: str | None
    reason: EngineReason
    words: str


def on_engine_failure(policy: EnginePolicy, engine: str, why: str, fallback: str | None) -> EngineFailure:
    """An engine is not its own fallback: when the last one fails, the run is held whatever the policy says."""
    reason = _reason(policy, engine, fallback)
    taker = fallback if reason is EngineReason.FELL_BACK else None
    return EngineFailure(taker, reason, reason.fill(engine=engine, fallback=taker, why=why))


def _reason(policy: EnginePolicy, engine: str, fallback: str | None) -> EngineReason:
    match policy:
        case EnginePolicy.HOLD:
            return EngineReason.HELD
        case EnginePolicy.FALL_BACK:
            return EngineReason.NO_FALLBACK if fallback in (None, engine) else EngineReason.FELL_BACK
