"""Where the guide keeps its sessions."""

import os
from collections.abc import Mapping
from pathlib import Path

VARIABLE = "GUIDE_HOME"
HOMES = frozenset({VARIABLE, "XDG_DATA_HOME", "HOME"})
"""The variables that say where they are."""


def home_of(environment: Mapping[str, str] = os.environ) -> Path:
    named = environment.get(VARIABLE)
    if named:
        return Path(named)
    shared = environment.get("XDG_DATA_HOME") or str(Path(environment.get("HOME", "/")) / ".local" / "share")
    return Path(shared) / "clew" / "guide"
