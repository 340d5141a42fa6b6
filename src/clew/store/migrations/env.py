"""How Alembic runs: inside the transaction it was handed, so that a step is there whole or not at all."""

from alembic import context

from clew.store.tables import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata, transactional_ddl=False)
context.run_migrations()
