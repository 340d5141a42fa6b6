"""Running a SQL file that stands beside the steps, one for each database."""

from pathlib import Path

from sqlalchemy import Connection

_VERSIONS = Path(__file__).parent / "versions"


def run_script(connection: Connection, name: str) -> None:
    script = (_VERSIONS / f"{name}_{connection.dialect.name}.sql").read_text(encoding="utf-8")
    for statement in script.split(";\n"):
        if statement.strip():
            connection.exec_driver_sql(statement)
