"""Run a SQL file statement by statement. A statement ends with a semicolon at the end of a line."""

from pathlib import Path

from sqlalchemy import Connection


def run_script(connection: Connection, file: Path) -> None:
    for statement in file.read_text(encoding="utf-8").split(";\n"):
        if statement.strip():
            connection.exec_driver_sql(statement)
