"""The calls of the API, one file for each kind of thing. Each is one use case of control."""
