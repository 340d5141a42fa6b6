"""Find definitions in src/clew that nothing in src/clew uses. Tests, examples and benchmarks do not count as users.

`python -m tools.dead` checks the packages in `CHECKED` and exits with 1 when one of them has a dead definition.
`--all` lists the dead definitions of every package and exits with 0.

A definition is alive when code that runs can reach it: a statement of a module, an entry point, or the body of another
live definition. Functions, classes and constants are followed through imports. A method is reached by its name alone
(the type of `x` in `x.name` is not known here), so a method that shares its name with a live one is not found. An enum
member is reached by `Class.NAME`, or by any use of the class that can yield all its members. Fields are not examined:
they are data, and a store or a peer may need them.
"""

import argparse
import ast
import re
import sys
import tomllib
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src"

CHECKED = (
    "app",
    "cli",
    "context",
    "control",
    "daemon",
    "deliveries",
    "kernel",
    "ports",
    "programs",
    "protocol",
    "providers",
    "server",
    "store",
    "workspaces",
)
"""The packages of clew that have no dead definition and are to stay so."""

_EMBEDDING = "docs/kernel.md offers it to programs that embed the kernel"
_ENGINE = "part of the context engine's port: an engine from another package does its own compaction and upkeep in it"
_TRANSFER = "case T01: moving a session to another machine, which is planned, restores its archive there with it"
_MODEL = "case C22: changing the model of a session that stays open, which is planned; today it is opened anew"
_DELIVERY = "case H09: sending replies to chat rooms and other routes, which is planned"
_GONE = "case R08: moving queued work off a machine that does not come back, which is planned"

ALLOWED: dict[str, str] = {
    "clew.context.journal.FallbackEngine.compact": _ENGINE,
    "clew.context.journal.FallbackEngine.maintain": _ENGINE,
    "clew.context.journal.JournalEngine.compact": _ENGINE,
    "clew.context.journal.JournalEngine.maintain": _ENGINE,
    "clew.kernel.plan.explain": _EMBEDDING,
    "clew.kernel.plan.headline": _EMBEDDING,
    "clew.kernel.record.decision_to_record": f"{_EMBEDDING}; the store writes the same form with orjson",
    "clew.kernel.alerts.*": f"{_DELIVERY}; it decides whether a heartbeat's reply is worth sending",
    "clew.kernel.lease.GonePolicy*": _GONE,
    "clew.kernel.lease.stranded": _GONE,
    "clew.kernel.schedule.idle_ticks": "case H13: fewer ticks for an agent that makes no progress, which is planned",
    "clew.store.operations.moves.move_lane": _GONE,
    "clew.store.schema.tables.work.deliveries": _DELIVERY,
    "clew.store.schema.tables.work.routes": _DELIVERY,
    "clew.ports.context.ContextEngine.compact": _ENGINE,
    "clew.ports.context.ContextEngine.maintain": _ENGINE,
    "clew.ports.delivery.Delivery*": _DELIVERY,
    "clew.ports.delivery.delivery_id": _DELIVERY,
    "clew.ports.plugins.find_deliveries": _DELIVERY,
    "clew.ports.provider.LiveSession.set_model": _MODEL,
    "clew.ports.provider.Provider.restore": _TRANSFER,
    "clew.programs.acp.provider.AcpProvider.restore": _TRANSFER,
    "clew.programs.archive.join": _TRANSFER,
    "clew.providers.claude.provider.Claude.restore": _TRANSFER,
    "clew.providers.codex.provider.CodexProvider.restore": _TRANSFER,
    "clew.providers.codex.session.CodexSession.set_model": _MODEL,
    "clew.providers.command.provider.CommandProvider.restore": _TRANSFER,
    "clew.providers.guide.provider.GuideProvider.restore": _TRANSFER,
    "clew.providers.opencode.provider.OpenCodeProvider.restore": _TRANSFER,
}
"""Definitions that nothing in src/clew refers to and that stay, each with its reason. A trailing `*` is a prefix."""

# These decorators leave a definition as it is; any other one registers it somewhere.
PLAIN_DECORATORS = frozenset(
    {"abstractmethod", "asynccontextmanager", "cache", "cached_property", "classmethod", "contextmanager", "dataclass"}
    | {"final", "lru_cache", "override", "property", "runtime_checkable", "setter", "staticmethod", "wraps"}
)
ENUMS = frozenset({"Enum", "IntEnum", "StrEnum", "Flag", "IntFlag", "Reason"})
# Alembic loads the steps of a migration by their path and reads these names.
ALEMBIC = frozenset({"revision", "down_revision", "branch_labels", "depends_on", "upgrade", "downgrade"})
NAMED_BY_TEXT = frozenset({"getattr", "hasattr", "attrgetter", "methodcaller", "setattr"})

