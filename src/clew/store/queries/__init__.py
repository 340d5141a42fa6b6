"""Reads for the API: each uses an index, so that its cost does not grow with the history."""
