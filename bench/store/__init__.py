"""How fast `say` and `wake` are through the API, beside other queues. `make bench-store` runs it."""
