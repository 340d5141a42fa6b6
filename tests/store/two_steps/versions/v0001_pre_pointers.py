"""Schema 1 of the test: a lane points at its session."""

from pathlib import Path

from alembic import op

from clew.store.schema.migrations import run_script

revision = "0001_pre"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    run_script(op.get_bind(), Path(__file__).with_name("v0001.sql"))
