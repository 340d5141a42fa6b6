"""The codec: one JSON form for every message between server and daemon, and back.

A message carries its kind and the codec's version. A reader refuses an unknown field, with the place and the reason:
an ignored field may be the one that matters. A plan travels as the situation it was decided from, and is decided again
on arrival.
"""

import json
from collections.abc import Mapping
from typing import TypeVar

from clew.kernel import RecordError, value_from_record, value_to_record
from clew.ports.logins import Logins
from clew.ports.provider import FoundSession
from clew.ports.work import Committed, Diff, DiffWanted, Merged, Proposed, Work
from clew.ports.workspaces import Cleaned, Listed, SourceFound
from clew.protocol.control import (
    Claimed,
    Expired,
    FileContent,
    FileWanted,
    GoOnRequest,
    Held,
    OrphansRequest,
    Registration,
    Renewed,
    RenewRequest,
)
from clew.protocol.machine import AgentProgram, Looked, Tried, UnreadLetter
from clew.protocol.orders import ClaimRequest, Order
from clew.protocol.reports import Finish, Finished, Report, Reported

VERSION = 1

MESSAGES: Mapping[str, type] = {
    kind.__name__: kind
    for kind in (
        AgentProgram,
        ClaimRequest,
        Claimed,
        Cleaned,
        Committed,
        Diff,
        DiffWanted,
        Expired,
        FileContent,
        FileWanted,
        Finish,
        Finished,
        FoundSession,
        GoOnRequest,
        Held,
        Listed,
        Logins,
        Looked,
        Merged,
        Order,
        OrphansRequest,
        Proposed,
        Registration,
        RenewRequest,
        Renewed,
        Report,
        Reported,
        SourceFound,
        Tried,
        UnreadLetter,
        Work,
    )
}
"""Every value that `ControlPlane` and `Machine` pass, by its name in the message."""

_T = TypeVar("_T")


def encode(message: object) -> str:
    kind = type(message)
    if MESSAGES.get(kind.__name__) is not kind:
        raise TypeError(f"{kind.__name__} is not a message between server and daemon")
    # ASCII, so that a lone surrogate in an agent's output survives.
    return json.dumps({"v": VERSION, "is": kind.__name__, "message": value_to_record(kind, message)}, ensure_ascii=True)


def decode(text: str, kind: type[_T]) -> _T:
    """Raises `RecordError`, a ValueError, if the text is not such a message."""
    try:
        said = json.loads(text)
    except ValueError as fault:
        raise RecordError(f"it is not JSON: {fault}") from fault
    if not isinstance(said, dict) or said.keys() != {"v", "is", "message"}:
        raise RecordError("it is not a message: it has to say v, is and message, and nothing else")
    if type(said["v"]) is not int or said["v"] != VERSION:
        raise RecordError(f"it has version {said['v']!r}; this program reads version {VERSION}")
    if said["is"] != kind.__name__:
        raise RecordError(f"it is {said['is']!r}, and {kind.__name__} was expected")
    return value_from_record(kind, said["message"])
