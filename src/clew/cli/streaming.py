"""Live events of the server: read as they come, and taken up where they broke off when the server restarts."""

import time
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from http.client import HTTPException, HTTPResponse

from clew.cli.client import NoAnswer, NotRunning, Query, Refused, Server
from clew.cli.telling import warn

SILENCE = 60.0
"""The server says something at least every few seconds, so one that is silent this long is gone."""

PATIENCE = 60.0
"""How long a server may be away before nobody waits for it any more."""


@dataclass(frozen=True, slots=True)
class Sent:
    kind: str
    data: str


class Absence:
    """How long the server has been away. While it may come back, one waits; then its absence is the fault."""

    def __init__(self, patience: float = PATIENCE) -> None:
        self._patience = patience
        self._met = False
        self._since: float | None = None

    def over(self) -> None:
        if self._since is not None:
            warn("Clew is back.")
        self._met, self._since = True, None

    def wait(self, fault: Exception) -> None:
        """A server that was never there is not waited for, nor one that refuses what is asked."""
        refused = isinstance(fault, Refused) and fault.status < _ITS_OWN_FAULT
        if not self._met or refused:
            raise _told(fault)
        if self._since is None:
            self._since = time.monotonic()
            warn(f"The connection to Clew broke. Waiting up to {self._patience:g} seconds for it.")
        elif time.monotonic() - self._since > self._patience:
            raise _told(fault)
        time.sleep(_PAUSE)


_GONE = (OSError, HTTPException, NotRunning, NoAnswer, Refused)
_ITS_OWN_FAULT = 500
_PAUSE = 0.2


def _told(fault: Exception) -> Exception:
    return (
        NoAnswer(f"Clew does not answer: {fault}.", "Look at it with `clew doctor`.")
        if isinstance(fault, OSError | HTTPException)
        else fault
    )


def live(server: Server, query: Query, absence: Absence) -> Generator[Sent]:
    """Everything that is sent, without an end."""
    last: str | None = None
    while True:
        try:
            connection, answer = server.stream("/live", query, last, SILENCE)
            absence.over()
            try:
                for mark, sent in _events(answer):
                    last = mark or last
                    yield sent
            finally:
                connection.close()
            # It ended the stream in good order: it is going to stop.
            time.sleep(_PAUSE)
        except _GONE as fault:
            absence.wait(fault)


def look(server: Server, path: str, query: Query | None, absence: Absence) -> bytes:
    """An answer, also when the server restarts in between."""
    while True:
        try:
            said = server.get(path, query)
        except _GONE as fault:
            absence.wait(fault)
        else:
            absence.over()
            return said


def _events(answer: HTTPResponse) -> Iterator[tuple[str | None, Sent]]:
    """One by one, as the standard of event streams has it. The end of the answer is no end of the stream."""
    kind, mark, data = "", None, list[str]()
    while raw := answer.readline():
        line = raw.decode("utf-8", "replace").rstrip("\r\n")
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if not line:
            if data:
                yield mark, Sent(kind or "message", "\n".join(data))
            kind, data = "", []
        elif name == "event":
            kind = value
        elif name == "id":
            mark = value
        elif name == "data":
            data.append(value)
