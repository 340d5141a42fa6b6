"""Server processes that can be killed: made by a process that has everything loaded, and does nothing but make them.

It reads one line for each server it is to make and answers with its process id. Every server is in a process group of
its own, and ends when its maker does; its maker ends when whoever started it does.
"""

import json
import os
import signal
import sys
import threading
import time
import traceback
from pathlib import Path
from typing import Any

import alembic.command  # noqa: F401 - loaded once, before the first fork

from clew.store.engine.database import Database
from clew.store.engine.open import open_database
from clew.store.faults import Unreachable
from tests.store.soak.notes import Notes
from tests.store.soak.scene import prepare
from tests.store.soak.workers import Server, start


def main() -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    alive, kept = os.pipe()
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            os.close(kept)
            _become(json.loads(line), alive)
        sys.stdout.write(f"{child}\n")
        sys.stdout.flush()


def _become(wanted: dict[str, Any], alive: int) -> None:
    os.setsid()
    threading.Thread(target=_end_with_maker, args=(alive,), daemon=True).start()
    noted, name = Path(wanted["noted"]), wanted["name"]
    try:
        database = _opened(wanted["address"])
        database.write(prepare).result(60)
        Notes(noted / f"ready-{name}").write(name)
        server = Server(database, noted, name, wanted["place"], wanted["seed"], threading.Event())
        for worker in start(server):
            worker.join()
    except BaseException:  # noqa: BLE001 - whatever it is, the verdict shall know of it
        Notes(noted / f"fault-{name}").write("start", traceback.format_exc().replace("\n", "\\n"))
    os._exit(1)


def _opened(address: str) -> Database:
    """Opening does not wait for a database that is away, as one whose first connection is killed seems to be: whoever
    starts servers starts them again."""
    for _ in range(20):
        try:
            return open_database(address)
        except Unreachable:
            time.sleep(0.05)
    return open_database(address)


def _end_with_maker(alive: int) -> None:
    os.read(alive, 1)
    os._exit(0)


if __name__ == "__main__":
    main()
