"""How an operation becomes a transaction: the two databases, statements, and hints that something changed."""
