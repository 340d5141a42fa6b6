"""The store: what Clew remembers, on SQLite or PostgreSQL, through the same functions."""
