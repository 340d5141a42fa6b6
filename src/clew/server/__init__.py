"""The server: HTTP API, live events, authentication. `data_dir` and `token` load fast: commands import them."""
