"""What the four modes mean for an agent, provider by provider. docs/providers.md has the whole of it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from clew.kernel import PermissionMode, choose_mode

READ, ASK, EDIT, FULL = PermissionMode.READ, PermissionMode.ASK, PermissionMode.EDIT, PermissionMode.FULL

_ANY: Mapping[PermissionMode, str] = {
    READ: "Reads, and changes nothing. What it would have to ask for is denied.",
    ASK: "Reads. A person answers before it changes anything or runs a command.",
    EDIT: "Changes files in its directory. A person answers the rest.",
    FULL: "Everything, and nobody is asked.",
}
_OF: Mapping[str, Mapping[PermissionMode, str]] = {
    "claude": {
        READ: "Reads in its directory and runs commands that it knows to change nothing. Everything else is denied.",
        ASK: "Reads. Asks before everything else, unless your own settings of Claude Code allow it.",
        EDIT: "As ask, but changes files in its directory without asking, also by simple commands such as mv or rm.",
        FULL: "Everything. Only what could destroy the system is still asked.",
    },
    "codex": {
        READ: "Works in its read-only sandbox; nothing is asked.",
        ASK: "Works in its read-only sandbox; a person answers what is to leave it.",
        EDIT: "Writes in its directory and in temporary ones, in its sandbox; a person answers the rest.",
        FULL: "No sandbox, and nothing is asked.",
    },
    "opencode": {
        READ: "Reads and searches files and asks questions. Every other tool and every subagent is denied.",
        ASK: "Reads. Asks before commands, edits, the web and everything else.",
        EDIT: "As ask, and writes files in its directory. Asks before configuration of OpenCode and git.",
        FULL: "Everything without asking, also subagents.",
    },
    "guide": {
        READ: "Reads.",
        ASK: "Asks before every command and file.",
        EDIT: "Writes files in its directory; asks before commands.",
        FULL: "Everything, and nobody is asked.",
    },
    "acp": {
        READ: "Requests for anything but reading are denied, where the agent asks.",
        ASK: "A person answers its requests, where the agent asks.",
        EDIT: "Edits that stay in its directory are approved; a person answers the rest.",
        FULL: "Every request is approved. The only mode of an agent without a preset, unless its options limit it.",
    },
    "command": {
        READ: "As its option mode.read says.",
        ASK: "As its option mode.ask says.",
        EDIT: "As its option mode.edit says.",
        FULL: "Everything the program does. The only mode, unless its options say how it is limited.",
    },
}


@dataclass(frozen=True, slots=True)
class Meaning:
    """`instead`: the mode that is used where the program cannot be limited to this one, or empty. `none`: there is no
    stricter one either, so that runs would be held."""

    mode: str
    words: str
    instead: str = ""
    none: bool = False


def meanings(provider: str, expressible: Iterable[PermissionMode] = ()) -> tuple[Meaning, ...]:
    """Without `expressible`, nothing is said of what the program can be limited to."""
    words, known = _OF.get(provider, _ANY), frozenset(expressible)
    return tuple(_meaning(mode, words[mode], known) for mode in (READ, ASK, EDIT, FULL))


def _meaning(mode: PermissionMode, words: str, known: frozenset[PermissionMode]) -> Meaning:
    if not known:
        return Meaning(mode.value, words)
    used = choose_mode(mode, (), known).mode
    if used is None:
        return Meaning(mode.value, words, none=True)
    return Meaning(mode.value, words, "" if used is mode else used.value)
