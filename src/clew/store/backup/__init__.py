"""Backups: a snapshot of a database, its copy in a file, and the way back."""
