"""What an edit reaches: approved unasked is only what stays in the directory and clear of what others are told by."""

import json
import os
from collections.abc import Iterator
from pathlib import Path, PurePath

from clew.kernel import Directory, PermissionMode
from clew.programs.acp.agent import AcpAgent
from clew.programs.acp.tool_call import Tool
from clew.programs.faults import Refused
from clew.programs.project_files import find_files

# Whoever writes these has programs run, or widens what comes next: git, agents, editors and shells are told by them.
GUARDED = frozenset(
    {
        ".git",
        ".gitconfig",
        ".gitmodules",
        ".claude",
        ".claude.json",
        ".mcp.json",
        ".codex",
        ".opencode",
        "opencode.json",
        "opencode.jsonc",
        "tui.json",
        "tui.jsonc",
        ".gemini",
        ".qwen",
        ".vscode",
        ".idea",
        ".bashrc",
        ".bash_profile",
        ".profile",
        ".zshrc",
        ".zprofile",
        ".ripgreprc",
    }
)
_ENDS = {"move": 2}
"""How many places a tool of that kind has; of every other it is one."""


def stays_inside(tool: Tool, directory: Directory) -> bool:
    """Whether it is told where the tool writes, and every place is in the directory and guarded by nothing."""
    # Some name many files as one, with commas between them.
    places = {piece for place in tool.places for piece in (place, *place.split(", "))}
    if len(places) < _ENDS.get(tool.kind, 1):
        return False
    try:
        home = Path(os.path.realpath(directory.path))
        guarded = list(_led_to(home))
        return all(_is_free(each, Path(directory.path), home, guarded) for each in places)
    except (OSError, ValueError):
        return False


def _is_free(file: str, named: Path, home: Path, guarded: list[Path]) -> bool:
    """As it is named, and where links lead."""
    if not file or file.startswith("~"):
        return False
    spelled = PurePath(os.path.normpath(named / file))
    real = Path(os.path.realpath(named / file))
    if not real.is_relative_to(home) or real == home or any(real.is_relative_to(each) for each in guarded):
        return False
    inside = [*real.relative_to(home).parts]
    inside += next((spelled.relative_to(each).parts for each in (named, home) if spelled.is_relative_to(each)), ())
    # Some file systems take either case for the same.
    return GUARDED.isdisjoint(part.casefold() for part in inside)


def _led_to(home: Path) -> Iterator[Path]:
    """Where guarded names lead that are links, or that say where git keeps a worktree."""
    for name in GUARDED:
        if (home / name).is_symlink():
            yield Path(os.path.realpath(home / name))
    if (home / ".git").is_file():
        said = (home / ".git").read_text("utf-8", "replace").strip()
        yield Path(os.path.realpath(home / said.removeprefix("gitdir:").strip()))


def must_not_widen(agent: AcpAgent, mode: PermissionMode, directory: Directory) -> None:
    if mode is PermissionMode.FULL:
        return
    file = next(find_files(Path(directory.path), agent.obeys, alone=not agent.obeys_all_above), None)
    if file is not None:
        other = f", or use the provider {agent.instead}" if agent.instead else ""
        raise Refused(
            f"The mode {mode} cannot be kept: by {file} the project may tell {agent.name} not to ask.",
            f"Remove the file, or choose the mode full{other}.",
        )


def would_widen(agent: AcpAgent, tool: Tool) -> bool:
    """Whether a tool is about such a file, or may be: in no mode but full that is the agent's own to decide."""
    names = {PurePath(pattern).parts[0] for pattern in agent.obeys}
    if not names:
        return False
    if not tool.files:
        told = json.dumps(tool.said, default=str)
        return any(name in told for name in names)
    return any(not names.isdisjoint(parts) for file in tool.files for parts in _parts(file))


def _parts(file: str) -> tuple[tuple[str, ...], ...]:
    """As it is named, and where links lead."""
    try:
        return PurePath(file).parts, PurePath(os.path.realpath(file)).parts
    except (OSError, ValueError):
        return (PurePath(file).parts,)
