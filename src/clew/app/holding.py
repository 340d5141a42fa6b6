"""Taking a data directory: made for its owner alone, and used by one server at a time."""

import fcntl
import json
import os
import secrets
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from clew.kernel import MachineId
from clew.server.datadir import CannotUse, DataDirectory, DataFault, told


class InUse(DataFault):
    code = "data:in-use"


def prepare(data: DataDirectory) -> None:
    """What agents say and are given lies here: nobody else reads it."""
    try:
        data.root.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = data.root.stat()
        if found.st_uid != os.geteuid():
            raise CannotUse(f"{data.root} belongs to another user.", "Choose a directory of your own with --data.")
        if found.st_mode & 0o077:
            data.root.chmod(0o700)
        for each in (data.workspaces, data.homes, data.state, data.logs):
            each.mkdir(mode=0o700, exist_ok=True)
    except OSError as fault:
        raise told(fault, data.root) from fault


@contextmanager
def held(data: DataDirectory) -> Iterator[None]:
    """The system lets go of it when the process ends, however it ends."""
    try:
        # Without a buffer: what a full disk did not take would be written once more when it is closed.
        file = os.fdopen(os.open(data.holder, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600), "r+b", buffering=0)
    except OSError as fault:
        raise told(fault, data.holder) from fault
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InUse(
                f"{data.root} is in use by {_holder(file.read().decode('utf-8', 'replace'))}{_where(data)}.",
                "Use that one, stop it first, or give this one a directory of its own with --data.",
            ) from None
        try:
            file.truncate()
            file.write(json.dumps({"pid": os.getpid(), "host": socket.gethostname(), "since": time.time()}).encode())
        except OSError as fault:
            raise told(fault, data.holder) from fault
        # Of one that could not take it away itself.
        data.address.unlink(missing_ok=True)
        yield


def machine_id(data: DataDirectory) -> MachineId:
    """Made once: what was done on this machine is found again by it."""
    try:
        said = data.machine.read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        said = f"mc_{secrets.token_hex(8)}"
        write_whole(data.machine, f"{said}\n")
    except (OSError, UnicodeDecodeError) as fault:
        raise CannotUse(
            f"{data.machine} cannot be read.", "Make it readable for you; its sessions are known by what is in it."
        ) from fault
    if not said:
        raise CannotUse(f"{data.machine} is empty.", "Restore it, or remove it: this is then another machine.")
    return MachineId(said)


@contextmanager
def announced(data: DataDirectory, address: str) -> Iterator[None]:
    """Whoever looks for the server finds it while this lasts."""
    write_whole(data.address, f"{address}\n")
    try:
        yield
    finally:
        data.address.unlink(missing_ok=True)


def write_whole(path: Path, text: str) -> None:
    """It is there in full or not at all."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        draft.rename(path)
    except OSError as fault:
        draft.unlink(missing_ok=True)
        raise told(fault, path) from fault


def _holder(said: str) -> str:
    try:
        told = json.loads(said)
        since = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(told["since"]))
        return f"process {told['pid']} on {told['host']} since {since}"
    except (ValueError, KeyError, TypeError):
        return "another server"


def _where(data: DataDirectory) -> str:
    try:
        return f", at {data.address.read_text(encoding='utf-8').strip()}"
    except (OSError, UnicodeDecodeError):
        return ""
