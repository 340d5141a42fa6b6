"""Every use case takes the actor who asks for it, right after the services, so that no action is without a name."""

import ast
from collections.abc import Iterator
from pathlib import Path

import clew.control

CONTROL = Path(clew.control.__file__).parent
MACHINE_ALONE = {"find_program", "look_at_program", "own_program_providers"}
"""These ask one machine about its programs. They know no services, so they can change nothing."""


Function = ast.FunctionDef | ast.AsyncFunctionDef


def actorless(module: Path) -> Iterator[str]:
    """What takes no actor: public coroutines, public functions that are given the services, and public classes of
    which a method is given them or a field holds them."""
    for node in ast.parse(module.read_text(encoding="utf-8")).body:
        match node:
            case ast.AsyncFunctionDef(name=name) if not name.startswith("_") and not _is_given(node, "Actor"):
                yield f"{module.stem}.{name}"
            case ast.FunctionDef(name=name) if not name.startswith("_") and "services" in _parameters(node):
                if not _is_given(node, "Actor"):
                    yield f"{module.stem}.{name}"
            case ast.ClassDef(name=name) if not name.startswith("_") and any(map(_holds_services, node.body)):
                yield f"{module.stem}.{name}"


def _holds_services(member: ast.stmt) -> bool:
    if isinstance(member, ast.AnnAssign):
        return ast.unparse(member.annotation) == "Services"
    return isinstance(member, Function) and "services" in _parameters(member) and not _is_given(member, "MachineDaemon")


def _parameters(function: Function) -> dict[str, str]:
    given = [each for each in function.args.args if each.arg != "self"]
    return {each.arg: "" if each.annotation is None else ast.unparse(each.annotation) for each in given}


def _is_given(function: Function, kind: str) -> bool:
    return list(_parameters(function).items())[:2] == [("services", "Services"), ("actor", kind)]


def use_cases() -> set[str]:
    return {
        node.name
        for module in CONTROL.glob("*.py")
        for node in ast.parse(module.read_text(encoding="utf-8")).body
        if isinstance(node, ast.AsyncFunctionDef) and not node.name.startswith("_")
    }


def test_every_use_case_takes_an_actor() -> None:
    found = {each for module in CONTROL.rglob("*.py") for each in actorless(module)}
    wrong = sorted(each for each in found if each.rpartition(".")[2] not in MACHINE_ALONE)
    assert not wrong, f"These take no actor right after the services: {', '.join(wrong)}"
    assert {"say", "poke", "cancel_run", "answer_approval", "list_runs", "run_timers"} <= use_cases()


def test_a_use_case_without_an_actor_is_found(tmp_path: Path) -> None:
    planted = tmp_path / "planted.py"
    planted.write_text(
        "async def erase(services: Services, ref: str) -> None: ...\n"
        "async def show(services: Services, ref: str, actor: Actor) -> None: ...\n"
        "async def untyped(services, actor) -> None: ...\n"
        "async def named(services: Services, actor: Actor, ref: str) -> None: ...\n"
        "class Api:\n    def __init__(self, services: Services) -> None: ...\n"
        "def sync(services: Services, ref: str) -> None: ...\n"
        "def fine(tx: Transaction, ref: str) -> None: ...\n"
        "class Held:\n    services: Services\n"
        "class Method:\n    async def erase(self, services: Services, ref: str) -> None: ...\n"
        "class Good:\n    def __init__(self, services: Services, actor: MachineDaemon) -> None: ...\n"
    )
    names = ("erase", "show", "untyped", "Api", "sync", "Held", "Method")
    assert set(actorless(planted)) == {f"planted.{name}" for name in names}
