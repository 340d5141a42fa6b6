"""The routes of the API, one module per resource. Each route calls one use case of control."""
