"""Migrations: the steps from one schema version to the next, run by Alembic.

A `pre` step only adds, so servers of the version before keep working beside new ones. A `post` step runs when none of
them is left: it removes what only they needed, and closes the database to them.

A released step never changes. It therefore spells out its tables and values, and imports nothing of Clew except modules
of this package, which are frozen with it.
"""
