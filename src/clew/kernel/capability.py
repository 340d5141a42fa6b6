"""What a provider declares it can do. The decision uses this, and never a provider's name."""

import re
from dataclasses import dataclass
from enum import StrEnum

from clew.kernel.permission import PermissionMode


class LandingField(StrEnum):
    """What an agent can say of the session it opened."""

    NATIVE_ID = "native-id"
    DIRECTORY = "directory"
    MODE = "mode"
    MODEL = "model"
    ACCOUNT = "account"
    TURNS = "turns"


@dataclass(frozen=True, slots=True)
class Capabilities:
    """Declared by the provider; what is not declared is not relied on.

    `missing_signals` and `rejection_signals` name the structured answers by which a probe may say
    that a session is gone, or that the agent refuses to open it. A text that merely reads so is none.
    `warm` is whether something of it runs between turns: where nothing does, its being open proves nothing.
    `steers` is whether it takes words within a turn that is going. `hears` is whether the program's own store tells
    if a prompt was taken. `names_itself` is whether it names the session it has opened before it is told anything; one
    that does not is believed to be in the session it was asked for, and the landing says that this is on its word.
    """

    resume: bool = False
    resume_elsewhere: bool = False
    fork: bool = False
    fork_into: bool = False
    archive: bool = False
    restore_keeps_id: bool = False
    choose_id: bool = False
    reapply_mode: bool = False
    change_model: bool = False
    warm: bool = True
    steers: bool = False
    hears: bool = False
    names_itself: bool = True
    modes: frozenset[PermissionMode] = frozenset({PermissionMode.READ})
    cursor_versions: frozenset[int] = frozenset({1})
    archive_formats: frozenset[str] = frozenset()
    id_shape: str | None = None
    missing_signals: frozenset[str] = frozenset()
    rejection_signals: frozenset[str] = frozenset()
    reports: frozenset[LandingField] = frozenset({LandingField.NATIVE_ID, LandingField.DIRECTORY})

    def __post_init__(self) -> None:
        try:
            re.compile(self.id_shape or "")
        except (re.error, OverflowError) as fault:
            raise ValueError(f"the id shape {self.id_shape!r} is no regular expression: {fault}") from fault
