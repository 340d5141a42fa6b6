"""The server: HTTP API, live events and who may use them. Parts of it that the command line uses load fast."""