_PLACE = re.compile(r"\{(\w+(?:\.\w+)+)")

Function = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass
class Definition:
    """A named piece of code, and what its own code refers to (the definitions inside a class are separate)."""

    name: str
    kind: str
    path: str
    line: int
    owner: str | None = None
    root: bool = False
    uses: set[str] = field(default_factory=set)
    attributes: set[str] = field(default_factory=set)
    opens: set[str] = field(default_factory=set)

    @property
    def package(self) -> str:
        return self.name.split(".")[1] if "." in self.name else ""


@dataclass
class Module:
    name: str
    path: str
    tree: ast.Module
    imports: dict[str, str] = field(default_factory=dict)
    defined: set[str] = field(default_factory=set)


def name_of(node: ast.expr) -> str:
    """The last part of a decorator, base class or called function: `app.get` in `@app.get("/")` is `get`."""
    if isinstance(node, ast.Call | ast.Subscript):
        return name_of(node.func if isinstance(node, ast.Call) else node.value)
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def targets(node: ast.stmt) -> list[str]:
    """The names that an assignment binds."""
    if isinstance(node, ast.AnnAssign):
        return [node.target.id] if isinstance(node.target, ast.Name) else []
    if not isinstance(node, ast.Assign):
        return []
    return [each.id for target in node.targets for each in ast.walk(target) if isinstance(each, ast.Name)]


