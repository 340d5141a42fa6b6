"""Alembic's entry point. It runs in the caller's transaction, so an upgrade is applied completely or not at all."""

from alembic import context

# transactional_ddl=False: Alembic must not open, commit or roll back transactions itself.
context.configure(connection=context.config.attributes["connection"], transactional_ddl=False)
context.run_migrations()
