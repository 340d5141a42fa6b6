"""What an agent's store says of a prompt is kept with its run; account and abilities, with each program as started."""

from alembic import op

from clew.store.schema.migrations.script import run_script

revision = "0003_pre"
down_revision = "0002_post"
branch_labels = None
depends_on = None


def upgrade() -> None:
    connection = op.get_bind()
    run_script(connection, "v0003")
    connection.exec_driver_sql("UPDATE meta SET value = '3' WHERE key = 'schema'")
