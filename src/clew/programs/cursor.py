"""Cursors: how a provider checks the ids in them, and what a probe says of one that leads to no session."""

import re
from dataclasses import dataclass

from clew.kernel import Cursor, NativeId, Probe, ProbeKind
from clew.ports.fault import Fault
from clew.programs.faults import Refused

VERSION = 1

MALFORMED = "malformed-id"
"""The signal of a probe for an id that can never lead to a session."""


class MalformedId(Refused):
    code = "program:malformed-id"


@dataclass(frozen=True, slots=True)
class CursorForm:
    """The cursors of one provider. `shape` is a regular expression for the ids of its sessions."""

    whose: str
    shape: str
    version: int = VERSION

    def cursor(self, id_: str) -> Cursor:
        return Cursor(self.version, NativeId(id_))

    def id_of(self, cursor: Cursor) -> NativeId:
        """The session's id. One of another shape is refused: a program would take it for a name, a title or a path."""
        if cursor.version != self.version:
            raise Refused(
                f"Cursors of {self.whose} have version {self.version}, not {cursor.version}.", "Use a newer Clew."
            )
        if re.fullmatch(self.shape, cursor.native_id) is None:
            raise MalformedId(f"{cursor.native_id[:80]!r} is not a session id of {self.whose}.", "Start a new session.")
        return cursor.native_id


def failed_probe(fault: Fault) -> Probe:
    """The answer of a probe that failed with this fault."""
    if isinstance(fault, MalformedId):
        return Probe(ProbeKind.REJECTED, signal=MALFORMED, detail=fault.words)
    return Probe(ProbeKind.UNREACHABLE, detail=str(fault))


def busy_probe() -> Probe:
    """The answer for a session that Clew itself has locked."""
    return Probe(ProbeKind.BUSY, holder="another session of Clew", detail="another session of Clew has it open")
