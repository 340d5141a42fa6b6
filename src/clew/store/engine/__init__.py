"""How an operation becomes a transaction: the databases, statements, and hints that something changed."""
