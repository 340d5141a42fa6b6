"""The data directory of a running server: private to its owner, locked by one server, refused after it was moved."""

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
from clew.server.data_dir import CannotUse, DataDirectory, DataFault, file_fault


class InUse(DataFault):
    code = "data:in-use"


class Moved(DataFault):
    code = "data:moved"


def create_directories(data: DataDirectory) -> None:
    """Mode 0700: prompts and replies are stored here, so other users get no access."""
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
        raise file_fault(fault, data.root) from fault


@contextmanager
def lock_directory(data: DataDirectory) -> Iterator[None]:
    """flock: the kernel releases it when the process ends, also after SIGKILL."""
    try:
        # Unbuffered: after a write that failed on a full disk, a buffer would be written again on close.
        file = os.fdopen(os.open(data.holder, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600), "r+b", buffering=0)
    except OSError as fault:
        raise file_fault(fault, data.holder) from fault
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = _describe_holder(file.read().decode("utf-8", "replace"))
            raise InUse(
                f"{data.root} is in use by {holder}{_running_at(data)}.",
                "Use that server, stop it, or choose another directory with --data.",
            ) from None
        try:
            file.truncate()
            file.write(json.dumps({"pid": os.getpid(), "host": socket.gethostname(), "since": time.time()}).encode())
        except OSError as fault:
            raise file_fault(fault, data.holder) from fault
        # A killed server could not remove its address file.
        data.address.unlink(missing_ok=True)
        yield


def machine_id(data: DataDirectory) -> MachineId:
    """Generated once. Sessions and runtimes of this machine are found again by it."""
    try:
        text = data.machine.read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        text = f"mc_{secrets.token_hex(8)}"
        _write_atomically(data.machine, f"{text}\n")
    except (OSError, UnicodeDecodeError) as fault:
        raise CannotUse(
            f"{data.machine} cannot be read.",
            "Make the file readable for you; it holds the id under which this machine's sessions are stored.",
        ) from fault
    if not text:
        raise CannotUse(
            f"{data.machine} is empty.", "Restore the file, or remove it; this then counts as another machine."
        )
    return MachineId(text)


@contextmanager
def publish_address(data: DataDirectory, address: str) -> Iterator[None]:
    """Commands find the running server by this file."""
    _write_atomically(data.address, f"{address}\n")
    try:
        yield
    finally:
        data.address.unlink(missing_ok=True)


def check_location(data: DataDirectory) -> None:
    """Homes and worktrees are stored by absolute path, so every path under which the directory was ever used must
    still lead to it."""
    known, here = _known_paths(data), os.path.realpath(data.root)
    for path in known:
        if os.path.realpath(path) != here:
            raise Moved(
                f"This data directory was at {path} and is now at {data.root}; "
                "homes and worktrees in it are recorded under their old paths.",
                f"Move it back, create a symbolic link from {path} to {here}, or start a new one with --data.",
            )
    paths = list(dict.fromkeys((*known, str(data.root), here)))
    if paths != known:
        _write_atomically(data.place, f"{json.dumps(paths)}\n")


def _known_paths(data: DataDirectory) -> list[str]:
    try:
        paths = json.loads(data.place.read_bytes())
    except FileNotFoundError:
        return []
    except OSError as fault:
        raise CannotUse(f"{data.place} cannot be read: {fault.strerror}.", "Make it readable for you.") from fault
    except ValueError:
        paths = None
    if not isinstance(paths, list) or not all(isinstance(path, str) and "\0" not in path for path in paths):
        raise CannotUse(
            f"{data.place} does not hold a list of paths.", "If the directory was not moved, remove that file."
        )
    return paths


def _write_atomically(path: Path, text: str) -> None:
    """fsync, then rename: after a crash the file is complete or absent."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        draft.rename(path)
    except OSError as fault:
        draft.unlink(missing_ok=True)
        raise file_fault(fault, path) from fault


def _describe_holder(text: str) -> str:
    try:
        holder = json.loads(text)
        since = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(holder["since"]))
        return f"process {holder['pid']} on {holder['host']} since {since}"
    except (ValueError, KeyError, TypeError):
        return "another server"


def _running_at(data: DataDirectory) -> str:
    try:
        return f", at {data.address.read_text(encoding='utf-8').strip()}"
    except (OSError, UnicodeDecodeError):
        return ""
