"""Capabilities: what a provider declares it can do. Decisions use these, never the provider's name."""

import re
from dataclasses import dataclass
from enum import StrEnum

from clew.kernel.permission import PermissionMode


class LandingField(StrEnum):
    """The facts an agent can report about the session it opened."""

    NATIVE_ID = "native-id"
    DIRECTORY = "directory"
    MODE = "mode"
    MODEL = "model"
    ACCOUNT = "account"
    TURNS = "turns"


@dataclass(frozen=True, slots=True)
class Capabilities:
    """Declared by the provider. Clew relies on nothing that is not declared.

    `missing_signals` and `rejection_signals` name the structured answers by which a probe reports that a session is
    gone, or that the agent refuses to open it. An error text that merely reads so does not count.
    `warm`: a process stays up between turns. Without one, an open session proves nothing.
    `steers`: the agent accepts messages during a running turn.
    `hears`: the program's own store shows whether a prompt was taken.
    `names_itself`: the agent names the session it opened before it gets a prompt. Otherwise Clew assumes the session
    that was asked for, and the verification says that this rests on the agent's word.
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
