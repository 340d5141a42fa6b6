"""The store's edge: above the store a transaction is passed on and never used, and no import is hidden."""

import ast
import builtins
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[2] / "src" / "clew"
BELOW = ("store", "kernel")

OPENS = {"write", "read"}
"""The methods of Services that open a transaction."""

Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


def above_the_store() -> list[Path]:
    return [file for file in sorted(SOURCE.rglob("*.py")) if file.relative_to(SOURCE).parts[0] not in BELOW]


def misused(source: str) -> Iterator[int]:
    """Lines that do anything with a transaction except pass it to a function."""
    tree = ast.parse(source)
    called_with = {lambda_ for node in ast.walk(tree) if isinstance(node, ast.Call) for lambda_ in _operations(node)}
    for node in ast.walk(tree):
        if isinstance(node, Function):
            for name in _transactions(node, node in called_with):
                yield from _uses(node, name)


def _operations(call: ast.Call) -> list[ast.expr]:
    """The lambdas that this call runs in a transaction."""
    opens = isinstance(call.func, ast.Attribute) and call.func.attr in {*OPENS, "do"}
    return [each for each in call.args if isinstance(each, ast.Lambda)] if opens else []


def _transactions(function: Function, runs_in_one: bool) -> list[str]:
    given = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
    if runs_in_one:
        return [each.arg for each in given[:1]]
    return [
        each.arg
        for each in given
        if each.arg == "tx" or (each.annotation is not None and _is_transaction(ast.unparse(each.annotation)))
    ]


def _is_transaction(annotation: str) -> bool:
    """Not a function that takes one: that is called with it."""
    return any(kind.strip("'\"").rpartition(".")[2] == "Transaction" for kind in annotation.split(" | "))


def _uses(function: Function, name: str) -> Iterator[int]:
    passed: set[ast.expr] = set()
    for node in ast.walk(function):
        if isinstance(node, ast.Call) and not (isinstance(node.func, ast.Name) and hasattr(builtins, node.func.id)):
            passed |= {*node.args, *(each.value for each in node.keywords)}
    for node in ast.walk(function):
        if isinstance(node, ast.Name) and node.id == name and node not in passed:
            yield node.lineno


def imported_by_name(source: str) -> Iterator[int]:
    """Lines that import a module by its name, which no contract of imports can see."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Name(id="import_module" | "__import__") | ast.Attribute(attr="import_module" | "__import__"):
                yield node.lineno
            case ast.ImportFrom(module="importlib", names=names) if any(each.name == "import_module" for each in names):
                yield node.lineno
            case _:
                pass


@pytest.mark.parametrize("file", above_the_store(), ids=lambda file: str(file.relative_to(SOURCE)))
def test_the_edge_of_the_store_is_kept(file: Path) -> None:
    source = file.read_text(encoding="utf-8")
    assert not list(misused(source)), "a transaction is only passed on to functions of the store"
    assert not list(imported_by_name(source)), "use an import statement: the contracts read those"


@pytest.mark.parametrize(
    "planted",
    [
        "def take(tx: Transaction) -> None:\n    tx.exec_driver_sql('DELETE FROM runs')",
        "def take(at: Transaction) -> None:\n    at.execute(1)",
        "async def f(services):\n    await services.read(lambda anything: anything.execute(1))",
        "async def f(database):\n    database.do(lambda anything: anything.execute(1))",
        "def take(tx: Transaction) -> None:\n    getattr(tx, 'execute')(1)",
        "def take(tx: Transaction) -> None:\n    other = tx",
        "def take(tx: Transaction) -> Transaction:\n    return tx",
        "TAKE = lambda tx:\\\n    tx.execute(1)",
    ],
)
def test_a_transaction_that_is_used_is_found(planted: str) -> None:
    assert 2 in set(misused(planted))


def test_a_transaction_that_is_passed_on_is_fine() -> None:
    source = "def take(tx: Transaction) -> Run:\n    return read_run(find(tx, 1), tx=tx)\n"
    assert not list(misused(source + "async def f(services):\n    await services.read(lambda tx: take(tx))\n"))


@pytest.mark.parametrize(
    "planted",
    [
        "import importlib\nimportlib.import_module('sqlalchemy')",
        "from importlib import import_module\nimport_module('sqlalchemy')",
        "import os\n__import__('sqlalchemy')",
    ],
)
def test_an_import_by_name_is_found(planted: str) -> None:
    assert 2 in set(imported_by_name(planted))
