"""What is known of one ACP agent beyond what it says of itself: data, so that a quirk needs no code."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from clew.kernel import LandingField, PermissionMode

READING = frozenset({"read", "search", "think"})
EDITING = READING | {"edit", "delete", "move"}
EVERYTHING = EDITING | {"execute", "fetch", "switch_mode", "other"}
"""Kinds of tools, as the protocol names them. A tool of no kind counts as `other`. What fetches can also tell."""


@dataclass(frozen=True, slots=True)
class ModeRule:
    """How a mode is expressed. `id` is the agent's own mode to be set; None leaves the one it has.

    What it asks is answered yes for the kinds in `allows`, of those that change files only as far as they stay in the
    directory, unless everything is allowed. The rest goes to a person where `asks`, and is denied else.
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
"""For an agent that asks before everything that is not reading: the answers make the mode."""

UNBOUND: Mapping[PermissionMode, ModeRule] = {PermissionMode.FULL: ModeRule(allows=EVERYTHING)}
"""For an agent of which nothing is known: it may do without asking whatever it likes, and that is called full."""


ANY_ID = r"\w[^\s\x00-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\ud800-\udfff]{0,255}"
"""For an agent whose ids are not known: what can be seen, and is neither an option nor a way up."""


@dataclass(frozen=True, slots=True)
class AcpAgent:
    """`missing` are the error codes by which it says that it has no such session. `list_is_whole` tells that a session
    which is not on its list is not there, `list_is_short` that it may be there nevertheless; unless either is known, it
    is neither missing nor found, for an agent may answer for an unknown one with success. `leaves_tools` tells that it
    lets a tool run on when its turn is interrupted. `flush` are the seconds it gets to put its store in order once its
    input is closed; one that ends by that takes no longer than it needs. `scratch` is the variable that says where it
    puts what it does not remove; it gets a directory there that goes with it. `locks` says where in the agent's store
    Clew puts its own locks, so that all who share the one share the other: below which variable, the first that is set,
    and which path; `locks_at` finds them where that is not enough. Where nothing is known of the store, they are found
    by the home's name. `obeys` are files of a project by which the project may tell it not to ask, looked for from the
    directory up to its repository's top; outside of a repository in the directory, and where it `obeys_all_above` also
    above it. `instead` is the provider that keeps its modes there. `steers` is the method of its own by which it takes
    words within a turn; the protocol has none. `meta` is what it is told beside the protocol whenever a session is
    opened. `plays_late` is whether it may go on playing back a loaded session after it has answered, against the
    protocol. `keeps_first` tells that it writes a prompt into its store before it acts on it, so that one which its
    history does not hold was never taken. `takes_ids` is the name in `_meta` by which it takes the id of a prompt and
    keeps it, and `apart` tells that it wants the instructions apart from the prompt.
    """

    name: str
    command: tuple[str, ...]
    modes: Mapping[PermissionMode, ModeRule] = field(default_factory=lambda: UNBOUND)
    missing: frozenset[int] = frozenset({-32002})
    list_is_whole: bool = False
    list_is_short: bool = False
    fork_into: bool = False
    change_model: bool = False
    leaves_tools: bool = False
    flush: float = 1.0
    scratch: str | None = None
    reports: frozenset[LandingField] = frozenset({LandingField.NATIVE_ID, LandingField.MODE})
    id_shape: str = ANY_ID
    environment: Mapping[str, str] = field(default_factory=dict)
    meta: Mapping[str, Any] = field(default_factory=dict)
    locks: tuple[tuple[str, str], ...] = ()
    locks_at: Callable[[Mapping[str, str]], Path] | None = None
    obeys: tuple[str, ...] = ()
    obeys_all_above: bool = False
    instead: str = ""
    steers: str = ""
    plays_late: bool = True
    keeps_first: bool = False
    takes_ids: str = ""
    apart: bool = False
    hint: str = "Install the agent, or name its command line."
