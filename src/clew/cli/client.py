"""The HTTP client: finds the running server by its data directory. Every call has a deadline.

It uses the standard library, which loads in a third of httpx2's time; most commands make one call.
"""

import json
from collections.abc import Mapping
from contextlib import suppress
from http.client import HTTPConnection, HTTPException, HTTPResponse
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from clew.cli.input import DEFAULT_DATA, BadText, NotUtf8
from clew.ports.fault import Fault
from clew.server.data_dir import DataDirectory, read_token

DEADLINE = 30.0
"""Seconds the server may take to answer. It is on the same machine."""

NOT_FOUND = 404

_BYTES = "application/octet-stream"
_LONGEST_NAME = 240
_SHOWN = 60

Query = Mapping[str, str | int | list[str] | None]


class NotRunning(Fault):
    code = "cli:not-running"

    def __init__(self, data: Path | None = None) -> None:
        """`data` is the data directory, if there is none at that path."""
        if data is None or data == DEFAULT_DATA:
            super().__init__("Clew is not running.", "Start it with `clew up`.")
        else:
            words = f"Clew is not running: there is no data directory {data}."
            super().__init__(words, "Correct --data or CLEW_DATA, or start Clew there with `clew up`.")


class Unreadable(Fault):
    code = "cli:unreadable"


class NoAnswer(Fault):
    code = "cli:no-answer"


class NotUnderstood(Fault):
    code = "cli:not-understood"


class Refused(Fault):
    """An error answer, with the server's message and code."""

    def __init__(self, words: str, remedy: str, code: str, status: int) -> None:
        super().__init__(words, remedy)
        self.code = code
        self.status = status

    def __str__(self) -> str:
        return f"{self.words} {self.remedy}".strip()


class Server:
    """Reads the address file at every call: after a restart the server may have another port."""

    def __init__(self, data: Path) -> None:
        self._files = DataDirectory(data)

    def get(self, path: str, query: Query | None = None, deadline: float = DEADLINE) -> bytes:
        # Safe to repeat, so a call that broke is sent once more.
        return self._ask("GET", path, query, None, deadline, again=True)

    def post(self, path: str, body: Mapping[str, Any] | None = None, deadline: float = DEADLINE) -> bytes:
        """A body with a `key` is idempotent, so it is sent once more if the connection breaks."""
        return self._ask("POST", path, None, body or {}, deadline, again=bool(body and body.get("key")))

    def upload(self, name: str, content: bytes) -> bytes:
        """Upload a file to send with a message. One that was uploaded twice and sent once goes after a day."""
        return self._ask("POST", "/files", {"name": name}, content, DEADLINE, again=True)

    def patch(self, path: str, body: Mapping[str, Any]) -> bytes:
        return self._ask("PATCH", path, None, body, DEADLINE, again=True)

    def delete(self, path: str) -> bytes:
        return self._ask("DELETE", path, None, None, DEADLINE, again=False)

    def stream(self, path: str, query: Query, last: str | None, silence: float) -> tuple[HTTPConnection, HTTPResponse]:
        """Opens an event stream. The caller closes the connection."""
        headers = {"Accept": "text/event-stream"} | ({} if last is None else {"Last-Event-ID": last})
        connection, answer = self._send("GET", path, query, None, silence, headers)
        if answer.status != 200:
            body = answer.read()
            connection.close()
            raise _refused(answer, body)
        return connection, answer

    def _ask(self, method: str, path: str, query: Query | None, body: object, deadline: float, *, again: bool) -> bytes:
        while True:
            connection = None
            try:
                connection, answer = self._send(method, path, query, body, deadline, {})
                said = answer.read()
            except TimeoutError as fault:
                words = f"Clew did not answer within {deadline:g} seconds ({method} {path})."
                raise NoAnswer(words, "Check it with `clew doctor`, then try again.") from fault
            except (OSError, HTTPException) as fault:
                if not again:
                    words = f"The connection broke before Clew answered ({method} {path})."
                    raise NoAnswer(words, "It may have been carried out; check before you try again.") from fault
                again = False
                continue
            finally:
                if connection is not None:
                    connection.close()
            if answer.status >= 400:
                raise _refused(answer, said)
            return said

    def _send(
        self, method: str, path: str, query: Query | None, body: object, deadline: float, headers: Mapping[str, str]
    ) -> tuple[HTTPConnection, HTTPResponse]:
        try:
            asked = urlencode({name: value for name, value in (query or {}).items() if value is not None}, doseq=True)
            sent = body if body is None or isinstance(body, bytes) else json.dumps(body, ensure_ascii=False).encode()
        except UnicodeEncodeError as fault:
            raise NotUtf8("What you typed") from fault
        connection = self._connect(deadline)
        try:
            token = read_token(self._files.token)
            headers = {"Accept": "application/json", "Authorization": f"Bearer {token}", **headers}
            if sent is not None:
                headers["Content-Type"] = _BYTES if isinstance(body, bytes) else "application/json"
            connection.request(method, "/api/v1" + path + (f"?{asked}" if asked else ""), sent, headers)
            return connection, connection.getresponse()
        except BaseException:
            connection.close()
            raise

    def _connect(self, deadline: float) -> HTTPConnection:
        try:
            address = urlsplit(_read(self._files.address))
            host, port = address.hostname, address.port
        except ValueError:
            host = port = None
        if not host or not port:
            words = f"{self._files.address} does not contain an address."
            raise Unreadable(words, "Restart Clew with `clew up`, which rewrites the file.")
        connection = HTTPConnection(host, port, timeout=deadline)
        try:
            connection.connect()
        except ConnectionRefusedError:
            # A killed server could not remove its address file.
            raise NotRunning from None
        return connection


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8").strip()
    except (FileNotFoundError, NotADirectoryError):
        raise NotRunning(None if file.parent.is_dir() else file.parent) from None
    except UnicodeDecodeError:
        return ""
    except OSError as fault:
        words = f"{file} cannot be read: {fault.strerror}."
        raise Unreadable(words, "Run this as the user who started Clew.") from fault


def _refused(answer: HTTPResponse, said: bytes) -> Fault:
    problem: object = None
    if "json" in (answer.getheader("Content-Type") or ""):
        with suppress(ValueError):
            problem = json.loads(said)
    if not isinstance(problem, dict):
        words = f"Another program answers at Clew's address (status {answer.status})."
        return NotUnderstood(words, "Stop it, and start Clew with `clew up`.")
    words = str(problem.get("detail") or problem.get("title") or f"Clew refused with status {answer.status}.")
    return Refused(words, str(problem.get("remedy") or ""), str(problem.get("code") or "api:refused"), answer.status)


def thread_part(ref: str) -> str:
    """A thread as one path segment. The name of a subject may have a slash: github:acme/app#12."""
    return _segment(ref) if ":" in ref else part(ref)


def part(name: str) -> str:
    """A name as one quoted path segment."""
    if name in (".", "..") or "/" in name:
        raise BadText(f"{name!r} is not a name or an id.", "Names have no slash. Give a name or an id.")
    return _segment(name)


def _segment(name: str) -> str:
    if not name.strip():
        raise BadText(f"{name!r} is not a name or an id: it is empty.", "Give a name or an id.")
    if len(name) > _LONGEST_NAME:
        raise BadText(
            f"{name[:_SHOWN]!r}… is not a name or an id: it has {len(name):,} characters.", "Give a shorter one."
        )
    try:
        return quote(name, safe="")
    except UnicodeEncodeError as fault:
        raise NotUtf8("The name") from fault
