"""Every use case takes the actor who asks for it, right after the services, and uses it where it writes; and all use
cases are in control."""

import ast
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

import clew.control

CONTROL = Path(clew.control.__file__).parent
SOURCE = CONTROL.parent
MACHINE_ALONE = {"find_program", "look_at_program", "own_program_providers"}
"""These ask one machine about its programs. They know no services, so they can change nothing."""

PARTS_OF_SERVICES = {"app": {"connect", "close"}, "server": {"hints"}}
"""What the rooms above control use of the services themselves: to put the parts together, and to stream changes."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


def actorless(module: Path) -> Iterator[str]:
    """What takes no actor: public coroutines, public functions and lambdas that are given the services, and public
    classes of which a method is given them or a field holds them."""
    for node in ast.parse(module.read_text(encoding="utf-8")).body:
        match node:
            case ast.AsyncFunctionDef(name=name) if not name.startswith("_") and not _is_given(node, "Actor"):
                yield f"{module.stem}.{name}"
            case ast.FunctionDef(name=name) if not name.startswith("_") and _takes_services(node.args):
                if not _is_given(node, "Actor"):
                    yield f"{module.stem}.{name}"
            case ast.ClassDef(name=name) if not name.startswith("_") and any(map(_holds_services, node.body)):
                yield f"{module.stem}.{name}"
            case ast.Assign(targets=targets, value=value) if _has_lambda(value):
                yield from (f"{module.stem}.{ast.unparse(each)}" for each in targets)
            case ast.AnnAssign(target=target, value=ast.expr() as value) if _has_lambda(value):
                yield f"{module.stem}.{ast.unparse(target)}"


def _holds_services(member: ast.stmt) -> bool:
    if isinstance(member, ast.AnnAssign):
        return _names_services(member.annotation) or (member.value is not None and _has_lambda(member.value))
    if isinstance(member, ast.Assign):
        return _has_lambda(member.value)
    if isinstance(member, ast.ClassDef):
        return any(map(_holds_services, member.body))
    return isinstance(member, Function) and _takes_services(member.args) and not _is_given(member, "MachineDaemon")


def _has_lambda(value: ast.expr) -> bool:
    return any(isinstance(each, ast.Lambda) and _takes_services(each.args) for each in ast.walk(value))


def _takes_services(given: ast.arguments) -> bool:
    every = [*given.posonlyargs, *given.args, *given.kwonlyargs, *filter(None, (given.vararg, given.kwarg))]
    return any(each.arg.strip("_") == "services" or _names_services(each.annotation) for each in every)


def _names_services(annotation: ast.expr | None) -> bool:
    """`Services`, `Services | None`, `"Services"`, `services.Services`."""
    return annotation is not None and "Services" in ast.unparse(annotation)


def _is_given(function: Function, kind: str) -> bool:
    given = [*function.args.posonlyargs, *function.args.args]
    typed = [(each.arg, "" if each.annotation is None else ast.unparse(each.annotation)) for each in given]
    return [each for each in typed if each[0] != "self"][:2] == [("services", "Services"), ("actor", kind)]


def nameless(modules: Iterable[Path]) -> set[str]:
    """Use cases that write, themselves or by a function of control that they call, and never use their actor."""
    functions = [
        (module, node)
        for module in modules
        for node in ast.parse(module.read_text(encoding="utf-8")).body
        if isinstance(node, Function)
    ]
    writing: set[str] = set()
    before = -1
    while before != len(writing):
        before = len(writing)
        writing |= {
            node.name
            for _, node in functions
            if _takes_services(node.args) and (_writes(node) or _loaded(node) & writing)
        }
    return {
        f"{module.stem}.{node.name}"
        for module, node in functions
        if node.name in writing and _is_given(node, "Actor") and "actor" not in _loaded(node)
    }


def _writes(function: Function) -> bool:
    return any(isinstance(each, ast.Attribute) and each.attr == "write" for each in ast.walk(function))


def _loaded(function: Function) -> set[str]:
    return {each.id for each in ast.walk(function) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Load)}


def used_of_services(source: str) -> set[str]:
    """What is used of the services themselves, instead of passing them to a use case."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Attribute(value=ast.Name(id=name) | ast.Attribute(attr=name), attr=attr):
                if name.strip("_") == "services":
                    found.add(attr)
            case _:
                pass
    return found


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


