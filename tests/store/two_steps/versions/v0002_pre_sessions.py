"""Sessions and archives get tables, filled from the pointers. The pointers stay for servers of schema 1."""

from pathlib import Path

from alembic import op

from clew.store.schema.migrations import run_script
from tests.store.two_steps.pointers import take_over

revision = "0002_pre"
down_revision = "0001_pre"
branch_labels = None
depends_on = None


def upgrade() -> None:
    connection = op.get_bind()
    run_script(connection, Path(__file__).with_name("v0002.sql"))
    take_over(connection)
    connection.exec_driver_sql("UPDATE meta SET value = '2' WHERE key = 'schema'")
