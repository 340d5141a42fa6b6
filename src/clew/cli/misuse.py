"""Misuse: a line that cannot be right, whatever the server knows. It ends with the exit status of a usage error."""

from collections.abc import Mapping

from clew.ports.fault import Fault


class Misused(Fault):
    code = "cli:options"


def not_together(options: Mapping[str, object], why: str = "") -> None:
    """Refuse two options of which each excludes the other. One counts as given unless it is None, False or empty."""
    given = [name for name, value in options.items() if value]
    if len(given) > 1:
        words = f"{given[0]} and {given[1]} cannot be combined"
        raise Misused(f"{words}: {why}." if why else f"{words}.", "Leave one of them out.")


def needs(options: Mapping[str, object], what: str, given: bool, remedy: str) -> None:
    """Refuse an option that means nothing without another."""
    alone = [name for name, value in options.items() if value]
    if alone and not given:
        raise Misused(f"{alone[0]} needs {what}.", remedy)
