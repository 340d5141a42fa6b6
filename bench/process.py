"""Processes that a benchmark starts, and how it ends: nothing it started or made outlives it."""

import os
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PATIENCE = 60.0
"""Seconds for a process to become ready, and for it to stop."""

_TAIL = 2000
"""How many characters of a log a failure shows."""


class Failed(Exception):
    """The measurement cannot be made; the text says why."""


class Stopped(Exception):
    """A signal asked the benchmark to stop; the text is its name."""


Process = subprocess.Popen[bytes]


@contextmanager
def background(command: Sequence[str], log: Path, environment: Mapping[str, str] | None = None) -> Iterator[Process]:
    """A process that is stopped when the block ends, with everything in its process group."""
    with log.open("wb") as written:
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            env={**os.environ, **(environment or {})},
            stdin=subprocess.DEVNULL,
            stdout=written,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        yield process
    finally:
        _stop(process)


def _stop(process: Process) -> None:
    process.terminate()
    with suppress(subprocess.TimeoutExpired):
        process.wait(PATIENCE)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def wait_until(ready: Callable[[], bool], process: Process, what: str, log: Path) -> None:
    until = time.monotonic() + PATIENCE
    while not ready():
        if process.poll() is not None:
            raise Failed(f"{what} ended with {process.returncode} before it was ready:\n{tail(log)}")
        if time.monotonic() > until:
            raise Failed(f"{what} was not ready after {PATIENCE:.0f} s:\n{tail(log)}")
        time.sleep(0.005)


def run(command: Sequence[str], log: Path, environment: Mapping[str, str], seconds: float) -> str:
    """What the command prints, once it has ended well. Its standard error goes to the log."""
    with log.open("wb") as written:
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=written,
            start_new_session=True,
        )
    try:
        printed, _ = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired as fault:
        raise Failed(f"{' '.join(command)} had not ended after {seconds:.0f} s:\n{tail(log)}") from fault
    finally:
        _stop(process)
    if process.returncode:
        raise Failed(f"{' '.join(command)} ended with {process.returncode}:\n{tail(log)}")
    return printed.decode()


def progress(words: str) -> None:
    """What is being measured, beside the tables."""
    print(words, file=sys.stderr, flush=True)


def tail(log: Path) -> str:
    return log.read_text(encoding="utf-8", errors="replace")[-_TAIL:] if log.exists() else "(it has no log)"


def run_benchmark(measure: Callable[[], int]) -> int:
    """Runs it and returns its exit code. A failure or a signal is reported after everything was removed."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _stopped)
    try:
        return measure()
    except Failed as fault:
        print(f"failed: {fault}", file=sys.stderr)
    except Stopped as signal_name:
        print(f"failed: stopped by {signal_name}", file=sys.stderr)
    except Exception as fault:  # noqa: BLE001 - it is shown in full, and the exit code says that nothing was measured
        traceback.print_exc()
        print(f"failed: {type(fault).__name__}: {fault}", file=sys.stderr)
    return 2


def _stopped(number: int, _: FrameType | None) -> Any:
    # A second signal must not interrupt the removal.
    for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(each, signal.SIG_IGN)
    raise Stopped(signal.Signals(number).name)
