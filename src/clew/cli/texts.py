"""Words that a person gives to a command: typed, or from stdin where a hyphen stands."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

from clew.control.validation import LONGEST, check_size
from clew.ports.fault import Fault


class BadText(Fault):
    code = "cli:bad-text"


def given(text: str, what: str = "text") -> str:
    """What is to be said, never empty."""
    text = piped() if text == "-" else text
    if not text.strip():
        raise BadText(f"The {what} is empty.", "Say something, or write - to read it from stdin.")
    return checked(text, what)


def checked(text: str, what: str = "text") -> str:
    """As the server would: what it will not take is refused before anything is begun."""
    check_size(text, f"The {what}")
    try:
        text.encode()
    except UnicodeEncodeError as fault:
        raise BadText(f"The {what} is not valid UTF-8.", "Convert it first.") from fault
    return text


def piped() -> str:
    if sys.stdin is None:
        raise BadText("There is nothing to read: stdin is closed.", "Give the text as an argument.")
    try:
        return sys.stdin.read(LONGEST + 1).rstrip("\n")
    except UnicodeDecodeError as fault:
        raise BadText("What stands on stdin is not valid UTF-8.", "Convert it first.") from fault


def messages() -> Iterator[str]:
    """Every line of stdin that says something, as it comes."""
    while line := _line():
        if line.strip():
            yield checked(line.rstrip("\n"))


def _line() -> str:
    try:
        return sys.stdin.readline()
    except UnicodeDecodeError as fault:
        raise BadText("What stands on stdin is not valid UTF-8.", "Convert it first.") from fault


def pairs(words: tuple[str, ...], option: str) -> dict[str, str]:
    """NAME=VALUE, each."""
    found: dict[str, str] = {}
    for each in words:
        name, equals, value = each.partition("=")
        if not (name and equals):
            raise BadText(f"{option} takes NAME=VALUE, and not {each!r}.", f"Write {option} NAME=VALUE.")
        found[name] = checked(value, option)
    return found


def source(words: str) -> str:
    """An address that git can clone stays as it is; a path is meant from here."""
    if "://" in words or re.match(r"[\w.-]+@[\w.-]+:", words):
        return words
    return place(words)


def place(words: str) -> str:
    if not words.strip():
        raise BadText("An empty path names no directory.", "Name one.")
    return str(Path(words).expanduser().absolute())
