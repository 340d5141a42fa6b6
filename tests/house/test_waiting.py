"""Nothing waits in a way that can forget that it was called off.

In Python 3.11 `asyncio.wait_for` swallows a cancellation when what it waits for completes at the same moment: whoever
called the task off waits for an end that never comes. `async with asyncio.timeout(...)` takes as long and forgets
nothing.
"""

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[2] / "src" / "clew"

WHY = "asyncio.wait_for forgets a cancellation in Python 3.11; use `async with asyncio.timeout(...)`"


def forgetful(source: str) -> list[int]:
    """Lines that take wait_for from asyncio; a threading.Condition's own is another matter."""
    tree = ast.parse(source)
    names = {
        (name.asname or name.name).partition(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import)
        for name in node.names
        if name.name.partition(".")[0] == "asyncio"
    }
    found = []
    for node in ast.walk(tree):
        match node:
            case ast.ImportFrom(module=str(module), names=taken) if module.partition(".")[0] == "asyncio":
                found += [node.lineno for each in taken if each.name == "wait_for"]
            case ast.Attribute(value=value, attr="wait_for") if ast.unparse(value).partition(".")[0] in names:
                found.append(node.lineno)
            case _:
                pass
    return found


def test_nothing_waits_by_wait_for() -> None:
    found = {
        f"{path.relative_to(SOURCE)}:{line}"
        for path in sorted(SOURCE.rglob("*.py"))
        for line in forgetful(path.read_text(encoding="utf-8"))
    }
    assert not found, f"{WHY}: {sorted(found)}"


@pytest.mark.parametrize(
    "source",
    [
        "import asyncio\nasyncio.wait_for(a, 1)",
        "import asyncio as io\nwait = io.wait_for",
        "import asyncio.tasks\nasyncio.tasks.wait_for(a, 1)",
        "from asyncio import wait_for",
        "from asyncio.tasks import wait_for as patient",
        "def f():\n    from asyncio import Event, wait_for",
    ],
)
def test_a_forgetful_wait_is_found(source: str) -> None:
    assert len(forgetful(source)) == 1


def test_a_condition_may_wait_for_what_it_likes() -> None:
    assert forgetful("import asyncio\nself.bell.wait_for(ready, 1)\nasyncio.wait(a)") == []
