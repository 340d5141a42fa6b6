"""Permission modes: their order, and the mode a run gets. It is never wider than what was asked or allowed."""

from dataclasses import dataclass
from enum import Enum
from typing import Self

from clew.kernel.reason import Reason


class PermissionMode(Enum):
    """What an agent may do without asking. Each mode allows everything that the one before it does."""

    READ = "read"
    ASK = "ask"
    EDIT = "edit"
    FULL = "full"

    rank: int

    def __new__(cls, value: str) -> Self:
        member = object.__new__(cls)
        member._value_ = value
        member.rank = len(cls.__members__)
        return member

    # Written out: every decision compares modes, and functools.total_ordering would double its cost.
    def __lt__(self, other: "PermissionMode") -> bool:
        return self.rank < other.rank

    def __le__(self, other: "PermissionMode") -> bool:
        return self.rank <= other.rank

    def __gt__(self, other: "PermissionMode") -> bool:
        return self.rank > other.rank

    def __ge__(self, other: "PermissionMode") -> bool:
        return self.rank >= other.rank

    def __str__(self) -> str:
        return str(self._value_)


class ModeReason(Reason):
    AS_WANTED = "mode:as-wanted", "The mode is {wanted}, as asked."
    CAPPED = "mode:capped", "The mode is {mode}: {wanted} was asked, but a limit allows no more."
    STRICTER = "mode:stricter", "The mode is {mode}: {wanted} cannot be expressed here, so the next stricter is used."
    INEXPRESSIBLE = "mode:inexpressible", "Neither {wanted} nor anything stricter can be expressed here."


@dataclass(frozen=True, slots=True)
class ModeChoice:
    """The mode of a run. `mode` is None when the provider can express none; then the run must not start."""

    wanted: PermissionMode
    mode: PermissionMode | None
    reason: ModeReason

    @property
    def words(self) -> str:
        return self.reason.fill(wanted=self.wanted, mode=self.mode)


def parse_mode(text: str | None) -> PermissionMode:
    """The mode of that name. A missing or unknown name is the strictest mode."""
    return next((mode for mode in PermissionMode if mode.value == text), PermissionMode.READ)


def choose_mode(
    wanted: PermissionMode, limits: tuple[PermissionMode, ...], expressible: frozenset[PermissionMode]
) -> ModeChoice:
    """The wanted mode, capped by every limit; then the widest mode within that which the provider can express."""
    allowed = min(wanted, *limits) if limits else wanted
    mode = allowed if allowed in expressible else max((each for each in expressible if each <= allowed), default=None)
    if mode is None:
        return ModeChoice(wanted, None, ModeReason.INEXPRESSIBLE)
    if mode < allowed:
        return ModeChoice(wanted, mode, ModeReason.STRICTER)
    if mode < wanted:
        return ModeChoice(wanted, mode, ModeReason.CAPPED)
    return ModeChoice(wanted, mode, ModeReason.AS_WANTED)
