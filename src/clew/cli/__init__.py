"""The command line. Commands are in `commands/`; the other modules are shared by them."""

from clew.cli.program import main

__all__ = ["main"]
