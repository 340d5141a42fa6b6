"""Files that would widen a mode: rules of the home, and files of a project that the home trusts.

In a trusted project Codex obeys the project's own files: rules let commands out of the sandbox, servers are started,
and the sandbox is widened. An agent that may write to the project could widen its mode by them.
"""

import ast
import os
import re
import tomllib
from pathlib import Path

from clew.kernel import PermissionMode
from clew.programs.faults import Refused
from clew.programs.project_files import GIT, find_files, main_worktree
from clew.providers.codex.home import Home

_FILES = (".codex/config.toml", ".codex/hooks.json", ".codex/rules/**/*.rules", ".codex/agents/**/*")
# Settings of a project that widen nothing.
_HARMLESS = frozenset(
    {
        "model",
        "model_reasoning_effort",
        "model_reasoning_summary",
        "model_verbosity",
        "personality",
        "project_doc_fallback_filenames",
        "project_doc_max_bytes",
        "review_model",
    }
)


def check_mode(home: Home, mode: PermissionMode, directory: str) -> None:
    """Refuse a mode that Codex would not keep in this home and project.

    A file that the agent itself may write, as it may in its project, must not widen its mode. And in read, no rule of
    the home may let a command out of the sandbox without asking.
    """
    theirs = _widening(home, Path(directory)) if mode is not PermissionMode.FULL else None
    if theirs is not None:
        config = home.root / "config.toml"
        raise Refused(
            f"The mode {mode} cannot be kept: {theirs} counts, for the project is trusted in {config}.",
            "Take the trust back there, or remove the file, or choose the mode full.",
        )
    rules = _standing_rules(home) if mode is PermissionMode.READ else None
    if rules is not None:
        raise Refused(
            f"The mode read cannot be kept: {rules} allows commands to run outside of the sandbox.",
            "Remove the rules that allow, use another CODEX_HOME, or choose the mode ask, where they stand.",
        )


def _standing_rules(home: Home) -> Path | None:
    """A file of the home with rules that let commands out of the sandbox in every mode, without asking."""
    return next((file for file in sorted((home.root / "rules").glob("*.rules")) if allows(file)), None)


def _widening(home: Home, directory: Path) -> Path | None:
    """A file of the project that Codex obeys and that widens a mode, if there is one."""
    if not _is_trusted(home, directory):
        return None
    files = find_files(directory, _FILES, home.project_roots or GIT)
    return next((file for file in files if home.root not in file.parents and _widens(file)), None)


def _is_trusted(home: Home, directory: Path) -> bool:
    """By every name that Codex might look for: one too many only refuses a mode, one too few would widen it."""
    here = Path(os.path.realpath(directory))
    repository = main_worktree(directory)
    places = {here, *here.parents, *([repository] if repository is not None else [])}
    return not places.isdisjoint(home.trusted)


def _widens(file: Path) -> bool:
    match file.name, file.suffix:
        case _, ".rules":
            return allows(file)
        case "config.toml", _:
            try:
                return not tomllib.loads(file.read_text("utf-8")).keys() <= _HARMLESS
            except (OSError, ValueError):
                return True
        case _:
            return True


# ---------------------------------------------------------------- rules

_FUNCTION = "prefix_rule"
_ARGUMENTS = frozenset({"pattern", "decision", "justification", "match", "not_match"})
_DECISION = "decision"
# A rule that names no decision allows.
_STRICT = frozenset({"prompt", "forbidden"})
# Where Python and Starlark may read differently: escapes, line ends and control characters.
_READ_DIFFERENTLY = re.compile(r"[\\\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\ufeff]|\r(?!\n)")
_MOST = 1 << 20


def allows(file: Path) -> bool:
    """Whether a file of rules could let a command out of the sandbox.

    Rules are a program in Starlark. Only plain calls of one function with plain strings are taken for strict; anything
    else in the file, or a file that cannot be read, counts as allowing.
    """
    try:
        if not file.is_file():
            return False
        with file.open("rb") as opened:
            data = opened.read(_MOST + 1)
        text = data.decode("utf-8")
    except (OSError, ValueError):
        return True
    return len(data) > _MOST or _READ_DIFFERENTLY.search(text) is not None or not _is_strict(text)


def _is_strict(text: str) -> bool:
    try:
        return all(_is_strict_rule(statement) for statement in ast.parse(text).body)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False


def _is_strict_rule(statement: ast.stmt) -> bool:
    match statement:
        case ast.Expr(value=ast.Call(func=ast.Name(id=name), args=[], keywords=keywords)) if name == _FUNCTION:
            # A keyword without a name passes a whole dictionary.
            given = {each.arg: each.value for each in keywords if each.arg is not None}
            return (
                len(given) == len(keywords)
                and given.keys() <= _ARGUMENTS
                and all(map(_is_plain, given.values()))
                and _is_strict_decision(given.get(_DECISION))
            )
        case _:
            return False


def _is_plain(value: ast.expr) -> bool:
    match value:
        case ast.Constant(value=str()):
            return True
        case ast.List(elts=each):
            return all(map(_is_plain, each))
        case _:
            return False


def _is_strict_decision(value: ast.expr | None) -> bool:
    return isinstance(value, ast.Constant) and value.value in _STRICT
