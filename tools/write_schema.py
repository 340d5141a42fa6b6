"""Write the first schema's SQL files from the tables. Only until the first release: then they are frozen."""

from pathlib import Path

from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import Dialect
from sqlalchemy.schema import CreateIndex, CreateTable

from clew.store import migrations
from clew.store.tables import UNKNOWN_RUNTIME, metadata

SEED = (
    f"INSERT INTO machines (id, name) VALUES ('{UNKNOWN_RUNTIME}', 'unknown')",
    "INSERT INTO runtimes (id, machine_id, provider, home, max_live) SELECT id, id, name, name, 0 FROM machines",
    "INSERT INTO meta (key, value) VALUES ('schema', '1')",
    "INSERT INTO meta (key, value) VALUES ('oldest-program', '1')",
)


def script(dialect: Dialect) -> str:
    statements = []
    for table in metadata.sorted_tables:
        statements.append(str(CreateTable(table).compile(dialect=dialect)).strip())
        indexes = sorted(table.indexes, key=lambda index: str(index.name))
        statements.extend(str(CreateIndex(index).compile(dialect=dialect)).strip() for index in indexes)
    lines = "".join(f"{statement};\n\n" for statement in (*statements, *SEED))
    return "\n".join(line.rstrip() for line in lines.splitlines()) + "\n"


if __name__ == "__main__":
    versions = Path(str(migrations.__file__)).parent / "versions"
    for dialect in (sqlite.dialect(), postgresql.dialect()):  # type: ignore[no-untyped-call]
        (versions / f"v0001_{dialect.name}.sql").write_text(script(dialect), encoding="utf-8")
