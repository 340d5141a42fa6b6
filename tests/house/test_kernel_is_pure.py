"""The kernel imports what is listed here and nothing else, and leaves the clock, the disk and chance alone."""

import ast
from pathlib import Path

import pytest

KERNEL = Path(__file__).resolve().parents[2] / "src" / "clew" / "kernel"

ALLOWED = {
    "__future__",
    "bisect",
    "collections",
    "collections.abc",
    "dataclasses",
    "datetime",
    "difflib",
    "enum",
    "fractions",
    "functools",
    "hashlib",
    "itertools",
    "json",
    "math",
    "operator",
    "posixpath",
    "re",
    "types",
    "typing",
}

# Of a module that also touches the disk, only what does not.
ALLOWED_NAMES = {"posixpath": {"normpath"}}

# Built in, so no import shows them; hash() and id() differ from one process to the next.
IMPURE_NAMES = {"__import__", "breakpoint", "eval", "exec", "hash", "input", "open", "print"}
IMPURE_CALLS = {"id"}
CLOCK_CALLS = {"now", "today", "utcnow"}
CLOCKS = {("date", "today"), ("datetime", "now"), ("datetime", "today"), ("datetime", "utcnow")}


def allowed(module: str) -> bool:
    return module in ALLOWED or module == "clew.kernel" or module.startswith("clew.kernel.")


def owner(node: ast.expr) -> str:
    """The last name before the dot: `datetime` in both `datetime.now` and `datetime.datetime.now`."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def impurities(source: str) -> list[str]:  # noqa: C901 - one flat list of what is not allowed
    found = []
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Import(names=names):
                found += [f"line {node.lineno}: imports {name.name}" for name in names if not allowed(name.name)]
            case ast.ImportFrom(module=module, level=0) if module and not allowed(module):
                found.append(f"line {node.lineno}: imports {module}")
            case ast.ImportFrom(level=level) if level > 0:
                found.append(f"line {node.lineno}: imports by a relative name")
            case ast.ImportFrom(module=str(module), names=names) if module in ALLOWED_NAMES:
                odd = [name.name for name in names if name.name not in ALLOWED_NAMES[module]]
                found += [f"line {node.lineno}: imports {name} of {module}" for name in odd]
            case ast.Attribute(value=ast.Name(id=module), attr=attr) if module in ALLOWED_NAMES:
                if attr not in ALLOWED_NAMES[module]:
                    found.append(f"line {node.lineno}: uses {module}.{attr}")
            case ast.Name(id=name, ctx=ast.Load()) if name in IMPURE_NAMES:
                found.append(f"line {node.lineno}: uses {name}")
            case ast.Call(func=ast.Name(id=name)) if name in IMPURE_CALLS:
                found.append(f"line {node.lineno}: calls {name}()")
            case ast.Call(func=ast.Attribute(value=value, attr=attr)) if attr in CLOCK_CALLS:
                if (owner(value), attr) not in CLOCKS:
                    found.append(f"line {node.lineno}: reads the clock by {attr}()")
            case ast.Call(func=ast.Attribute(attr="astimezone"), args=[], keywords=[]):
                found.append(f"line {node.lineno}: reads the machine's time zone")
            case ast.Attribute(value=value, attr=attr) if (owner(value), attr) in CLOCKS:
                found.append(f"line {node.lineno}: reads the clock by {owner(value)}.{attr}")
            case _:
                pass
    return found


def modules() -> list[Path]:
    return sorted(KERNEL.rglob("*.py"))


@pytest.mark.parametrize("module", [pytest.param(path, id=str(path.relative_to(KERNEL))) for path in modules()])
def test_kernel_module_is_pure(module: Path) -> None:
    assert impurities(module.read_text(encoding="utf-8")) == []


def test_there_is_a_kernel_to_check() -> None:
    assert modules()


@pytest.mark.parametrize(
    "source",
    [
        "import os",
        "import os.path",
        "from pathlib import Path",
        "from clew.store import tables",
        "from clew import kernelish",
        "from . import ids",
        "import pydantic",
        "def f():\n    import time",
        "from datetime import datetime\nx = datetime.now",
        "import datetime\nx = datetime.datetime.now(datetime.UTC)",
        "from datetime import date\nx = date.today()",
        "x = open('a')",
        "x = hash('a')",
        "x = id('a')",
        "o = open\no('a')",
        "from datetime import datetime as d\nx = d.now()",
        "x = at.astimezone()",
        "import posixpath\nx = posixpath.exists('/a')",
        "from posixpath import realpath",
        "from posixpath import os",
    ],
)
def test_an_impure_line_is_found(source: str) -> None:
    assert len(impurities(source)) == 1


@pytest.mark.parametrize(
    "source",
    ["from clew.kernel.ids import LaneId", "import clew.kernel", "from datetime import UTC, datetime", "x = ask.now"],
)
def test_a_pure_line_is_left_alone(source: str) -> None:
    assert impurities(source) == []
