"""No server of schema 1 is left: take over what they wrote since, and drop the pointers."""

from alembic import op

from tests.store.two_steps.pointers import take_over

revision = "0002_post"
down_revision = "0002_pre"
branch_labels = None
depends_on = None


def upgrade() -> None:
    connection = op.get_bind()
    take_over(connection)
    # Both databases drop a column in place; no table is rebuilt under the foreign keys that reference it.
    connection.exec_driver_sql("ALTER TABLE lanes DROP COLUMN session_native_id")
    connection.exec_driver_sql("ALTER TABLE lanes DROP COLUMN session_directory")
    connection.exec_driver_sql("ALTER TABLE runs DROP COLUMN session_native_id")
    connection.exec_driver_sql("UPDATE meta SET value = '2' WHERE key = 'oldest-program'")
