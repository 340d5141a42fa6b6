"""The data directory: what lies where, for the server and for commands that look for one; and what is wrong with it."""

import errno
from dataclasses import dataclass
from pathlib import Path

from clew.ports.fault import Fault


class DataFault(Fault):
    code = "data"


class CannotUse(DataFault):
    code = "data:cannot-use"


class DiskFull(DataFault):
    code = "data:disk-full"


def told(fault: OSError, path: Path) -> DataFault:
    """What the system says of a file there, whichever it is."""
    if fault.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return DiskFull(f"The disk of {path} is full.", "Free some space, or choose another directory with --data.")
    return CannotUse(
        f"{path} cannot be used: {fault.strerror}.", "Choose a directory that you may write to with --data."
    )


@dataclass(frozen=True, slots=True)
class DataDirectory:
    root: Path

    @property
    def database(self) -> Path:
        return self.root / "clew.db"

    @property
    def token(self) -> Path:
        return self.root / "token"

    @property
    def machine(self) -> Path:
        """The id of this machine: made once, and what its sessions are found by again."""
        return self.root / "machine"

    @property
    def place(self) -> Path:
        """The paths under which this directory was used."""
        return self.root / "place"

    @property
    def address(self) -> Path:
        """Where the running server is; there while it is ready."""
        return self.root / "address"

    @property
    def holder(self) -> Path:
        """Locked by the server that uses the directory."""
        return self.root / "holder"

    @property
    def workspaces(self) -> Path:
        return self.root / "workspaces"

    @property
    def homes(self) -> Path:
        return self.root / "homes"

    @property
    def guide(self) -> Path:
        """The sessions of guide agents that name no other home."""
        return self.root / "guide"

    @property
    def state(self) -> Path:
        """What providers must know after a crash."""
        return self.root / "state"

    @property
    def outbox(self) -> Path:
        return self.root / "outbox.db"

    @property
    def logs(self) -> Path:
        return self.root / "logs"
