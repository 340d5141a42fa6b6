"""Write whole_sqlite.sql and whole_postgresql.sql, from which an empty database is created.

They must have the same result as all migration steps together; a test compares them. The steps are frozen, so this tool
never writes them. Run it after a change to the tables: `.venv/bin/python tools/write_schema.py`.
"""

from collections.abc import Iterable, Iterator

from alembic.script import ScriptDirectory
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import Dialect
from sqlalchemy.schema import CreateIndex, CreateTable

from clew.store.schema.tables import UNKNOWN_RUNTIME, metadata
from clew.store.schema.version import PROGRAM, STEPS

ALEMBIC = (
    (
        "CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL,"
        " CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num))"
    ),
    f"INSERT INTO alembic_version (version_num) VALUES ('{ScriptDirectory(str(STEPS)).get_current_head()}')",
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
    return script([*ALEMBIC, *creation(dialect), *ROWS])


if __name__ == "__main__":
    for each in (sqlite.dialect(), postgresql.dialect()):  # type: ignore[no-untyped-call]
        (STEPS / "versions" / f"whole_{each.name}.sql").write_text(whole(each), encoding="utf-8")
