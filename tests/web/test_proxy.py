"""The proxy of these tests is one: it serves below a path, buffers, cuts, is silent, and goes away."""

import select
import socket
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from urllib.parse import urlsplit

import pytest

from tests.web.proxy import Proxy

PATIENCE = 30.0


class Origin:
    """A server that answers every request with these pieces, one when the test says so."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.go_on = threading.Semaphore(0)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._listener.settimeout(PATIENCE)
        self.address = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            connection, _ = self._listener.accept()
            with connection:
                request = connection.recv(65_536)
                if not request:
                    return
                self.asked.append(request.decode())
                connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\n")
                for piece in (b"a" * 100, b"b" * 5000, b"c"):
                    if not self.go_on.acquire(timeout=PATIENCE):
                        return
                    try:
                        connection.sendall(piece)
                    except OSError:
                        break

    def close(self) -> None:
        for _ in range(20):
            self.go_on.release()
        with socket.create_connection(self._listener.getsockname()):
            pass
        self._thread.join(PATIENCE)
        self._listener.close()
        assert not self._thread.is_alive()


@pytest.fixture
def origin() -> Iterator[Origin]:
    made = Origin()
    yield made
    made.close()


class Answer:
    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._read = connection.makefile("rb")
        self.status = int(self._read.readline().split()[1])
        while self._read.readline().strip():
            pass

    def read(self, count: int = -1) -> bytes:
        """So many bytes, or all until the end."""
        return self._read.read(count)

    def is_silent(self) -> bool:
        """Whether nothing comes for a while, and it has not ended."""
        return not select.select([self._connection], [], [], 0.5)[0]

    def close(self) -> None:
        self._read.close()


@contextmanager
def asked(proxy: Proxy, path: str = "/page?x=1") -> Iterator[Answer]:
    host = urlsplit(proxy.address).netloc
    with socket.create_connection(("127.0.0.1", int(host.partition(":")[2])), PATIENCE) as connection:
        connection.sendall(f"GET {path} HTTP/1.1\r\nHost: {host}\r\nOrigin: http://somewhere.example\r\n\r\n".encode())
        with closing(Answer(connection)) as answer:
            yield answer


def test_below_a_path_it_takes_the_path_away_and_keeps_host_and_origin(origin: Origin) -> None:
    origin.go_on.release(3)
    with Proxy("/clew", upstream=origin.address) as proxy:
        with asked(proxy, "/clew/page?x=1") as answer:
            assert (answer.status, len(answer.read())) == (200, 5101)
        with asked(proxy, "/page") as answer:
            assert answer.status == 404
        assert proxy.strays == ["/page"]
        first, *headers = origin.asked[0].splitlines()
        assert first == "GET /page?x=1 HTTP/1.1"
        assert f"Host: {urlsplit(proxy.address).netloc}" in headers
        assert "Origin: http://somewhere.example" in headers


def test_it_passes_on_whole_blocks_only(origin: Origin) -> None:
    with Proxy(block=4096, upstream=origin.address) as proxy, asked(proxy) as answer:
        origin.go_on.release(2)
        assert answer.read(4096) == b"a" * 100 + b"b" * 3996
        assert answer.is_silent(), "what is left of 5100 bytes is no whole block"
        origin.go_on.release()
        assert answer.read() == b"b" * 1004 + b"c"


def test_what_is_idle_for_too_long_is_cut(origin: Origin) -> None:
    with Proxy(idle=0.2, upstream=origin.address) as proxy, asked(proxy) as answer:
        assert answer.read() == b""
        assert proxy.cuts == 1


def test_while_it_is_hushed_nothing_comes_through_and_nothing_is_lost(origin: Origin) -> None:
    with Proxy(upstream=origin.address) as proxy, asked(proxy) as answer:
        origin.go_on.release()
        assert answer.read(100) == b"a" * 100
        proxy.hush()
        origin.go_on.release(2)
        assert answer.is_silent()
        proxy.speak()
        assert answer.read() == b"b" * 5000 + b"c"


def test_stopped_it_drops_what_there_is_and_comes_back_at_its_address(origin: Origin) -> None:
    with Proxy(upstream=origin.address) as proxy:
        with asked(proxy) as answer:
            proxy.stop()
            assert answer.read() == b""
        with pytest.raises(ConnectionRefusedError), asked(proxy):
            pass
        proxy.start()
        origin.go_on.release(6)
        with asked(proxy) as answer:
            assert answer.status == 200
            assert answer.read()


def test_a_server_that_is_not_there_is_a_bad_gateway() -> None:
    with Proxy(upstream="http://127.0.0.1:9") as proxy, asked(proxy) as answer:
        assert answer.status == 502
