"""Trust: in a project that its person has told Codex to trust, files of the project count.

Rules there let commands out of the sandbox, servers are started and the sandbox is widened: whoever may write to the
project would have more than its mode.
"""

import os
import tomllib
from pathlib import Path

from clew.programs.project_files import GIT, find_files, main_worktree
from clew.providers.codex.home import Home
from clew.providers.codex.rules import allows

_FILES = (".codex/config.toml", ".codex/hooks.json", ".codex/rules/**/*.rules", ".codex/agents/**/*")
# What a project may say without giving anything away.
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


def widening(home: Home, directory: Path) -> Path | None:
    """A file of the project that counts and gives more than a mode does, if there is one."""
    if not _is_trusted(home, directory):
        return None
    files = find_files(directory, _FILES, home.project_roots or GIT)
    return next((file for file in files if home.root not in file.parents and _widens(file)), None)


def _is_trusted(home: Home, directory: Path) -> bool:
    """By any name that Codex might look for; one more than it does costs a question, one less would cost more."""
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
