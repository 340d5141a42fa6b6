"""Write what all steps together make of an empty database, as SQL for each of the two: what a new one is made from.

The steps themselves are frozen, and a test holds this against them. Run it after a change of the tables:
`.venv/bin/python tools/write_schema.py`.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path

from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import Dialect
from sqlalchemy.schema import CreateIndex, CreateTable

from clew.store.schema import migrations
from clew.store.schema.tables import UNKNOWN_RUNTIME, metadata
from clew.store.schema.version import PROGRAM

STEPS = (
    (
        "CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL,"
        " CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num))"
    ),
    f"INSERT INTO alembic_version (version_num) VALUES ('{PROGRAM:04d}_post')",
)
ROWS = (
    f"INSERT INTO machines (id, name) VALUES ('{UNKNOWN_RUNTIME}', 'unknown')",
    "INSERT INTO runtimes (id, machine_id, provider, home, max_live) SELECT id, id, name, name, 0 FROM machines",
    f"INSERT INTO meta (key, value) VALUES ('schema', '{PROGRAM}')",
    f"INSERT INTO meta (key, value) VALUES ('oldest-program', '{PROGRAM}')",
)


def creation(dialect: Dialect) -> Iterator[str]:
    for table in metadata.sorted_tables:
        yield str(CreateTable(table).compile(dialect=dialect)).strip()
        for index in sorted(table.indexes, key=lambda index: str(index.name)):
            yield str(CreateIndex(index).compile(dialect=dialect)).strip()


def script(statements: Iterable[str]) -> str:
    lines = "\n\n".join(f"{statement};" for statement in statements)
    return "\n".join(line.rstrip() for line in lines.splitlines()) + "\n"


def whole(dialect: Dialect) -> str:
    return script([*STEPS, *creation(dialect), *ROWS])


if __name__ == "__main__":
    versions = Path(str(migrations.__file__)).parent / "versions"
    for each in (sqlite.dialect(), postgresql.dialect()):  # type: ignore[no-untyped-call]
        (versions / f"whole_{each.name}.sql").write_text(whole(each), encoding="utf-8")
