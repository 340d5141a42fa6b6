"""How Alembic runs: inside the transaction it was handed, so that a step is there whole or not at all."""

from alembic import context

context.configure(connection=context.config.attributes["connection"], transactional_ddl=False)
context.run_migrations()
