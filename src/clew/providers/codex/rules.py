"""Rules of Codex: whether a file of them could let a command out of the sandbox.

They are a program, in Starlark, so only what can be no other than strict is taken for strict: plain calls of one
function with plain words. Whatever else stands in the file, or cannot be read, counts as allowing.
"""

import ast
import re
from pathlib import Path

_FUNCTION = "prefix_rule"
_ARGUMENTS = frozenset({"pattern", "decision", "justification", "match", "not_match"})
_DECISION = "decision"
# A rule that names no decision allows.
_STRICT = frozenset({"prompt", "forbidden"})
# Where Python and Starlark may read differently: escapes, and what ends a line or is no text.
_READ_DIFFERENTLY = re.compile(r"[\\\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\ufeff]|\r(?!\n)")
_MOST = 1 << 20


def allows(file: Path) -> bool:
    try:
        if not file.is_file():
            return False
        with file.open("rb") as opened:
            data = opened.read(_MOST + 1)
        text = data.decode("utf-8")
    except (OSError, ValueError):
        return True
    return len(data) > _MOST or _READ_DIFFERENTLY.search(text) is not None or not _is_strict(text)


def _is_strict(text: str) -> bool:
    try:
        return all(_is_strict_rule(statement) for statement in ast.parse(text).body)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False


def _is_strict_rule(statement: ast.stmt) -> bool:
    match statement:
        case ast.Expr(value=ast.Call(func=ast.Name(id=name), args=[], keywords=keywords)) if name == _FUNCTION:
            # One that is named without a name hands on a whole dictionary.
            given = {each.arg: each.value for each in keywords if each.arg is not None}
            return (
                len(given) == len(keywords)
                and given.keys() <= _ARGUMENTS
                and all(map(_is_plain, given.values()))
                and _is_strict_decision(given.get(_DECISION))
            )
        case _:
            return False


def _is_plain(value: ast.expr) -> bool:
    match value:
        case ast.Constant(value=str()):
            return True
        case ast.List(elts=each):
            return all(map(_is_plain, each))
        case _:
            return False


def _is_strict_decision(value: ast.expr | None) -> bool:
    return isinstance(value, ast.Constant) and value.value in _STRICT
