"""How fast the store is, beside the bare database and beside others. `make bench-store` runs it."""
