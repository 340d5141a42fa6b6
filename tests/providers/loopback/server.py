"""A model on loopback that real agents talk to: it proves what it saw and does what it is told.

Everything runs on one thread of its own; the test calls `Model` from any other.
"""

import asyncio
import socket
import threading
import time
from asyncio import StreamReader, StreamWriter
from collections.abc import Callable, Coroutine
from types import TracebackType
from typing import Any, Self

from tests.providers.loopback import wire
from tests.providers.loopback.anthropic import Anthropic
from tests.providers.loopback.heard import Heard, Json, Request
from tests.providers.loopback.openai_chat import Chat
from tests.providers.loopback.openai_responses import Responses
from tests.providers.loopback.script import BEGINNING, Answer, Call, Cut, Dialect, Fail, Hang, Say, Script

HOST = "127.0.0.1"
PATIENCE = 10.0
SECRETS = ("authorization", "x-api-key", "cookie", "proxy-authorization")
DIALECTS: dict[str, Dialect] = {"/messages": Anthropic(), "/responses": Responses(), "/chat/completions": Chat()}
MODELS: Json = {"object": "list", "data": [{"id": "loopback-1", "object": "model", "display_name": "loopback-1"}]}


class Model:
    def __init__(self) -> None:
        self._script = Script()
        self._requests: list[Request] = []
        self._arrived = threading.Condition()
        self._faults: list[Exception] = []
        self._connections: dict[asyncio.Task[None], StreamWriter] = {}
        self._server: asyncio.Server | None = None
        self._socket = _bound(0)
        self.port: int = self._socket.getsockname()[1]
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name=f"loopback-model-{self.port}")
        self._thread.start()
        self.up()

    # ---------------------------------------------------------------- what the test sees

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.port}"

    @property
    def requests(self) -> list[Request]:
        """Every request so far, in the order of their arrival."""
        with self._arrived:
            return list(self._requests)

    @property
    def work(self) -> list[Request]:
        """The requests without those for titles and the like."""
        return [request for request in self.requests if not request.side]

    def wait(self, count: int = 1, seconds: float = 30.0) -> list[Request]:
        """Wait until `count` requests of work have come."""
        with self._arrived:
            if not self._arrived.wait_for(lambda: len(self.work) >= count, seconds):
                raise TimeoutError(f"{len(self.work)} of {count} requests came within {seconds} s")
            return self.work

    def until(self, found: Callable[[Request], bool], seconds: float, since: int = 0) -> Request | None:
        """The first request of work from that one on of which this is so, as soon as it comes; None if none does."""
        end = time.monotonic() + seconds
        with self._arrived:
            while True:
                for request in self._requests[since:]:
                    if not request.side and found(request):
                        return request
                since = len(self._requests)
                if (left := end - time.monotonic()) <= 0 or not self._arrived.wait(left):
                    return None

    # ---------------------------------------------------------------- what the test tells it

    def fail(
        self,
        status: int,
        times: int | None = None,
        body: Json | None = None,
        *,
        retry_after: float | None = None,
        resets_at: int | None = None,
    ) -> None:
        """Answer with an error, always or so many times."""
        self._script.set(Fail(status, body, retry_after, resets_at), times)

    def hang(self, times: int | None = None, *, mute: bool = False) -> None:
        """Begin to answer and never go on; mute, do not even begin."""
        self._script.set(Hang(mute), times)

    def cut(self, times: int | None = None) -> None:
        """Begin to answer and drop the connection."""
        self._script.set(Cut(), times)

    def teach(self, words: str, lines: str) -> None:
        """Follow these lines where the last prompt has these words."""
        self._script.teach(words, lines)

    def ok(self) -> None:
        """Answer again. What hangs already goes on hanging."""
        self._script.set(None)

    def down(self) -> None:
        """Refuse connections and drop those there are. The port stays this model's own."""
        self._call(self._down())

    def up(self) -> None:
        self._call(self._up())

    def close(self) -> None:
        if self._loop.is_closed():
            return
        self._call(self._down())
        self._socket.close()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(PATIENCE)
        if self._thread.is_alive():
            raise RuntimeError(f"the loopback model on port {self.port} does not end")
        self._loop.close()
        if self._faults:
            raise ExceptionGroup("the loopback model did not understand what it was asked", self._faults)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, fault: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    # ---------------------------------------------------------------- on its own thread

    def _call(self, work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(PATIENCE)

    async def _up(self) -> None:
        if self._server is None:
            self._server = await asyncio.start_server(self._serve, sock=self._socket, limit=2**20)

    async def _down(self) -> None:
        if self._server is None:
            return
        server, self._server = self._server, None
        server.close()
        # Bound but not listening, a socket refuses connections and keeps the port from others.
        self._socket = _bound(self.port)
        for writer in self._connections.values():
            writer.transport.abort()
        going = list(self._connections)
        for task in going:
            task.cancel()
        await asyncio.gather(*going, return_exceptions=True)
        await server.wait_closed()

    async def _serve(self, reader: StreamReader, writer: StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections[task] = writer
        try:
            while (incoming := await wire.receive(reader, writer)) and await self._handle(incoming, reader, writer):
                pass
        except (ConnectionError, asyncio.CancelledError):
            pass  # The agent left, or the model goes down: either way the connection is over.
        except Exception as fault:  # noqa: BLE001 - nobody awaits this task, so `close` raises it in the test
            self._faults.append(fault)
        finally:
            del self._connections[task]
            writer.close()

    async def _handle(self, incoming: wire.Incoming, reader: StreamReader, writer: StreamWriter) -> bool:
        """Whether the connection can be used again."""
        dialect = next((speaks for end, speaks in DIALECTS.items() if incoming.path.endswith(end)), None)
        if incoming.method != "POST" or dialect is None:
            status, body = _apart(incoming)
            await wire.reply(writer, status, body, head_only=incoming.method == "HEAD")
            return True
        body = incoming.json
        heard = dialect.read(body)
        answer = self._script.answer(heard, dialect)
        self._record(incoming, body, heard, answer, dialect)
        match answer:
            case Fail():
                failure = dialect.failure(answer)
                headers = dict(failure.headers)
                if answer.retry_after is not None:
                    headers["retry-after"] = f"{answer.retry_after:g}"
                await wire.reply(writer, answer.status, answer.body or failure.body, headers)
                return True
            case Hang() if answer.mute or not heard.stream:
                await reader.read()
                return False
            case Cut() if not heard.stream:
                return False
            case Say() | Call() if not heard.stream:
                await asyncio.sleep(answer.seconds if isinstance(answer, Say) else 0)
                await wire.reply(writer, 200, dialect.whole(answer, heard.model))
                return True
            case Say() | Call() | Hang() | Cut():
                return await self._stream(answer, dialect, heard.model, reader, writer)

    async def _stream(
        self, answer: Say | Call | Hang | Cut, dialect: Dialect, model: str, reader: StreamReader, writer: StreamWriter
    ) -> bool:
        events = dialect.events(answer if isinstance(answer, Say | Call) else Say(BEGINNING), model)
        pause = answer.seconds / (sum(event.piece for event in events) or 1) if isinstance(answer, Say) else 0.0
        await wire.begin_stream(writer)
        for event in events:
            await wire.stream(writer, event)
            if not event.piece:
                continue
            if isinstance(answer, Hang):
                await reader.read()
                return False
            if isinstance(answer, Cut):
                return False
            await asyncio.sleep(pause)
        await wire.end_stream(writer)
        return True

    def _record(self, incoming: wire.Incoming, body: Json, heard: Heard, answer: Answer, dialect: Dialect) -> None:
        headers = {name: "(hidden)" if name in SECRETS else value for name, value in incoming.headers.items()}
        answered = f"fail {answer.status}" if isinstance(answer, Fail) else type(answer).__name__.lower()
        request = Request(
            **vars(heard),
            format=dialect.format,
            path=incoming.path,
            headers=headers,
            answered=answered,
            body=body,
            at=time.monotonic(),
        )
        with self._arrived:
            self._requests.append(request)
            self._arrived.notify_all()


def _apart(incoming: wire.Incoming) -> tuple[int, Json]:
    """What is asked beside the work: is anybody there, which models are there, how long is this."""
    if incoming.path.endswith("/count_tokens"):
        return 200, {"input_tokens": 100}
    if incoming.path.endswith("/models"):
        return 200, MODELS
    if incoming.path == "/":
        return 200, {}
    return 404, {"error": {"message": f"The loopback model has no {incoming.path}.", "type": "not_found_error"}}


def _bound(port: int) -> socket.socket:
    # Named as TCP, or asyncio does not know that it is, and each answer waits 40 ms for an acknowledgement.
    made = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    made.bind((HOST, port))
    return made