class Reader:
    """Reads all modules below `source` into definitions."""

    def __init__(self, source: Path = SOURCE) -> None:
        self.modules: dict[str, Module] = {}
        self.definitions: dict[str, Definition] = {}
        self.enums: set[str] = set()
        for path in sorted(source.rglob("*.py")):
            parts = path.relative_to(source).with_suffix("").parts
            name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            self.modules[name] = Module(
                name, f"src/{path.relative_to(source)}", ast.parse(path.read_text(encoding="utf-8"))
            )
        for module in self.modules.values():
            self._names(module)
        for module in self.modules.values():
            self._module(module)

    def _names(self, module: Module) -> None:
        for node in ast.walk(module.tree):
            if isinstance(node, ast.Import):
                module.imports.update({each.asname or each.name: each.name for each in node.names})
            elif isinstance(node, ast.ImportFrom):
                module.imports.update({each.asname or each.name: f"{node.module}.{each.name}" for each in node.names})
        for statement in module.tree.body:
            for each in _unfold(statement):
                if isinstance(each, (*Function, ast.ClassDef)):
                    module.defined.add(each.name)
                module.defined.update(targets(each))

    def resolve(self, name: str) -> str | None:
        """A dotted name → the definition or module that it stands for, through imports and re-exports."""
        home, _, last = name.rpartition(".")
        if home in self.modules:
            module = self.modules[home]
            if last in module.defined:
                return name
            # A package that imports a name has it, though one of its modules may be called the same.
            if module.imports.get(last, name) != name:
                return self.resolve(module.imports[last])
        if name in self.modules:
            return name
        owner = self.resolve(home) if home and home not in self.modules else None
        return None if owner is None or owner == home else self.resolve(f"{owner}.{last}")

    def _module(self, module: Module) -> None:
        body = self._define(module, module.name, "module", 1)
        body.root = True
        for statement in module.tree.body:
            for each in _unfold(statement):
                self._statement(module, each, body)

    def _define(self, module: Module, name: str, kind: str, line: int, owner: str | None = None) -> Definition:
        made = self.definitions.get(name) or Definition(name, kind, module.path, line, owner)
        made.root |= owner is None and name.rpartition(".")[2] in ALEMBIC and "revision" in module.defined
        self.definitions[name] = made
        return made

    def _statement(self, module: Module, node: ast.stmt, body: Definition) -> None:
        if isinstance(node, Function):
            made = self._define(module, f"{module.name}.{node.name}", "function", node.lineno)
            made.root |= _registered(node) or node.name.startswith("__")
            self._refer(module, node, made)
        elif isinstance(node, ast.ClassDef):
            self._class(module, node)
        elif isinstance(node, ast.Import | ast.ImportFrom) or targets(node) == ["__all__"]:
            return
        elif named := targets(node):
            for name in named:
                made = self._define(module, f"{module.name}.{name}", "constant", node.lineno)
                # The names that one statement unpacks live together: none of them can be left out.
                made.uses.update(f"{module.name}.{other}" for other in named)
                self._refer(module, node, made)
        else:
            self._refer(module, node, body)

    def _class(self, module: Module, node: ast.ClassDef) -> None:
        name = f"{module.name}.{node.name}"
        made = self._define(module, name, "class", node.lineno)
        made.root |= _registered(node)
        bases = [self._base(module, base) for base in node.bases]
        is_enum = any(base.rpartition(".")[2] in ENUMS or base in self.enums for base in bases)
        if is_enum:
            self.enums.add(name)
        # A base that is not ours calls the methods it knows.
        hooks = any(not base.startswith("clew.") and base.rpartition(".")[2] not in _NO_HOOKS for base in bases)
        for part in (*node.bases, *node.keywords, *node.decorator_list):
            self._refer(module, part, made)
        for each in node.body:
            named = targets(each)
            if isinstance(each, Function):
                method = self._define(module, f"{name}.{each.name}", "method", each.lineno, name)
                method.root |= _registered(each) or hooks or each.name.startswith("__") or each.name == "_missing_"
                self._refer(module, each, method)
            elif is_enum and isinstance(each, ast.Assign) and len(named) == 1 and not named[0].startswith("_"):
                self._refer(module, each, self._define(module, f"{name}.{named[0]}", "member", each.lineno, name))
            else:
                self._refer(module, each, made)

    def _base(self, module: Module, base: ast.expr) -> str:
        if isinstance(base, ast.Subscript):
            return self._base(module, base.value)
        dotted = _dotted(base) or ""
        return self.resolve(f"{module.name}.{dotted}") or module.imports.get(dotted, dotted)

    def _refer(self, module: Module, node: ast.AST, to: Definition) -> None:
        """Note what the code of `node` refers to."""
        whole = {id(each.value): each for each in ast.walk(node) if isinstance(each, ast.Attribute)}
        closed = set(_closed(node))
        for each in ast.walk(node):
            if isinstance(each, ast.Attribute):
                to.attributes.add(each.attr)
                dotted = _dotted(each)
                if dotted is not None and (found := self._reach(module, dotted)):
                    to.uses.update(found)
            elif isinstance(each, ast.Name) and isinstance(each.ctx, ast.Load):
                found = self._reach(module, each.id)
                to.uses.update(found)
                if id(each) not in whole and id(each) not in closed:
                    to.opens.update(found)
            elif isinstance(each, ast.MatchClass):
                to.attributes.update(each.kwd_attrs)
            elif isinstance(each, ast.Call) and name_of(each.func) in NAMED_BY_TEXT:
                to.attributes.update(
                    part
                    for given in each.args
                    if isinstance(given, ast.Constant) and isinstance(given.value, str)
                    for part in given.value.split(".")
                )
            elif isinstance(each, ast.Constant) and isinstance(each.value, str):
                to.uses.update(self._named(module, each.value))
                to.attributes.update(self._places(each.value))

    def _named(self, module: Module, text: str) -> set[str]:
        """What a string names: an annotation that is written as one, or the address of code that is loaded later."""
        if text.isidentifier():
            return self._reach(module, text)
        found = self.resolve(text.replace(":", ".")) if text.startswith("clew.") else None
        return set() if found is None or found in self.modules else {found}

    @staticmethod
    def _places(text: str) -> set[str]:
        """The attributes that a sentence with places like `{session.whose}` reads."""
        return {part for place in _PLACE.findall(text) for part in place.split(".")[1:]}

    def _reach(self, module: Module, dotted: str) -> set[str]:
        """The definitions that a dotted name touches: `plan.Outcome.HOLD` is a class and its member."""
        found: set[str] = set()
        parts = dotted.split(".")
        for end in range(1, len(parts) + 1):
            name = self.resolve(".".join([module.name, *parts[:end]]))
            if name is None and end == len(parts) and end > 1:
                owner = self.resolve(".".join([module.name, *parts[:-1]]))
                name = None if owner is None else f"{owner}.{parts[-1]}"
            if name is not None and name not in self.modules:
                found.add(name)
        return found


_NO_HOOKS = frozenset({"", "Protocol", "NamedTuple", "TypedDict", "Generic", "object", "ABC", "Exception", *ENUMS})


