"""Schema 1: all tables. The SQL is frozen in the files beside this one, one for each database."""

from pathlib import Path

from alembic import op

from clew.store.schema.migrations import run_script

revision = "0001_pre"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    connection = op.get_bind()
    run_script(connection, Path(__file__).parent / f"v0001_{connection.dialect.name}.sql")
