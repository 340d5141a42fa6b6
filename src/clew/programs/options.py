"""The options of a provider: one that it does not know is refused when it is given, and not left unheard."""

from collections.abc import Iterable, Mapping

from clew.programs.faults import BadOptions


def must_be_known(options: Mapping[str, str], known: Iterable[str], whose: str) -> None:
    """`whose` begins the sentence, as in "An ACP agent"."""
    there = sorted(known)
    unknown = sorted(set(options) - set(there))
    if unknown:
        words = f"{whose} has no option {', '.join(unknown)}."
        raise BadOptions(words, f"It has {', '.join(there)}." if there else "It has none: leave it out.")
