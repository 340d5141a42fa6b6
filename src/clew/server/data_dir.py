"""The data directory: its layout, its token and the faults of its files, for the server and for commands.

The token grants full access to the server, so its file is readable by its owner only.
"""

import errno
import os
import re
import secrets
import stat
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


class DataDirectory:
    def __init__(self, root: Path) -> None:
        self.root = root
        self.database = root / "clew.db"
        self.token = root / "token"
        self.machine = root / "machine"
        """The id of this machine; its sessions are stored under it."""
        self.place = root / "place"
        """Every path under which this directory was used."""
        self.address = root / "address"
        """The URL of the running server. Exists while the server is ready."""
        self.holder = root / "holder"
        """Locked by the server that uses the directory."""
        self.workspaces = root / "workspaces"
        self.homes = root / "homes"
        self.guide = root / "guide"
        """The default home of guide agents."""
        self.state = root / "state"
        """State that providers need after a crash."""
        self.outbox = root / "outbox.db"
        self.logs = root / "logs"


_SHAPE = re.compile(r"[A-Za-z0-9_-]{32,128}")


class TokenFault(Fault):
    code = "server:token"


class NoToken(TokenFault):
    code = "server:no-token"


def read_token(path: Path) -> str:
    try:
        # The mode is checked on the open descriptor, so the file cannot be swapped in between.
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        raise NoToken(f"There is no token at {path}.", "Start the server with `clew up`, which creates it.") from None
    except OSError as fault:
        raise TokenFault(f"{path} cannot be read: {fault.strerror}.", "Make it readable for you.") from fault
    try:
        _check_file(path, os.fstat(file))
        token = os.read(file, 200).decode("ascii", "replace").strip()
    finally:
        os.close(file)
    if not _SHAPE.fullmatch(token):
        raise TokenFault(
            f"{path} does not hold a valid token.", "Remove the file and run `clew up`, which creates a new one."
        )
    return token


def make_token(path: Path) -> str:
    """Returns the existing token, or creates one. Two processes that create one at once get the same."""
    try:
        return read_token(path)
    except NoToken:
        pass
    draft = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    try:
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="ascii") as file:
            file.write(f"{secrets.token_urlsafe(32)}\n")
            file.flush()
            os.fsync(file.fileno())
        # link(), unlike rename(), fails if the file exists.
        os.link(draft, path)
    except FileExistsError:
        pass
    except OSError as fault:
        raise file_fault(fault, path) from fault
    finally:
        draft.unlink(missing_ok=True)
    return read_token(path)


def _check_file(path: Path, found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise TokenFault(f"{path} is not a regular file.", "Remove it and run `clew up`, which creates a new one.")
    if found.st_uid != os.geteuid():
        raise TokenFault(f"{path} belongs to another user.", "Use a data directory of your own with --data.")
    if found.st_mode & 0o077:
        mode = stat.S_IMODE(found.st_mode)
        raise TokenFault(
            f"{path} is readable by other users (mode {mode:04o}), who may have copied it.",
            "Remove it and restart `clew up`, which creates a new one; or `chmod 600` it, if nobody can have read it.",
        )