def _unfold(node: ast.stmt) -> Iterator[ast.stmt]:
    """The statements of a module, those inside `if` and `try` included."""
    if isinstance(node, ast.If | ast.Try | ast.With):
        for each in ast.iter_child_nodes(node):
            if isinstance(each, ast.stmt):
                yield from _unfold(each)
            elif isinstance(each, ast.ExceptHandler):
                for inner in each.body:
                    yield from _unfold(inner)
            elif isinstance(each, ast.expr):
                yield ast.copy_location(ast.Expr(each), node)
    else:
        yield node


def _registered(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> bool:
    return any(name_of(each) not in PLAIN_DECORATORS for each in node.decorator_list)


def _dotted(node: ast.expr) -> str | None:
    if isinstance(node, ast.Name):
        return node.id
    head = _dotted(node.value) if isinstance(node, ast.Attribute) else None
    return None if head is None or not isinstance(node, ast.Attribute) else f"{head}.{node.attr}"


def _closed(node: ast.AST) -> Iterator[int]:
    """The names whose use yields no member of an enum: the second argument of isinstance, annotations of functions."""
    for each in ast.walk(node):
        given: list[ast.AST] = []
        if isinstance(each, ast.Call) and name_of(each.func) in ("isinstance", "issubclass"):
            given = list(each.args[1:])
        elif isinstance(each, ast.arg):
            given = [each.annotation] if each.annotation else []
        elif isinstance(each, Function):
            given = [each.returns] if each.returns else []
        elif isinstance(each, ast.AnnAssign):
            given = [each.annotation]
        for part in given:
            yield from (id(inner) for inner in ast.walk(part))


def alive(reader: Reader, allowed: Collection[str]) -> set[str]:
    """Everything that the modules' own statements, the entry points and the allow list lead to."""
    known = reader.definitions
    entries = {reader.resolve(name) for name in _entry_points()}
    new = {name for name, each in known.items() if name in entries or (each.root and each.owner is None)}
    new |= {name for name in known if _matches(name, allowed)}
    reached: set[str] = set()
    attributes: set[str] = set()
    opened: set[str] = set()
    while new:
        reached |= new
        for each in map(known.__getitem__, new):
            attributes |= each.attributes
            opened |= each.opens
        used = {name for each in new for name in known[each].uses if name in known}
        parts = {
            name for name, each in known.items() if each.owner in reached and _part_lives(each, attributes, opened)
        }
        new = (used | parts) - reached
    return reached


def _part_lives(each: Definition, attributes: set[str], opened: set[str]) -> bool:
    """Whether a method or a member of a live class is used."""
    if each.kind == "member":
        return each.owner in opened
    return each.root or each.name.rpartition(".")[2] in attributes


def _entry_points() -> Iterator[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for group in (project["scripts"], *project.get("entry-points", {}).values()):
        yield from (address.replace(":", ".") for address in group.values())


def _matches(name: str, allowed: Collection[str]) -> bool:
    return any(name.startswith(each[:-1]) if each.endswith("*") else name == each for each in allowed)


def dead(reader: Reader, allowed: Collection[str] = ALLOWED) -> list[Definition]:
    """The definitions that nothing reaches; the parts of a dead class are not listed."""
    reached = alive(reader, allowed)
    found = [each for name, each in reader.definitions.items() if name not in reached]
    return [each for each in found if each.owner is None or each.owner in reached]


def stale(reader: Reader) -> list[str]:
    """The entries of the allow list that nothing needs any more."""
    reached = alive(reader, ())
    return [each for each in ALLOWED if not any(_matches(name, [each]) for name in reader.definitions.keys() - reached)]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Find definitions in src/clew that nothing in src/clew uses.")
    parser.add_argument("--all", action="store_true", help="list every package, and exit with 0")
    everything = parser.parse_args(arguments).all
    reader = Reader()
    found = [each for each in dead(reader) if everything or each.package in CHECKED]
    for each in found:
        print(f"{each.path}:{each.line}: {each.kind} {each.name} is not used")
    unneeded = stale(reader)
    for name in unneeded:
        print(f"tools/dead.py: {name} is allowed, and needs no allowance")
    counted = ", ".join(f"{count} {package}" for package, count in sorted(Counter(e.package for e in found).items()))
    scope = "all packages" if everything else ", ".join(CHECKED)
    print(f"{len(found)} dead definitions in {scope}{f' ({counted})' if counted else ''}; {len(ALLOWED)} allowed.")
    return 0 if everything else int(bool(found or unneeded))


if __name__ == "__main__":
    sys.exit(main())
