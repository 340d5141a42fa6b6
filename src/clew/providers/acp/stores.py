"""Where an agent's own store is, for those that take more than one variable to say."""

from collections.abc import Mapping
from pathlib import Path


def opencode_locks(environment: Mapping[str, str]) -> Path:
    """Beside its database, where the provider of OpenCode itself has them."""
    data = environment.get("XDG_DATA_HOME") or Path(environment.get("HOME", "/")) / ".local" / "share"
    # One that is not absolute is beneath its data; joining leaves one that is as it is.
    database = (Path(data) / "opencode" / (environment.get("OPENCODE_DB") or "opencode.db")).resolve()
    return database.with_name(f"{database.name}.clew-locks")
