"""Files that a mode protects: those outside of the directory, and configuration that could widen what comes next."""

import json
import os
from collections.abc import Iterator
from pathlib import Path, PurePath

from clew.kernel import Directory, PermissionMode
from clew.programs.acp.agent import AcpAgent
from clew.programs.acp.events import Tool
from clew.programs.faults import Refused
from clew.programs.project_files import find_files

# Configuration of git, agents, editors and shells. Writing there can run programs or widen later modes.
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
"""How many paths a tool of that kind has, if more than one."""


def stays_inside(tool: Tool, directory: Directory) -> bool:
    """Whether the request names every path that the tool writes, all in the directory and none of them guarded."""
    # Some agents name several files as one path, separated by commas.
    places = {piece for place in tool.places for piece in (place, *place.split(", "))}
    if len(places) < _ENDS.get(tool.kind, 1):
        return False
    try:
        home = Path(os.path.realpath(directory.path))
        guarded = list(_guarded_targets(home))
        return all(_is_free(each, Path(directory.path), home, guarded) for each in places)
    except (OSError, ValueError):
        return False


def _is_free(file: str, named: Path, home: Path, guarded: list[Path]) -> bool:
    """Checked both as named and with links resolved."""
    if not file or file.startswith("~"):
        return False
    spelled = PurePath(os.path.normpath(named / file))
    real = Path(os.path.realpath(named / file))
    if not real.is_relative_to(home) or real == home or any(real.is_relative_to(each) for each in guarded):
        return False
    inside = [*real.relative_to(home).parts]
    inside += next((spelled.relative_to(each).parts for each in (named, home) if spelled.is_relative_to(each)), ())
    # Some file systems ignore case.
    return GUARDED.isdisjoint(part.casefold() for part in inside)


def _guarded_targets(home: Path) -> Iterator[Path]:
    """Targets of guarded names that are links, and of a worktree's `.git` file."""
    for name in GUARDED:
        if (home / name).is_symlink():
            yield Path(os.path.realpath(home / name))
    if (home / ".git").is_file():
        said = (home / ".git").read_text("utf-8", "replace").strip()
        yield Path(os.path.realpath(home / said.removeprefix("gitdir:").strip()))


def must_not_widen(agent: AcpAgent, mode: PermissionMode, directory: Directory) -> None:
    """Refuse any mode but full where a file of the project can make the agent ask less than the mode demands."""
    if mode is PermissionMode.FULL:
        return
    file = next(find_files(Path(directory.path), agent.obeys, alone=not agent.obeys_all_above), None)
    if file is not None:
        other = f", or use the provider {agent.instead}" if agent.instead else ""
        raise Refused(
            f"The mode {mode} cannot be kept: {file} of the project can make {agent.name} act without asking.",
            f"Remove the file, or choose the mode full{other}.",
        )


def would_widen(agent: AcpAgent, tool: Tool) -> bool:
    """Whether a tool writes such a file, or may: only full lets the agent do that without asking a person."""
    names = {PurePath(pattern).parts[0] for pattern in agent.obeys}
    if not names:
        return False
    if not tool.files:
        said = json.dumps(tool.said, default=str)
        return any(name in said for name in names)
    return any(not names.isdisjoint(parts) for file in tool.files for parts in _parts(file))


def _parts(file: str) -> tuple[tuple[str, ...], ...]:
    """As named, and with links resolved."""
    try:
        return PurePath(file).parts, PurePath(os.path.realpath(file)).parts
    except (OSError, ValueError):
        return (PurePath(file).parts,)
