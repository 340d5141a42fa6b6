"""No server is left that points: what they wrote since is taken over, and the pointers go."""

from alembic import op

from clew.store.schema.migrations.pointers import take_over

revision = "0002_post"
down_revision = "0002_pre"
branch_labels = None
depends_on = None


def upgrade() -> None:
    connection = op.get_bind()
    take_over(connection)
    # Both databases drop a column in place, so no table is made anew under the keys that point to it.
    connection.exec_driver_sql("ALTER TABLE lanes DROP COLUMN session_native_id")
    connection.exec_driver_sql("ALTER TABLE lanes DROP COLUMN session_directory")
    connection.exec_driver_sql("ALTER TABLE runs DROP COLUMN session_native_id")
    connection.exec_driver_sql("UPDATE meta SET value = '2' WHERE key = 'oldest-program'")
