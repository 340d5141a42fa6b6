"""Settings that are typed as NAME=VALUE: provider options, homes, environment variables."""

import os

from clew.cli.input import BadText, checked

_HOMES = "CLAUDE_CONFIG_DIR for claude, CODEX_HOME for codex, XDG_DATA_HOME for opencode, HOME for any"


def pairs(values: tuple[str, ...], option: str) -> dict[str, str]:
    """Parses NAME=VALUE items."""
    found: dict[str, str] = {}
    for each in values:
        name, equals, value = each.partition("=")
        if not (name and equals):
            how = f"Write {option} NAME=VALUE."
            if option == "--home":
                how = f"Name the variable that sets the home of its program: {_HOMES}."
            raise BadText(f"{option} takes NAME=VALUE, not {each!r}.", how)
        if name in found:
            raise BadText(f"{option} names {name} twice.", "Leave one of them out.")
        found[name] = checked(value, option)
    return found


def environment(words: tuple[str, ...], option: str = "--env") -> dict[str, str]:
    """NAME=VALUE, or NAME alone, so that a secret need not appear on the command line."""
    full: list[str] = []
    for each in words:
        if not each.strip():
            raise BadText(f"{option} names no variable.", f"Write {option} NAME or {option} NAME=VALUE.")
        if "=" in each:
            full.append(each)
        elif each in os.environ:
            full.append(f"{each}={os.environ[each]}")
        else:
            raise BadText(f"{each} is not set in this shell.", f"Set it first, or write {option} {each}=VALUE.")
    return pairs(tuple(full), option)


def unless_empty(values: tuple[str, ...]) -> tuple[str, ...]:
    """A single empty value means none at all."""
    return () if values == ("",) else values
