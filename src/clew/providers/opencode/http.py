"""HTTP to OpenCode's server on loopback: calls, and the stream of its events.

Import this module only when a server has been started: httpx2 takes 0.3 s to import.
"""

import asyncio
import contextlib
import logging
import ssl
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import Any

import httpx2

from clew.programs.faults import NotUnderstood, ProgramEnded, Refused, TooSlow
from clew.programs.json_lines import dumps, loads
from clew.providers.opencode.faults import NotListening
from clew.providers.opencode.messages import Json

HOST = "127.0.0.1"
_HEADERS = {"Accept-Encoding": "identity", "Connection": "close", "Content-Type": "application/json"}
_CUT = ("Server disconnected", "peer closed connection")
"""How httpx2 words a connection that ended too early; it has the same class of error for what is not HTTP at all."""


@dataclass(frozen=True, slots=True)
class Answer:
    """`data` is None where the answer was empty or not JSON."""

    status: int
    data: Any


class Http:
    """Every call has a connection of its own. If that cannot be made (`NotListening`), the server got nothing."""

    def __init__(self, port: int, user: str, password: str) -> None:
        # It logs every call, with the session's directory, at INFO.
        logging.getLogger("httpx2").setLevel(logging.WARNING)
        self.port = port
        self._client = httpx2.AsyncClient(
            base_url=f"http://{HOST}:{port}",
            auth=(user, password),
            headers=_HEADERS,
            limits=httpx2.Limits(max_keepalive_connections=0),
            # Each call and the stream have deadlines of their own.
            timeout=None,
            # No proxy of our environment gets the password.
            trust_env=False,
            # Never used; the default would load all certificates.
            verify=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT),
        )

    async def call(self, method: str, path: str, body: Json | None, seconds: float) -> Answer:
        """Send a request and read the whole answer, at most that long."""
        what = f"{method} {path.partition('?')[0]}"
        content = b"" if body is None else dumps(body)
        try:
            with _faults(what):
                async with asyncio.timeout(seconds):
                    answer = await self._client.request(method, path, content=content)
        except TimeoutError as fault:
            words = f"OpenCode did not answer {what} within {seconds:g} s."
            raise TooSlow(words, "It is tried again; look at OpenCode's own log.") from fault
        try:
            return Answer(answer.status_code, loads(answer.content))
        except ValueError:
            return Answer(answer.status_code, None)

    async def events(self, path: str, connect: float, silence: float) -> AsyncIterator[Json]:
        """Every event until the stream ends. Raises `TimeoutError` when nothing came for `silence` seconds."""
        with _faults(f"GET {path}"):
            async with contextlib.AsyncExitStack() as stack:
                async with asyncio.timeout(connect):
                    stream = self._client.stream("GET", path, timeout=httpx2.Timeout(None, read=silence))
                    answer = await stack.enter_async_context(stream)
                if answer.status_code != 200:
                    words = f"OpenCode answered {answer.status_code} instead of its events."
                    raise NotUnderstood(words, "Update OpenCode or Clew.")
                async for event in httpx2.EventSource(answer, max_event_size=None):
                    if event.data:
                        yield _event(event.data)


@contextlib.contextmanager
def _faults(what: str) -> Iterator[None]:
    """Raise the errors of httpx2 as faults of a program."""
    try:
        yield
    except httpx2.TimeoutException as fault:
        raise TimeoutError from fault
    except httpx2.ConnectError as fault:
        raise _not_connected(fault) from fault
    except httpx2.TransportError as fault:
        if isinstance(fault, httpx2.NetworkError) or str(fault).startswith(_CUT):
            words = f"OpenCode's server went away during {what}."
            raise ProgramEnded(words, "It is started again.") from fault
        raise NotUnderstood(f"OpenCode's answer is no HTTP ({fault}).", "Update OpenCode or Clew.") from fault
    except (httpx2.HTTPError, ValueError) as fault:
        raise NotUnderstood(f"OpenCode's answer cannot be read ({fault}).", "Update OpenCode or Clew.") from fault


def _not_connected(fault: httpx2.ConnectError) -> NotListening | Refused:
    error = next((each for each in _causes(fault) if isinstance(each, OSError) and each.errno is not None), None)
    if error is None or isinstance(error, ConnectionError):
        return NotListening("OpenCode's server is not there.", "It is started again.")
    words = f"There is no way to OpenCode's server: {error.strerror}."
    return Refused(words, "Close something else, and try again.")


def _causes(fault: BaseException | None) -> Iterator[BaseException]:
    while fault is not None:
        yield fault
        fault = fault.__cause__ or fault.__context__


def _event(text: str) -> Json:
    value = loads(text.encode())
    if not isinstance(value, dict):
        raise ValueError("an event is no object")
    return value
