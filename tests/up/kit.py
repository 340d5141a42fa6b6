"""The real `clew up` in a process of its own, and requests to it over its socket."""

import json
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import httpx2

T = TypeVar("T")

LONG = 120.0
"""Seconds that anything may take here; a machine may be busy."""


@dataclass
class Up:
    process: "subprocess.Popen[str]"
    data: Path
    said: Path
    warned: Path

    @property
    def address(self) -> str:
        return (self.data / "address").read_text(encoding="utf-8").strip()

    @property
    def token(self) -> str:
        return (self.data / "token").read_text(encoding="utf-8").strip()

    @property
    def out(self) -> str:
        return self.said.read_text(encoding="utf-8")

    @property
    def err(self) -> str:
        return self.warned.read_text(encoding="utf-8")

    @property
    def log(self) -> str:
        return (self.data / "logs" / "clew.log").read_text(encoding="utf-8")

    def http(self) -> httpx2.Client:
        bearer = {"Authorization": f"Bearer {self.token}"}
        return httpx2.Client(base_url=f"{self.address}/api/v1", headers=bearer, timeout=60)

    def ask(self, method: str, path: str, body: object = None) -> Any:
        with self.http() as http:
            answer = http.request(method, path, json=body)
        assert answer.status_code < 300, (method, path, answer.status_code, answer.text)
        return answer.json()

    def ran(self, wake: Any) -> Any:
        """The run that served a wake, when it has."""
        receipt = until(lambda: _ended(self.ask("GET", f"/wakes/{wake['id']}")), "the end of a wake")
        assert receipt["state"] == "served", receipt
        return self.ask("GET", f"/runs/{receipt['run']}")

    def stop(self, how: signal.Signals = signal.SIGINT) -> int:
        self.process.send_signal(how)
        return self.process.wait(LONG)

    def guide(self) -> None:
        """Wait until the first agent is there."""
        until(lambda: [each for each in self.ask("GET", "/agents") if each["name"] == "guide"], "the guide")


def _ended(wake: Any) -> Any:
    return wake if wake["state"] not in ("pending", "claimed") else None


def environment(**settings: str) -> dict[str, str]:
    """Of this machine no agent is found, so that what is looked for is the same everywhere."""
    names = ("HOME", "LANG", "TMPDIR")
    kept = {name: os.environ[name] for name in names if name in os.environ}
    return {**kept, "PATH": "/usr/bin:/bin", "PYTHONUNBUFFERED": "1", "COLUMNS": "100", "NO_COLOR": "1", **settings}


def begin(data: Path, *words: str, **settings: str) -> Up:
    beside = next(each for each in data.parents if each.is_dir())
    said, warned = (beside / f"{uuid.uuid4().hex}.{name}" for name in ("out", "err"))
    with said.open("w") as out, warned.open("w") as err:
        process = subprocess.Popen(
            [sys.executable, "-m", "clew", "up", "--data", str(data), *words],
            env=environment(**settings),
            stdout=out,
            stderr=err,
            text=True,
            start_new_session=True,
        )
    return Up(process, data, said, warned)


@contextmanager
def up(data: Path, *words: str, **settings: str) -> Iterator[Up]:
    """Ready, and ended afterwards whatever happens."""
    begun = begin(data, "--port", "0", *words, **settings)
    try:
        until(lambda: "Clew is ready" in begun.out or begun.process.poll() is not None, "an address")
        assert begun.process.poll() is None, begun.err
        yield begun
    finally:
        if begun.process.poll() is None:
            begun.process.kill()
            begun.process.wait(LONG)


def refused(data: Path, *words: str, **settings: str) -> str:
    """One line on stderr, the exit status 1, and no traceback."""
    begun = begin(data, *words, **settings)
    try:
        status = begun.process.wait(LONG)
    finally:
        begun.process.kill()
    assert (status, begun.out, begun.err.count("\n")) == (1, "", 1), (status, begun.out, begun.err)
    return begun.err


def until(look: Callable[[], T], what: str) -> T:
    """As soon as it is there; it fails only when it never comes."""
    end = time.monotonic() + LONG
    while not (found := look()):
        assert time.monotonic() < end, f"{what} never came"
        time.sleep(0.05)
    return found


def lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]
