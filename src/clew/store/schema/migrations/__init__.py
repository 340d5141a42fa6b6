"""Migrations: steps from one schema version to the next.

A `pre` step only adds, so servers of the version before keep working beside new ones. A `post` step takes away what
only they needed; it is applied when none of them is left, and closes the database to them.

A released step is never changed again. So it names its tables and values itself, and imports nothing of Clew but what
stands here and is frozen with it.
"""
