"""The operations: each a function over a connection, run as one transaction, safe to repeat."""
