"""What an edit reaches: approved unasked is only what stays in the directory and clear of what others are told by."""

import os
from collections.abc import Iterator
from pathlib import Path, PurePath

from clew.kernel import Directory
from clew.programs.acp.tool import Tool

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
