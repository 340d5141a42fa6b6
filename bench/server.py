"""A server as people start it, `clew up` in a process of its own, and its API over HTTP."""

import json
import os
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from bench.process import PATIENCE, Failed, background, wait_until

_IDLE = 2.0
UP = ("-m", "clew", "up")


@dataclass(frozen=True, slots=True)
class Server:
    """A server that is ready. `ready_after` is how long its start took, in seconds."""

    pid: int
    address: str
    token: str
    ready_after: float = 0.0
    _kept: threading.local = field(default_factory=threading.local)

    def get(self, path: str) -> Any:
        return self._call("GET", f"/api/v1{path}")

    def post(self, path: str, body: object) -> Any:
        return self._call("POST", f"/api/v1{path}", body)

    def health(self) -> Any:
        return self._call("GET", "/health")

    def _call(self, method: str, path: str, body: object = None) -> Any:
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        connection = self._connection()
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        answer = connection.getresponse()
        said = json.load(answer)
        if answer.status >= HTTPStatus.BAD_REQUEST:
            raise Failed(f"{method} {path} was answered with {answer.status}: {said}")
        return said

    def _connection(self) -> HTTPConnection:
        """One for each thread, kept open between requests. After a pause it is made again: the server closes a
        connection that is idle for five seconds."""
        now, kept = time.monotonic(), self._kept
        if not hasattr(kept, "connection") or now - kept.used > _IDLE:
            kept.connection = HTTPConnection(urlsplit(self.address).netloc, timeout=PATIENCE)
        kept.used = now
        connection: HTTPConnection = kept.connection
        return connection

    def megabytes(self) -> float:
        """Its memory, shared pages counted by their share."""
        lines = Path(f"/proc/{self.pid}/smaps_rollup").read_text(encoding="utf-8").splitlines()
        return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024

    def seconds_used(self) -> float:
        """Processor time of all cores since its start."""
        fields = Path(f"/proc/{self.pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def server(
    data: Path,
    database: str | None = None,
    environment: Mapping[str, str] | None = None,
    program: Sequence[str] = UP,
) -> Iterator[Server]:
    began, log = time.perf_counter(), data.parent / f"{data.name}.log"
    command = [sys.executable, *program, "--data", str(data), "--port", "0"]
    with background([*command, *(() if database is None else ("--database", database))], log, environment) as process:
        published = data / "address"
        wait_until(lambda: published.exists() and published.stat().st_size > 0, process, "clew up", log)
        address = published.read_text(encoding="utf-8").strip()
        with urllib.request.urlopen(f"{address}/health", timeout=PATIENCE):
            taken = time.perf_counter() - began
        yield Server(process.pid, address, (data / "token").read_text(encoding="utf-8").strip(), taken)
