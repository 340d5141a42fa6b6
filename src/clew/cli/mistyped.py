"""A command line that cannot be parsed: what is wrong in it, and what to type instead."""

import difflib
import re
from collections.abc import Sequence
from typing import Any, Literal, get_args, get_origin

from cyclopts import (
    App,
    CoercionError,
    CycloptsError,
    MissingArgumentError,
    UnknownCommandError,
    UnknownOptionError,
    UnusedCliTokensError,
)

from clew.cli.misuse import Misused

_MOST_LISTED = 10
_SAME = (
    ("add", "new", "create"),
    ("remove", "delete", "rm"),
    ("close", "delete", "rm"),
    ("list", "ls"),
    ("show", "get", "view"),
    ("edit", "update", "change"),
)
"""The first is a command of Clew's in some groups; the others are what it is called elsewhere."""
_ELSEWHERE = {
    "clew start": "clew up -d",
    "clew version": "clew --version",
    "clew help": "clew --help",
    "clew login": "clew doctor",
    "clew service start": "clew up -d",
    "clew service stop": "clew stop",
    "clew thread list": "clew threads",
    "clew thread ls": "clew threads",
}
_REF = re.compile(r"\d+|(?:run|issue|chat|own)-[\w-]+|\S+:\S+")
_TEXTS = frozenset({"TEXT", "TITLE"})
_OF_COMMANDS = ("--data", "--json")


class Mistyped(Misused):
    code = "usage"


def mistyped(fault: CycloptsError) -> Mistyped:
    command = " ".join(("clew", *(fault.command_chain or ())))
    words, remedy = _explained(fault, command)
    return Mistyped(words, f"{remedy} See `{command} --help`.".strip())


def _explained(fault: CycloptsError, command: str) -> tuple[str, str]:
    match fault:
        case UnknownCommandError():
            return _unknown_command(fault, command)
        case UnusedCliTokensError():
            return _unexpected(fault, command)
        case MissingArgumentError():
            return _missing(fault, command)
        case CoercionError():
            return _wrong_value(fault)
        case UnknownOptionError():
            words, asks, near = str(fault).partition(" Did you mean ")
            return words, (asks + near).strip()
        case _:
            return str(fault), ""


def _unknown_command(fault: CycloptsError, command: str) -> tuple[str, str]:
    typed = (fault.unused_tokens or [""])[0]
    if typed in _OF_COMMANDS and command == "clew":
        after = "" if typed == "--json" else " DIRECTORY"
        return f"{typed} goes after the command.", f"For example `clew runs {typed}{after}`."
    if typed.startswith("-"):
        return f"Unknown option: {typed}.", ""
    there = [] if fault.app is None else [name for name in fault.app if not name.startswith("-")]
    if meant := _meant(fault.app, command, typed, there):
        return f"Unknown command {typed!r}.", f"Did you mean `{meant}`?"
    return f"Unknown command {typed!r}.", f"Use one of: {', '.join(there)}." if len(there) <= _MOST_LISTED else ""


def _meant(app: App | None, command: str, typed: str, there: Sequence[str]) -> str:
    word = typed.lower()
    if elsewhere := _ELSEWHERE.get(f"{command} {word}"):
        return elsewhere
    if "show" in there and _REF.fullmatch(typed):
        return f"{command} show {typed}"
    same = [name for name in there for words in _SAME if name in words and word in words]
    near = same or difflib.get_close_matches(word, there, n=1)
    if near:
        return f"{command} {near[0]}"
    lists = word in ("list", "ls") and app is not None and app.default_command is not None
    return command if lists else ""


def _unexpected(fault: CycloptsError, command: str) -> tuple[str, str]:
    if fault.app is not None and _has_commands(fault.app):
        # `clew runs` lists, and `clew runs show` is a command of its own.
        return _unknown_command(fault, command)
    words = f"Unexpected argument: {', '.join(map(repr, fault.unused_tokens or ()))}."
    takes = [] if fault.app is None else list(fault.app.assemble_argument_collection())
    options, places = [each.name for each in takes], [_label(each) for each in takes if _is_positional(each)]
    if len(fault.unused_tokens or ()) == 1 and "--agent" in options and not places:
        return words, f"For an agent: `{command} --agent {(fault.unused_tokens or [''])[0]}`."
    if "--once" in options:
        return words, f"Say something with --once: `{command} {' '.join(places)} --once TEXT`."
    return words, "Put a text of several words in quotes." if _TEXTS.intersection(places) else ""


def _has_commands(app: App) -> bool:
    return any(not name.startswith("-") for name in app)


def _missing(fault: MissingArgumentError, command: str) -> tuple[str, str]:
    if fault.argument is None:
        return str(fault), ""
    name = fault.keyword or _label(fault.argument)
    if not name.startswith("-"):
        return f"{name} is missing.", f"Type `{' '.join((command, *_required(fault.app)))}`."
    typed = fault.root_input_tokens or []
    if fault.keyword is None or fault.keyword not in typed:
        return f"{name} is missing.", f"Add {name} with its value."
    after = typed[typed.index(fault.keyword) + 1 :]
    if after and after[0].startswith("-"):
        return f"{name} needs a value.", f"One that begins with a hyphen is written {name}={after[0]}."
    return f"{name} needs a value.", f"Write it after {name}."


def _required(app: App | None) -> list[str]:
    """What the command line must have: its arguments, then the options with their values."""
    needed = [] if app is None else [each for each in app.assemble_argument_collection() if each.required]
    options = [each.name for each in needed if each.name.startswith("-")]
    return [
        *(_label(each) for each in needed if _is_positional(each)),
        *(f"{name} {name.strip('-').upper()}" for name in options),
    ]


def _label(argument: Any) -> str:
    return str((_is_positional(argument) and argument.parameter.metavar) or argument.name)


def _is_positional(argument: Any) -> bool:
    return argument.field_info.is_positional and not argument.name.startswith("-")


_KINDS = {int: "a whole number", float: "a number"}


def _wrong_value(fault: CoercionError) -> tuple[str, str]:
    if fault.token is None or fault.msg is not None:
        return str(fault), ""
    typed = fault.token.value
    name = fault.token.keyword or ("The value" if fault.argument is None else _label(fault.argument))
    if get_origin(fault.target_type) is Literal:
        choices = [str(each) for each in get_args(fault.target_type)]
        near = difflib.get_close_matches(typed.lower(), choices, n=1)
        words = f"{name} cannot be {typed!r}."
        return words, f"Use one of: {', '.join(choices)}." + (f" Did you mean {near[0]}?" if near else "")
    if fault.target_type in _KINDS:
        return f"{name} takes {_KINDS[fault.target_type]}, not {typed!r}.", ""
    return str(fault), ""
