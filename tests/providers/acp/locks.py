"""Where an ACP preset has its locks, for those who have to have theirs in the same place."""

from collections.abc import Mapping
from pathlib import Path

from clew.providers.acp.presets import PRESETS


def preset_locks(agent: str, home: Mapping[str, str]) -> Path:
    at = PRESETS[agent].locks_at
    if at is not None:
        return at(home)
    return next(Path(home[name]).resolve() / below for name, below in PRESETS[agent].locks if name in home)
