"""No server is left that ends a run without saying what became of its prompt."""

from alembic import op

revision = "0003_post"
down_revision = "0003_pre"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.get_bind().exec_driver_sql("UPDATE meta SET value = '3' WHERE key = 'oldest-program'")
