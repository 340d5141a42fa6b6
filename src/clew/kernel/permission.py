"""Permission modes: an order that is never widened, and what a provider can express of it."""

from dataclasses import dataclass
from enum import Enum
from typing import Self

from clew.kernel.reason import Reason


class PermissionMode(Enum):
    """What an agent may do without asking; each allows all that the one before it does."""

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

    # Written out: a mode is compared on every decision, and functools.total_ordering costs as much as the rest.
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
    """The mode a run gets; `mode` is None when none can be expressed, and the run must not start."""

    wanted: PermissionMode
    mode: PermissionMode | None
    reason: ModeReason

    @property
    def words(self) -> str:
        return self.reason.fill(wanted=self.wanted, mode=self.mode)


def parse_mode(text: str | None) -> PermissionMode:
    """The mode of that name; anything else is the strictest, never the widest."""
    return next((mode for mode in PermissionMode if mode.value == text), PermissionMode.READ)


def choose_mode(
    wanted: PermissionMode, limits: tuple[PermissionMode, ...], expressible: frozenset[PermissionMode]
) -> ModeChoice:
    """What is wanted, capped by every limit, then the widest expressible mode that is not wider."""
    allowed = min(wanted, *limits) if limits else wanted
    mode = allowed if allowed in expressible else max((each for each in expressible if each <= allowed), default=None)
    if mode is None:
        return ModeChoice(wanted, None, ModeReason.INEXPRESSIBLE)
    if mode < allowed:
        return ModeChoice(wanted, mode, ModeReason.STRICTER)
    if mode < wanted:
        return ModeChoice(wanted, mode, ModeReason.CAPPED)
    return ModeChoice(wanted, mode, ModeReason.AS_WANTED)
