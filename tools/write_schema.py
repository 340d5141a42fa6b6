"""Write the SQL files of the first two schemas from the tables, until the first release; then they are frozen.

Schema 2 is the tables as they are. Schema 1 is the same without the tables that 2 adds, and with the columns that it
takes away. Run it after a change of the tables: `.venv/bin/python tools/write_schema.py`.
"""

from collections.abc import Iterable
from pathlib import Path

from sqlalchemy import Column, MetaData, Table, Text
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import Dialect
from sqlalchemy.schema import CreateIndex, CreateTable

from clew.store import migrations
from clew.store.tables import UNKNOWN_RUNTIME, metadata

ADDED = ("sessions", "archives")
TAKEN_AWAY = (("lanes", "session_native_id"), ("lanes", "session_directory"), ("runs", "session_native_id"))

SEED = (
    f"INSERT INTO machines (id, name) VALUES ('{UNKNOWN_RUNTIME}', 'unknown')",
    "INSERT INTO runtimes (id, machine_id, provider, home, max_live) SELECT id, id, name, name, 0 FROM machines",
    "INSERT INTO meta (key, value) VALUES ('schema', '1')",
    "INSERT INTO meta (key, value) VALUES ('oldest-program', '1')",
)


def first_tables() -> list[Table]:
    first = MetaData(naming_convention=metadata.naming_convention)
    for table in metadata.sorted_tables:
        if table.name not in ADDED:
            table.to_metadata(first)
    for name, column in TAKEN_AWAY:
        first.tables[name].append_column(Column(column, Text))
    return first.sorted_tables


def added_tables() -> list[Table]:
    return [table for table in metadata.sorted_tables if table.name in ADDED]


def creation(tables: Iterable[Table], dialect: Dialect) -> list[str]:
    statements = []
    for table in tables:
        statements.append(str(CreateTable(table).compile(dialect=dialect)).strip())
        indexes = sorted(table.indexes, key=lambda index: str(index.name))
        statements.extend(str(CreateIndex(index).compile(dialect=dialect)).strip() for index in indexes)
    return statements


def script(statements: Iterable[str]) -> str:
    lines = "\n\n".join(f"{statement};" for statement in statements)
    return "\n".join(line.rstrip() for line in lines.splitlines()) + "\n"


def scripts(dialect: Dialect) -> dict[str, str]:
    """The text of each file, by its name."""
    return {
        f"v0001_{dialect.name}.sql": script([*creation(first_tables(), dialect), *SEED]),
        f"v0002_{dialect.name}.sql": script(creation(added_tables(), dialect)),
    }


if __name__ == "__main__":
    versions = Path(str(migrations.__file__)).parent / "versions"
    for dialect in (sqlite.dialect(), postgresql.dialect()):  # type: ignore[no-untyped-call]
        for name, text in scripts(dialect).items():
            (versions / name).write_text(text, encoding="utf-8")
