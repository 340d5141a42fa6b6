"""The first schema, as it was: frozen in the SQL files beside this one."""

from pathlib import Path

from alembic import op

revision = "0001_pre"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    dialect = op.get_bind().dialect.name
    script = Path(__file__).with_name(f"v0001_{dialect}.sql").read_text(encoding="utf-8")
    for statement in script.split(";\n"):
        if statement.strip():
            op.get_bind().exec_driver_sql(statement)
