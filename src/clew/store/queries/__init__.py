"""Reads for what is shown: each by an index, so that none of them grows with the history."""
