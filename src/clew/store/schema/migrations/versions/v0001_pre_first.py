"""The first schema: a lane points at its session. Frozen in the SQL files beside this one."""

from alembic import op

from clew.store.schema.migrations.script import run_script

revision = "0001_pre"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    run_script(op.get_bind(), "v0001")
