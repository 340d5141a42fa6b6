"""Presets: what is known, by experiment, of widely used agents. Others are named by their command line."""

import json
from collections.abc import Mapping
from pathlib import Path

from clew.kernel import LandingField, PermissionMode
from clew.programs.acp.agent import AS_ASKED, EDITING, EVERYTHING, READING, AcpAgent, ModeRule

READ, ASK, EDIT, FULL = PermissionMode

_UUID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_PARTS = ("agent", "command", "mode", "plugin", "skill", "tool")
"""What a project can add to OpenCode, each in a directory of that name or its plural."""
_OPENCODE_ASKS = json.dumps(
    {"*": "ask", **dict.fromkeys(("read", "glob", "grep", "list", "lsp", "todoread", "todowrite"), "allow")}
)
_NO_WAY_ROUND = {
    "claudeCode": {
        "options": {
            # After planning it does everything without asking: the adapter lets it bypass all permissions.
            "disallowedTools": ["EnterPlanMode", "ExitPlanMode"],
            "extraArgs": {"settings": '{"permissions":{"disableBypassPermissionsMode":"disable"}}'},
        }
    }
}
_ALWAYS_THERE = frozenset({LandingField.NATIVE_ID, LandingField.MODE, LandingField.DIRECTORY})


def _asking(mode: str) -> Mapping[PermissionMode, ModeRule]:
    """For an agent that asks before everything but reading in this mode of its own."""
    return {
        READ: ModeRule(mode, READING),
        ASK: ModeRule(mode, READING, asks=True),
        EDIT: ModeRule(mode, EDITING, asks=True),
        FULL: ModeRule(mode, EVERYTHING),
    }


def _opencode_locks(environment: Mapping[str, str]) -> Path:
    """Beside its database, where the provider opencode has them, too."""
    data = environment.get("XDG_DATA_HOME") or Path(environment.get("HOME", "/")) / ".local" / "share"
    # OPENCODE_DB may be relative to the data directory; joining leaves an absolute path as it is.
    database = (Path(data) / "opencode" / (environment.get("OPENCODE_DB") or "opencode.db")).resolve()
    return database.with_name(f"{database.name}.clew-locks")


PRESETS: Mapping[str, AcpAgent] = {
    "opencode": AcpAgent(
        name="opencode",
        command=("opencode", "acp"),
        # It asks nothing by default; with this it asks, and Clew's answers make the mode.
        environment={"OPENCODE_PERMISSION": _OPENCODE_ASKS},
        modes=AS_ASKED,
        # An unknown session gets -32603, as does every other error.
        missing=frozenset(),
        list_is_whole=True,
        change_model=True,
        # Every start unpacks a library of some megabytes there.
        scratch="BUN_TMPDIR",
        reports=_ALWAYS_THERE,
        id_shape=r"ses_[0-9A-Za-z]{20,40}",
        locks=(("XDG_DATA_HOME", ""), ("HOME", "")),
        locks_at=_opencode_locks,
        obeys=(
            "opencode.json",
            "opencode.jsonc",
            ".opencode/opencode.json*",
            *(f".opencode/{kind}{plural}/**/*" for kind in _PARTS for plural in ("", "s")),
        ),
        obeys_all_above=True,
        instead="opencode",
        plays_late=False,
        # If it is killed just when its model is asked, its history holds the prompt.
        keeps_first=True,
        hint="Install it with npm: opencode-ai.",
    ),
    "claude": AcpAgent(
        name="claude",
        command=("claude-code-acp",),
        meta=_NO_WAY_ROUND,
        modes=_asking("default"),
        missing=frozenset(),
        list_is_whole=True,
        change_model=True,
        id_shape=_UUID,
        locks=(("CLAUDE_CONFIG_DIR", "clew-locks"), ("HOME", ".claude/clew-locks")),
        obeys=(
            ".claude/settings.json",
            ".claude/settings.local.json",
            ".claude/agents/**/*",
            ".claude/commands/**/*",
            ".claude/skills/**/*",
        ),
        instead="claude",
        # It stores a prompt with the first answer to it: if it is killed before, its history lacks the prompt.
        plays_late=False,
        hint="Install it with npm: @zed-industries/claude-code-acp.",
    ),
    "codex": AcpAgent(
        name="codex",
        command=("codex-acp",),
        # In the first two its sandbox prevents writing; its requests are to leave the sandbox.
        modes={
            READ: ModeRule("read-only"),
            ASK: ModeRule("read-only", asks=True),
            EDIT: ModeRule("auto", EDITING, asks=True),
            FULL: ModeRule("full-access", EVERYTHING),
        },
        change_model=True,
        leaves_tools=True,
        # It writes before it answers, and does not end when its input is closed.
        flush=0.0,
        id_shape=_UUID,
        locks=(("CODEX_HOME", "clew-locks"), ("HOME", ".codex/clew-locks")),
        # They count if the user has trusted the project.
        obeys=(".codex/config.toml", ".codex/hooks.json", ".codex/rules/**/*", ".codex/agents/**/*"),
        instead="codex",
        plays_late=False,
        # If it is killed just when its model is asked, its history holds the prompt.
        keeps_first=True,
        hint="Install it with npm: @zed-industries/codex-acp.",
    ),
    "gemini": AcpAgent(
        name="gemini",
        command=("gemini", "--acp"),
        modes=_asking("default"),
        # An unknown session gets -32603, as does every other error.
        missing=frozenset(),
        # It also takes other names for sessions, such as the latest, or a number of its list.
        id_shape=_UUID,
        locks=(("HOME", ".gemini/clew-locks"),),
        obeys=(".gemini/settings.json", ".gemini/extensions/**/*"),
        hint="Install it with npm: @google/gemini-cli.",
    ),
    "qwen": AcpAgent(
        name="qwen",
        command=("qwen", "--acp"),
        modes=_asking("default"),
        # It answers for an unknown session with success and an empty history.
        list_is_whole=True,
        locks=(("HOME", ".qwen/clew-locks"),),
        obeys=(".qwen/settings.json", ".qwen/extensions/**/*"),
        hint="Install it with npm: @qwen-code/qwen-code.",
    ),
}
