"""A server as people start it: `clew up` in a process of its own, and its API."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

PATIENCE = 60.0


@dataclass(frozen=True, slots=True)
class Server:
    """One that is ready. `ready_after` is how long it took, in seconds."""

    pid: int
    address: str
    token: str
    ready_after: float
    _lines: threading.local = field(default_factory=threading.local)

    def get(self, path: str) -> Any:
        return self._call("GET", path)

    def post(self, path: str, body: object) -> Any:
        return self._call("POST", path, body)

    def _call(self, method: str, path: str, body: object = None) -> Any:
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        connection = self._connection()
        connection.request(method, f"/api/v1{path}", None if body is None else json.dumps(body), headers)
        answer = connection.getresponse()
        said = json.load(answer)
        if answer.status >= HTTPStatus.BAD_REQUEST:
            raise SystemExit(f"{method} {path}: {said}")
        return said

    def _connection(self) -> HTTPConnection:
        """One for each thread that asks, kept as any client keeps it."""
        if not hasattr(self._lines, "line"):
            self._lines.line = HTTPConnection(urlsplit(self.address).netloc, timeout=PATIENCE)
        line: HTTPConnection = self._lines.line
        return line

    def megabytes(self) -> float:
        """What it holds in memory, shared pages counted by their share."""
        lines = Path(f"/proc/{self.pid}/smaps_rollup").read_text(encoding="utf-8").splitlines()
        return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024

    def seconds_used(self) -> float:
        """Of all cores, since it was started."""
        fields = Path(f"/proc/{self.pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def server(data: Path) -> Iterator[Server]:
    began = time.perf_counter()
    with (data.parent / f"{data.name}.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "clew", "up", "--data", str(data), "--port", "0"],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        address = _ready(process, data)
        taken = time.perf_counter() - began
        token = (data / "token").read_text(encoding="utf-8").strip()
        yield Server(process.pid, address, token, taken)
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _ready(process: "subprocess.Popen[bytes]", data: Path) -> str:
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until and process.poll() is None:
        if (data / "address").exists() and (address := (data / "address").read_text(encoding="utf-8").strip()):
            with urllib.request.urlopen(f"{address}/health", timeout=PATIENCE):
                return address
        time.sleep(0.005)
    raise SystemExit(f"clew up did not get ready; see {data}.log")
