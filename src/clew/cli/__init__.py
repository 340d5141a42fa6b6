"""The command line: thin commands over what app puts together."""

from clew.cli.program import main

__all__ = ["main"]
