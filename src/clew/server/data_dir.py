"""The layout of the data directory, for the server and for commands, and the faults of its files."""

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


def file_fault(fault: OSError, path: Path) -> DataFault:
    if fault.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return DiskFull(f"The disk of {path} is full.", "Free some space, or choose another directory with --data.")
    return CannotUse(f"{path} cannot be used: {fault.strerror}.", "Choose a directory you can write to with --data.")


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
        """The id of this machine; its sessions are stored under it."""
        return self.root / "machine"

    @property
    def place(self) -> Path:
        """Every path under which this directory was used."""
        return self.root / "place"

    @property
    def address(self) -> Path:
        """The URL of the running server. Exists while the server is ready."""
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
        """The default home of guide agents."""
        return self.root / "guide"

    @property
    def state(self) -> Path:
        """State that providers need after a crash."""
        return self.root / "state"

    @property
    def outbox(self) -> Path:
        return self.root / "outbox.db"

    @property
    def logs(self) -> Path:
        return self.root / "logs"
