"""Alembic's entry point, as in src/clew/store/schema/migrations/env.py."""

from alembic import context

context.configure(connection=context.config.attributes["connection"], transactional_ddl=False)
context.run_migrations()
