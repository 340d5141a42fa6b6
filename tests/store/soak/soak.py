"""A whole soak: servers at work, killed again and again, then the verdict."""

import random
import tempfile
from pathlib import Path

from clew.store.engine.open import open_database
from tests.store.soak.killer import Killed, kill_among_servers, kill_one_server, making
from tests.store.soak.postgres import own_postgres
from tests.store.soak.verdict import Verdict, judge


def soak_sqlite(kills: int, seconds: float, seed: int) -> Verdict:
    with tempfile.TemporaryDirectory(prefix="clew-soak-") as place:
        address, noted = str(Path(place) / "clew.db"), Path(place) / "notes"
        with making(address, noted, seed) as maker:
            killed = kill_one_server(maker, kills, seconds, random.Random(seed))
        return _judged(address, noted, "SQLite", killed)


def soak_postgresql(kills: int, seconds: float, seed: int) -> Verdict:
    with own_postgres() as server, tempfile.TemporaryDirectory(prefix="clew-soak-") as place:
        url = server.make("soak")
        address, noted = url.render_as_string(hide_password=False), Path(place) / "notes"
        with making(address, noted, seed) as maker:
            killed = kill_among_servers(maker, url, kills, seconds, random.Random(seed))
        return _judged(address, noted, "PostgreSQL", killed)


def _judged(address: str, noted: Path, name: str, killed: Killed) -> Verdict:
    database = open_database(address)
    try:
        return judge(database, address, noted, name, killed)
    finally:
        database.close()


SOAKS = {"sqlite": soak_sqlite, "postgresql": soak_postgresql}
