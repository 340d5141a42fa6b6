"""Every command that an error, a log line or a docstring tells a person to type is a command that there is."""

import re
from importlib import import_module
from pathlib import Path

import clew
from clew.cli.program import COMMANDS

NAMED = re.compile(r"`clew ([a-z][a-z-]*)(?: ([a-z][a-z-]*))?")
"""A command, and the word after it: a subcommand where the command has any."""


PLACES = {name: where for commands in COMMANDS.values() for name, where, _ in commands}


def unknown(text: str) -> list[str]:
    return [f"{command} {word}".strip() for command, word in NAMED.findall(text) if not _exists(command, word)]


def _exists(command: str, word: str) -> bool:
    module, _, name = PLACES.get(command, "").partition(":")
    if not module:
        return False
    return name != "app" or not word or word in import_module(module).app


def test_every_command_that_is_named_exists() -> None:
    package = Path(clew.__file__).parent
    wrong = {path.name: unknown(path.read_text(encoding="utf-8")) for path in package.rglob("*.py")}
    assert {name: each for name, each in wrong.items() if each} == {}


def test_a_command_that_does_not_exist_is_found() -> None:
    assert unknown("See `clew agents`, `clew agent lsit` and `clew agent list`.") == ["agents", "agent lsit"]
