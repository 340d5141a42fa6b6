"""The errors of workspaces, and the messages of git and the system in words for people, with a remedy."""

import errno
import re

from clew.ports.fault import Fault


class WorkspaceFault(Fault):
    code = "workspace"


class GitMissing(WorkspaceFault):
    code = "git:missing"


class GitTooOld(WorkspaceFault):
    code = "git:too-old"


class GitTooSlow(WorkspaceFault):
    code = "git:too-slow"


class GitRefused(WorkspaceFault):
    code = "git:refused"


class CannotMake(WorkspaceFault):
    code = "workspace:cannot-make"


class StillBusy(WorkspaceFault):
    code = "workspace:busy"


class NoWorktree(WorkspaceFault):
    code = "workspace:none"


class NoSuchRunHere(WorkspaceFault):
    code = "workspace:no-such-run"


class SourceFault(WorkspaceFault):
    code = "source"


class SourceMissing(SourceFault):
    code = "source:missing"


class SourceUnreachable(SourceFault):
    code = "source:unreachable"


class NotARepository(SourceFault):
    code = "source:not-a-repository"


class BareRepository(SourceFault):
    code = "source:bare"


class EmptyRepository(SourceFault):
    code = "source:empty"


class NoSuchBase(SourceFault):
    code = "source:no-such-base"


class BelowARepository(SourceFault):
    code = "source:subdirectory"


class LinkedWorktree(SourceFault):
    code = "source:worktree"


class ForeignOwner(SourceFault):
    code = "source:owner"


_ADDRESS_SECRET = re.compile(r"(://)[^/@\s]+@")

# In this order: the first pattern that matches git's message gives the words.
_KNOWN: tuple[tuple[re.Pattern[str], str, str], ...] = (
    (
        re.compile(r"detected dubious ownership in repository at '(?P<path>.*?)'", re.DOTALL),
        "git refuses {path}, because it belongs to another user (dubious ownership).",
        "Run Clew as its owner, or allow it: git config --global --add safe.directory {path}",
    ),
    (
        re.compile(r"'(?P<branch>[^']*)' is already (?:checked out|used by worktree) at '(?P<path>.*?)'", re.DOTALL),
        "branch {branch} is checked out at {path}.",
        "Check out another branch there.",
    ),
    (
        re.compile(
            r"'refs/heads/(?P<there>[^']*)' exists; cannot create (?:reference )?'refs/heads/(?P<wanted>[^']*)'"
        ),
        "branch {wanted} cannot exist beside the branch {there}, because git stores branches as directories.",
        "Rename the branch {there}.",
    ),
    (
        re.compile(r"(?:No space left on device|Disk quota exceeded|File too large)"),
        "the disk is full.",
        "Free some space.",
    ),
    (re.compile(r"File name too long"), "its name is too long for this disk.", "Choose a shorter root."),
    (
        re.compile(r"Read-only file system"),
        "the disk is read-only.",
        "Make it writable, or choose another root.",
    ),
    (
        re.compile(r"(?:could not read Username|Authentication failed|Permission denied \(publickey)"),
        "the address asks for a login, and Clew cannot enter one.",
        "Set up a credential helper or an SSH key for Clew's user.",
    ),
    (
        re.compile(r"'(?P<path>[^'\n]+)': Permission denied"),
        "Clew's user may not write {path}.",
        "Give it write permission.",
    ),
    (
        re.compile(r"(?:error|fatal): (?P<line>[^\n]*): Permission denied"),
        "Clew's user may not do it ({line}).",
        "Give it the right to.",
    ),
    (
        re.compile(r"unable to write file (?P<path>[^\n]+)"),
        "git could not write {path}; most likely the disk is full.",
        "Free some space.",
    ),
    (
        re.compile(r"(?:does not appear to be a git repository|repository '[^']*' (?:does not exist|not found))"),
        "there is no git repository at the address.",
        "Check the address.",
    ),
    (
        re.compile(
            r"(?:Could not resolve host|unable to access|Could not read from remote|Connection (?:refused|timed))"
        ),
        "the address cannot be reached.",
        "Check the address and the network.",
    ),
)


def explain_git(said: str, otherwise: str) -> tuple[str, str]:
    """Words and remedy for git's error output."""
    for pattern, words, remedy in _KNOWN:
        found = pattern.search(said)
        if found is not None:
            parts = found.groupdict()
            return words.format(**parts), remedy.format(**parts)
    lines = [line for line in said.splitlines() if line.startswith(("fatal:", "error:"))] or said.splitlines()
    last = re.sub(r"^(?:fatal|error): ", "", lines[-1]) if lines else otherwise
    return f"git says: {without_credentials(last)}", "Fix that, then wake the agent again."


def explain_os_error(fault: OSError) -> tuple[str, str]:
    where = "" if fault.filename is None else f" ({fault.filename!s})"
    match fault.errno:
        case errno.ENOSPC | errno.EDQUOT | errno.EFBIG:
            return "the disk is full.", "Free some space."
        case errno.EACCES | errno.EPERM:
            return f"Clew's user may not write or read there{where}.", "Give it the right to."
        case errno.EROFS:
            return f"the disk is read-only{where}.", "Make it writable, or choose another root."
        case errno.ENAMETOOLONG:
            return "its name is too long for this disk.", "Choose a shorter root."
        case errno.ENOTDIR | errno.EEXIST:
            return f"a file is in the way{where}.", "Move it away."
        case errno.ELOOP:
            return f"links lead in a circle{where}.", "Remove one of them."
        case _:
            return f"{fault.strerror or fault}{where}.", "Fix that, then wake the agent again."


def without_credentials(text: str) -> str:
    """The text without the user and password of an address in it."""
    return _ADDRESS_SECRET.sub(r"\1", text)
