"""What Clew knows of one ACP agent beyond what it declares itself: data, so that a quirk needs no code."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from clew.kernel import LandingField, PermissionMode

READING = frozenset({"read", "search", "think"})
EDITING = READING | {"edit", "delete", "move"}
EVERYTHING = EDITING | {"execute", "fetch", "switch_mode", "other"}
"""Kinds of tools, as the protocol names them. A tool without a kind is `other`. A fetch can also send data out."""


@dataclass(frozen=True, slots=True)
class ModeRule:
    """How a mode of Clew is expressed. `id` is the agent's own mode to set; None leaves the current one.

    Requests for tools of the kinds in `allows` are approved. Those that change files must also stay in the directory,
    unless everything is allowed. Other requests go to a person if `asks`, and are denied otherwise.
    """

    id: str | None = None
    allows: frozenset[str] = frozenset()
    asks: bool = False


AS_ASKED: Mapping[PermissionMode, ModeRule] = {
    PermissionMode.READ: ModeRule(allows=READING),
    PermissionMode.ASK: ModeRule(allows=READING, asks=True),
    PermissionMode.EDIT: ModeRule(allows=EDITING, asks=True),
    PermissionMode.FULL: ModeRule(allows=EVERYTHING),
}
"""For an agent that asks before everything but reading: Clew's answers make the mode."""

UNBOUND: Mapping[PermissionMode, ModeRule] = {PermissionMode.FULL: ModeRule(allows=EVERYTHING)}
"""For an unknown agent: it may do anything without asking, which is the mode full."""


ANY_ID = r"\w[^\s\x00-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\ud800-\udfff]{0,255}"
"""For an agent whose ids are not known: visible characters, and neither an option nor a path upwards."""


@dataclass(frozen=True, slots=True)
class AcpAgent:
    name: str
    command: tuple[str, ...]
    modes: Mapping[PermissionMode, ModeRule] = field(default_factory=lambda: UNBOUND)
    missing: frozenset[int] = frozenset({-32002})
    """The error codes by which it says that it has no such session."""
    list_is_whole: bool = False
    """A session that is not on its list does not exist. If neither this nor the next is set, such a session is neither
    missing nor found: an agent may answer for an unknown session with success."""
    list_is_short: bool = False
    """A session that is not on its list may exist."""
    fork_into: bool = False
    change_model: bool = False
    leaves_tools: bool = False
    """It leaves a tool running when its turn is interrupted."""
    flush: float = 1.0
    """Seconds to write its store once its input is closed. An agent that ends by that takes only the time it needs."""
    scratch: str | None = None
    """The variable for the directory where it puts files that it never removes. It gets one that is removed with it."""
    reports: frozenset[LandingField] = frozenset({LandingField.NATIVE_ID, LandingField.MODE})
    id_shape: str = ANY_ID
    environment: Mapping[str, str] = field(default_factory=dict)
    meta: Mapping[str, Any] = field(default_factory=dict)
    """Sent as `_meta` whenever a session is opened."""
    locks: tuple[tuple[str, str], ...] = ()
    """Where Clew's locks are in the agent's store, so that providers which share the store share the locks: variables,
    of which the first that is set counts, each with a path below it. If empty, the home's name gives the place."""
    locks_at: Callable[[Mapping[str, str]], Path] | None = None
    """Finds the locks where `locks` cannot express it."""
    obeys: tuple[str, ...] = ()
    """Files of a project that can make it ask less. Looked for from the directory up to the top of its repository;
    outside of a repository only in the directory."""
    obeys_all_above: bool = False
    """Outside of a repository, files in all directories above count as well."""
    instead: str = ""
    """The provider that keeps its modes in spite of such files."""
    steers: str = ""
    """Its own method for prompts during a turn; the protocol has none."""
    plays_late: bool = True
    """It may go on to play back a loaded session after it has answered, against the protocol."""
    keeps_first: bool = False
    """It stores a prompt before it acts on it: a prompt that is not in its history was never taken."""
    takes_ids: str = ""
    """The name in `_meta` under which it takes and stores the id of a prompt."""
    apart: bool = False
    """It takes the instructions as a block of their own."""
    hint: str = "Install the agent, or name its command line."
