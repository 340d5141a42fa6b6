"""The killer: servers are started, killed at a random moment and started again, and nobody cleans up after them."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from sqlalchemy import URL, Engine, create_engine, text
from sqlalchemy.exc import OperationalError
from sqlalchemy.pool import NullPool

BYTES = 32
"""How long a note of a wake is, or nearly so."""

ROOT = Path(__file__).resolve().parents[3]


@dataclass
class Killed:
    """What was done to them."""

    servers: int = 0
    backends: int = 0
    at_start: int = 0
    seconds: float = 0.0


@dataclass
class Maker:
    """The process that makes servers; see process.py."""

    process: "subprocess.Popen[str]"
    noted: Path
    address: str
    seed: int
    made: int = 0
    alive: dict[int, tuple[str, str]] = field(default_factory=dict)
    """The name and the place of each server that was not killed yet."""

    def start(self, place: str = "only") -> int:
        """A server with a name of its own, in the place of the one before it."""
        self.made += 1
        name = f"s{self.made:04d}"
        where = {"address": self.address, "noted": str(self.noted), "place": place}
        wanted = {**where, "name": name, "seed": self.seed}
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(wanted) + "\n")
        self.process.stdin.flush()
        pid = int(self.process.stdout.readline())
        self.alive[pid] = name, place
        return pid

    def kill(self, pid: int) -> str:
        """Nobody is told, nothing is flushed. The place that is free now."""
        _, place = self.alive.pop(pid)
        # One that fell by itself has left a note of why, which the verdict reads.
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        deadline = time.monotonic() + 30
        while _is_there(pid):
            assert time.monotonic() < deadline, f"process {pid} outlived its end"
            time.sleep(0.001)
        return place

    def answered(self) -> int:
        """How much the servers that are there have answered for so far, in bytes of their notes."""
        names = [name for name, _ in self.alive.values()]
        return sum(path.stat().st_size for name in names for path in self.noted.glob(f"answered-{name}-*"))

    def let_work(self, chance: random.Random) -> None:
        """Until some more is answered for, however slow the machine is, and then some moment longer."""
        enough = self.answered() + chance.randint(0, 20) * BYTES
        deadline = time.monotonic() + 3.0
        while self.answered() < enough and time.monotonic() < deadline:
            time.sleep(0.003)
        time.sleep(chance.uniform(0.0, 0.03))


def _is_there(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@contextmanager
def making(address: str, noted: Path, seed: int) -> Iterator[Maker]:
    """Whatever happens inside, no process is left."""
    noted.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "tests.store.soak.process"]
    with (noted / "said-by-servers").open("w", encoding="utf-8") as said:
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=said,
            text=True,
            start_new_session=True,
            env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"},
        )
        maker = Maker(process, noted, address, seed)
        try:
            yield maker
        finally:
            for pid in list(maker.alive):
                maker.kill(pid)
            process.kill()
            process.communicate()


def kill_one_server(maker: Maker, kills: int, seconds: float, chance: random.Random) -> Killed:
    """SQLite: one server at a time holds the file. The next one comes up on what the last one left."""
    done, began = Killed(), time.monotonic()
    while done.servers < kills and time.monotonic() - began < seconds:
        pid = maker.start()
        at_start = done.servers < 4 or chance.random() < 0.15
        if at_start:
            time.sleep(chance.uniform(0.0, 0.08))
        else:
            maker.let_work(chance)
        maker.kill(pid)
        done.servers += 1
        done.at_start += at_start
    done.seconds = time.monotonic() - began
    return done


def kill_among_servers(maker: Maker, url: URL, kills: int, seconds: float, chance: random.Random) -> Killed:
    """PostgreSQL: several servers share the database; any of them is killed, and so are their connections."""
    done, began = Killed(), time.monotonic()
    admin = create_engine(url.set(database="postgres"), isolation_level="AUTOCOMMIT", poolclass=NullPool)
    for place in ("first", "second", "third"):
        maker.start(place)
    while done.servers < kills and time.monotonic() - began < seconds:
        maker.let_work(chance)
        at_start = done.servers < 3 or chance.random() < 0.15
        pid = list(maker.alive)[-1] if at_start else chance.choice(list(maker.alive))
        maker.start(maker.kill(pid))
        done.servers += 1
        done.at_start += at_start
        if chance.random() < 0.5:
            done.backends += _kill_backends(admin, str(url.database), chance.randint(1, 4))
    done.seconds = time.monotonic() - began
    return done


def _kill_backends(admin: Engine, database: str, most: int) -> int:
    some = text(
        "SELECT pg_terminate_backend(pid) FROM"
        " (SELECT pid FROM pg_stat_activity WHERE datname = :name ORDER BY random() LIMIT :most) AS chosen"
    )
    try:
        with admin.connect() as connection:
            return len(connection.execute(some, {"name": database, "most": most}).all())
    except OperationalError:
        return 0