def test_every_use_case_that_writes_uses_its_actor() -> None:
    wrong = sorted(nameless(CONTROL.rglob("*.py")))
    assert not wrong, f"These write and record nobody: {', '.join(wrong)}"


@pytest.mark.parametrize("room", [each.name for each in sorted(SOURCE.iterdir()) if (each / "__init__.py").exists()])
def test_use_cases_are_in_control(room: str) -> None:
    """Without transactions and machines, nothing outside control can be a use case."""
    if room == "control":
        return
    used = {part for file in (SOURCE / room).rglob("*.py") for part in used_of_services(file.read_text("utf-8"))}
    assert used <= PARTS_OF_SERVICES.get(room, set())


def test_a_use_case_without_an_actor_is_found(tmp_path: Path) -> None:
    planted = tmp_path / "planted.py"
    planted.write_text(
        "async def erase(services: Services, ref: str) -> None: ...\n"
        "async def show(services: Services, ref: str, actor: Actor) -> None: ...\n"
        "async def untyped(services, actor) -> None: ...\n"
        "async def named(services: Services, actor: Actor, ref: str) -> None: ...\n"
        "class Api:\n    def __init__(self, services: Services) -> None: ...\n"
        "def sync(services: Services, ref: str) -> None: ...\n"
        "def other_name(at: Services, ref: str) -> None: ...\n"
        "def perhaps(at: Services | None = None) -> None: ...\n"
        "def quoted(at: 'Services') -> None: ...\n"
        "def by_keyword(*, at: Services) -> None: ...\n"
        "def several(*at: Services) -> None: ...\n"
        "short = lambda services: services.write(store.erase)\n"
        "TABLE = {'erase': lambda services: services.write(store.erase)}\n"
        "def fine(tx: Transaction, ref: str) -> None: ...\n"
        "class Held:\n    services: Services\n"
        "class HeldBy:\n    at: Services | None\n"
        "class Method:\n    async def erase(self, at: Services, ref: str) -> None: ...\n"
        "class Good:\n    def __init__(self, services: Services, actor: MachineDaemon) -> None: ...\n"
    )
    functions = ("erase", "show", "untyped", "sync", "other_name", "perhaps", "quoted", "by_keyword", "several")
    names = (*functions, "short", "TABLE", "Api", "Held", "HeldBy", "Method")
    assert set(actorless(planted)) == {f"planted.{name}" for name in names}


def test_a_use_case_that_writes_and_records_nobody_is_found(tmp_path: Path) -> None:
    planted = tmp_path / "planted.py"
    planted.write_text(
        "async def erase(services: Services, actor: Actor) -> None:\n    await services.write(store.erase)\n"
        "async def by_another(services: Services, actor: Actor) -> None:\n    await _erase(services)\n"
        "async def _erase(services: Services) -> None:\n    await services.write(store.erase)\n"
        "async def show(services: Services, actor: Actor) -> None:\n    await services.read(store.look)\n"
        "async def fine(services: Services, actor: Actor) -> None:\n"
        "    await services.write(partial(store.erase, by=name_of(actor)))\n"
    )
    assert nameless([planted]) == {"planted.erase", "planted.by_another"}


@pytest.mark.parametrize(
    "planted",
    [
        "async def erase(services):\n    await services.write(store.erase)",
        "class Route:\n    async def erase(self):\n        await self._services.write(store.erase)",
    ],
)
def test_a_use_case_outside_control_is_found(planted: str) -> None:
    assert used_of_services(planted) == {"write"}
