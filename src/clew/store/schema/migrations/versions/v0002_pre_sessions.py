"""Sessions and their archives get tables. What lanes point at is taken over, and left for the servers that point."""

from alembic import op

from clew.store.schema.migrations.pointers import take_over
from clew.store.schema.migrations.script import run_script

revision = "0002_pre"
down_revision = "0001_pre"
branch_labels = None
depends_on = None


def upgrade() -> None:
    connection = op.get_bind()
    run_script(connection, "v0002")
    take_over(connection)
    connection.exec_driver_sql("UPDATE meta SET value = '2' WHERE key = 'schema'")
