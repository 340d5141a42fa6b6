"""The operations: each is a function over a connection, runs as one transaction, and is safe to repeat."""
