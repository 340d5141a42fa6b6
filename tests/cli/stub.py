"""A server that answers as it is told to, with the values of the API, and keeps what it was asked."""

import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, is_dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

TOKEN = "t" * 43


@dataclass(frozen=True)
class Problem:
    status: int
    code: str
    detail: str
    remedy: str = "Do something else."
    errors: Sequence[Mapping[str, str]] = ()


@dataclass(frozen=True)
class Asked:
    method: str
    path: str
    query: Mapping[str, str]
    body: Any
    headers: Mapping[str, str]


@dataclass(frozen=True)
class Frame:
    kind: str
    view: object
    id: str = ""


BREAK = "break"
"""In a stream: the connection is cut here."""

Answer = object | Callable[[Asked], object]


@dataclass
class Stub:
    data: Path
    answers: dict[tuple[str, str], Answer] = field(default_factory=dict)
    streams: list[Sequence[Frame | str]] = field(default_factory=list)
    """What each stream sends, in the order in which they are opened."""
    asked: list[Asked] = field(default_factory=list)

    def on(self, method: str, path: str, answer: Answer) -> None:
        self.answers[method, path] = answer

    def bodies(self, method: str, path: str) -> list[Any]:
        return [each.body for each in self.asked if (each.method, each.path) == (method, path)]

    def queries(self, path: str) -> list[Mapping[str, str]]:
        return [each.query for each in self.asked if each.path == path]


def plain(value: object) -> object:
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    return asdict(value) if is_dataclass(value) and not isinstance(value, type) else value


@contextmanager
def serving(stub: Stub) -> Iterator[Stub]:
    server = _Quiet(("127.0.0.1", 0), _handler(stub))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    stub.data.mkdir(parents=True, exist_ok=True)
    token = stub.data / "token"
    if not token.exists():
        token.write_text(f"{TOKEN}\n")
        token.chmod(0o600)
    address = stub.data / "address"
    draft = stub.data / "address.new"
    draft.write_text(f"http://127.0.0.1:{server.server_port}\n")
    draft.replace(address)
    try:
        yield stub
    finally:
        address.unlink(missing_ok=True)
        server.shutdown()
        server.server_close()
        thread.join()


class _Quiet(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        """Whoever asked has heard enough."""


def _handler(stub: Stub) -> type[BaseHTTPRequestHandler]:
    return type("Handler", (_Handler,), {"stub": stub})


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    stub: Stub

    def log_message(self, *_: object) -> None:
        pass

    def __getattr__(self, name: str) -> Callable[[], None]:
        if name.startswith("do_"):
            return self._serve
        raise AttributeError(name)

    def _serve(self) -> None:
        split = urlsplit(self.path)
        path = split.path.removeprefix("/api/v1")
        sent = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        body = json.loads(sent) if sent else None
        asked = Asked(self.command, path, dict(parse_qsl(split.query)), body, dict(self.headers.items()))
        self.stub.asked.append(asked)
        if self.headers.get("Authorization") != f"Bearer {TOKEN}":
            self._say(Problem(401, "server:unauthorized", "The token is not the server's."))
        elif path == "/live":
            self._stream()
        else:
            answer = self.stub.answers.get((self.command, path), Problem(404, "api:no-such-thing", f"No {path}."))
            self._say(answer(asked) if callable(answer) else answer)

    def _say(self, answer: object) -> None:
        if answer == BREAK:
            self.close_connection = True
            return
        problem = isinstance(answer, Problem)
        said = answer if isinstance(answer, bytes) else json.dumps(plain(answer)).encode()
        self.send_response(answer.status if isinstance(answer, Problem) else 200)
        self.send_header("Content-Type", "application/problem+json" if problem else "application/json")
        self.send_header("Content-Length", str(len(said)))
        self.end_headers()
        self.wfile.write(said)

    def _stream(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self._chunk(": welcome\n\n")
        for frame in self.stub.streams.pop(0) if self.stub.streams else []:
            if isinstance(frame, str):
                self.close_connection = True
                return
            mark = f"id: {frame.id}\n" if frame.id else ""
            self._chunk(f"{mark}event: {frame.kind}\ndata: {json.dumps(plain(frame.view))}\n\n")
        self.wfile.write(b"0\r\n\r\n")

    def _chunk(self, text: str) -> None:
        raw = text.encode()
        self.wfile.write(f"{len(raw):x}\r\n".encode() + raw + b"\r\n")
