"""The command line: thin commands over what wiring puts together."""

from clew.cli.program import main

__all__ = ["main"]
