"""The token: whoever has it may use the server. It lies in a file that its owner alone can read."""

import os
import re
import secrets
import stat
from pathlib import Path

from clew.ports.fault import Fault
from clew.server.datadir import told

_SHAPE = re.compile(r"[A-Za-z0-9_-]{32,128}")


class TokenFault(Fault):
    code = "server:token"


class NoToken(TokenFault):
    code = "server:no-token"


def read_token(path: Path) -> str:
    try:
        # Looked at as it was opened, so that it cannot be another file by then.
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        raise NoToken(f"There is no token at {path}.", "Start the server once with `clew up`.") from None
    except OSError as fault:
        raise TokenFault(f"{path} cannot be read: {fault.strerror}.", "Make it readable for you.") from fault
    try:
        _check(path, os.fstat(file))
        token = os.read(file, 200).decode("ascii", "replace").strip()
    finally:
        os.close(file)
    if not _SHAPE.fullmatch(token):
        raise TokenFault(f"{path} holds no token.", "Remove the file and start `clew up`: it makes another.")
    return token


def make_token(path: Path) -> str:
    """The token that is there, or a new one. Of two that make one at once both get the same."""
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
        # A link, unlike a rename, replaces nobody's.
        os.link(draft, path)
    except FileExistsError:
        pass
    except OSError as fault:
        raise told(fault, path) from fault
    finally:
        draft.unlink(missing_ok=True)
    return read_token(path)


def _check(path: Path, found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise TokenFault(f"{path} is no file.", "Remove it and start `clew up`: it makes another.")
    if found.st_uid != os.geteuid():
        raise TokenFault(f"{path} belongs to another user.", "Use a data directory of your own, with --data.")
    if found.st_mode & 0o077:
        mode = stat.S_IMODE(found.st_mode)
        raise TokenFault(
            f"{path} can be read by others (mode {mode:04o}), who may have used it.",
            "Remove it and start `clew up` again: it makes another. Or `chmod 600` it, if you know that nobody did.",
        )
