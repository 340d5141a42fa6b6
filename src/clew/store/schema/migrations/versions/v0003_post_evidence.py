"""No server is left that ends a run without saying what became of its prompt, or that takes a key for an account."""

from alembic import op

revision = "0003_post"
down_revision = "0003_pre"
branch_labels = None
depends_on = None


_IS_KEY = "substr(account, 1, 8) = 'api-key:' OR substr(account, 1, 6) = 'token:'"


def upgrade() -> None:
    connection = op.get_bind()
    connection.exec_driver_sql(f"UPDATE sessions SET credential = account, account = NULL WHERE {_IS_KEY}")
    connection.exec_driver_sql(f"UPDATE journal SET account = NULL WHERE {_IS_KEY}")
    connection.exec_driver_sql(f"UPDATE runtimes SET account = NULL WHERE {_IS_KEY}")
    connection.exec_driver_sql("UPDATE meta SET value = '3' WHERE key = 'oldest-program'")
