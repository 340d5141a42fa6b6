"""Mutate the daemon and the store in a sample of places and list the mutants that no test catches.

`make mutants-sample` runs this. A seed picks the places, in proportion to how many each package has: the same seed on
the same code judges the same mutants. Every mutant is tried in a copy of the tree, in up to three passes:

    narrow  the package's own tests that start no agent, no server and no PostgreSQL
    broad   for what survived: the same tests of the packages that use it
    deep    for what survived that: the slow tests too, with PostgreSQL, but without agents

A mutant is caught when a test fails, or when a pass takes far longer than without a mutant. The exit code is 1 when a
mutant survived.
"""

import argparse
import ast
import importlib.util
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from queue import SimpleQueue
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "clew"
PASSES: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "narrow": {"daemon": ("daemon",), "store": ("store",)},
    "broad": {"daemon": ("cli", "server", "testing"), "store": ("control", "daemon", "cli", "server", "testing")},
    "deep": {"daemon": ("daemon", "up"), "store": ("store", "control")},
}
"""The directories of tests of each pass, by the package that is mutated."""
_PAIRS: tuple[tuple[Any, Any], ...] = (
    (ast.Eq, ast.NotEq),
    (ast.Lt, ast.LtE),
    (ast.Gt, ast.GtE),
    (ast.Is, ast.IsNot),
    (ast.In, ast.NotIn),
    (ast.And, ast.Or),
    (ast.Add, ast.Sub),
)
OTHER = dict(_PAIRS) | {second: first for first, second in _PAIRS}
"""Each operator becomes the other of its pair."""
Optional = Mapping[str, set[str]]
"""By the name of a function or class: its parameters and fields that have a default."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change of one file: the bytes from `start` to `end` become `after`."""

    path: str
    line: int
    start: int
    end: int
    before: str
    after: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line} {' '.join(self.before.split())} -> {self.after}"

    @property
    def package(self) -> str:
        return Path(self.path).parts[2]

    def apply(self, source: bytes) -> bytes:
        return source[: self.start] + self.after.encode() + source[self.end :]


# ---------------------------------------------------------------- which mutants there are


def mutations(node: ast.AST, optional: Optional) -> Iterator[tuple[ast.expr | ast.stmt, str]]:  # noqa: C901 - a table
    """What is replaced, and by what."""
    match node:
        case ast.Compare(left=left, ops=ops, comparators=others):
            for at, op in enumerate(ops):
                swapped = [*ops[:at], OTHER[type(op)](), *ops[at + 1 :]]
                yield node, ast.unparse(ast.Compare(left, swapped, others))
        case ast.BoolOp(op=op, values=values):
            yield node, ast.unparse(ast.BoolOp(OTHER[type(op)](), values))
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub() as op, right=right):
            if not any(isinstance(each, ast.Constant) and isinstance(each.value, str) for each in (left, right)):
                yield node, ast.unparse(ast.BinOp(left, OTHER[type(op)](), right))
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield node, ast.unparse(operand)
        case ast.If(test=test) | ast.IfExp(test=test):
            yield from forced(test)
        case ast.While(test=test):
            # Not True: most loops would not end.
            yield from (each for each in forced(test) if each[1] == "False")
        case ast.comprehension(ifs=tests):
            for test in tests:
                yield from forced(test)
        case ast.Constant(value=bool(value)):
            yield node, str(not value)
        case ast.Constant(value=int(number) | float(number)):
            yield node, str(number + 1)
        case ast.Return(value=ast.expr() as value) if not (isinstance(value, ast.Constant) and value.value is None):
            yield value, "None"
        case ast.Expr(value=ast.Call() | ast.Await()):
            yield node, "pass"
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name), keywords=keywords):
            for each in keywords:
                if each.arg in optional.get(name, ()):
                    rest = [other for other in keywords if other is not each]
                    yield node, ast.unparse(ast.Call(node.func, node.args, rest))
        case _:
            pass


def forced(test: ast.expr) -> Iterator[tuple[ast.expr, str]]:
    """A condition that is always met or never, unless it binds a name or is a constant already."""
    if not any(isinstance(node, ast.NamedExpr) for node in ast.walk(test)) and not isinstance(test, ast.Constant):
        yield from ((test, "True"), (test, "False"))


def parts(node: ast.AST) -> list[ast.AST]:
    """The parts of a node that are mutated: no annotation, decorator, assertion, export, log call or typing block."""
    match node:
        case ast.Assert() | ast.If(test=ast.Name(id="TYPE_CHECKING")) | ast.Assign(targets=[ast.Name(id="__all__")]):
            return []
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id="_log" | "logging" | "warnings")))):
            return []
        case ast.FunctionDef(args=args, body=body) | ast.AsyncFunctionDef(args=args, body=body):
            inner: list[ast.AST] = [*args.defaults, *filter(None, args.kw_defaults), *body]
        case ast.ClassDef(body=body):
            inner = [*body]
        case ast.AnnAssign(value=value):
            inner = [] if value is None else [value]
        case _:
            inner = [*ast.iter_child_nodes(node)]
    return [node, *(each for child in inner for each in parts(child))]


def mutants_of(path: Path, optional: Optional) -> Iterator[Mutant]:
    source, name = path.read_bytes(), path.relative_to(ROOT).as_posix()
    lines = [0, *accumulate(map(len, source.splitlines(keepends=True)))]
    for node in parts(ast.parse(source)):
        for replaced, after in mutations(node, optional):
            start = lines[replaced.lineno - 1] + replaced.col_offset
            end = lines[(replaced.end_lineno or 0) - 1] + (replaced.end_col_offset or 0)
            whole = after if isinstance(replaced, ast.stmt) else f"({after})"
            yield Mutant(name, replaced.lineno, start, end, source[start:end].decode(), whole)


def optional_arguments() -> Optional:
    found: dict[str, set[str]] = {}
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                own, args = found.setdefault(node.name, set()), [*node.args.posonlyargs, *node.args.args]
                own |= {each.arg for each in args[len(args) - len(node.args.defaults) :]}
                pairs = zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)
                own |= {each.arg for each, default in pairs if default is not None}
            elif isinstance(node, ast.ClassDef):
                fields = [each for each in node.body if isinstance(each, ast.AnnAssign) and each.value is not None]
                named = {each.target.id for each in fields if isinstance(each.target, ast.Name)}
                found.setdefault(node.name, set()).update(named)
    return found


def sample(count: int, seed: int) -> list[Mutant]:
    """So many places, spread over the packages as their places are; of each place one of its mutants."""
    optional, chance = optional_arguments(), random.Random(seed)
    places: dict[str, dict[tuple[str, int, int], list[Mutant]]] = {package: {} for package in PASSES["narrow"]}
    for package, there in places.items():
        for path in sorted((SOURCE / package).rglob("*.py")):
            for mutant in mutants_of(path, optional) if "migrations" not in path.parts else ():
                there.setdefault((mutant.path, mutant.start, mutant.end), []).append(mutant)
    total = sum(map(len, places.values()))
    picked: list[Mutant] = []
    for there in places.values():
        chosen = chance.sample([*there.values()], min(round(count * len(there) / total), len(there)))
        picked += map(chance.choice, chosen)
    print(f"seed {seed}: {len(picked)} of {total} places", flush=True)
    return picked


# ---------------------------------------------------------------- trying them


class Copies:
    """Copies of the tree. Their tests, and the programs that these start, import the sources of the copy."""

    def __init__(self, within: str, count: int) -> None:
        self.free: SimpleQueue[Path] = SimpleQueue()
        for number in range(count):
            place = Path(within) / str(number)
            shutil.copytree(ROOT, place, ignore=shutil.ignore_patterns(".*", "__pycache__", "mutants"))
            self.free.put(place)

    def judge(self, path: str, source: bytes, tests: Sequence[str], seconds: float | None = None) -> str:
        """What the tests say of the tree with that file as given: the first failure, or nothing."""
        place = self.free.get()
        file = place / path
        # A compiled module is current by the second and the size of its source, and a mutant may have both.
        compiled = Path(importlib.util.cache_from_source(str(file)))
        original = file.read_bytes()
        try:
            file.write_bytes(source)
            compiled.unlink(missing_ok=True)
            return run_tests(place, tests, seconds)
        finally:
            file.write_bytes(original)
            compiled.unlink(missing_ok=True)
            self.free.put(place)

    def limit(self, package: str, which: str) -> float:
        """The seconds that a mutant has. Shown on the way: the tests pass without a mutant, and they see a mutant."""
        path, began = f"src/clew/{package}/__init__.py", time.monotonic()
        tests = tests_for(path, package, which)
        if failed := self.judge(path, (ROOT / path).read_bytes(), tests):
            raise SystemExit(f"{which}: the tests for {package} fail without a mutant: {failed}")
        took = time.monotonic() - began
        if not self.judge(path, b"this is no Python\n", tests):
            raise SystemExit(f"{which}: the tests for {package} do not import the copy")
        print(f"{which}: the tests for {package} take {took:.0f} s", flush=True)
        return 60 + 3 * took


def tests_for(path: str, package: str, which: str) -> list[str]:
    """The arguments of pytest for a mutant of that file; the tests that are named like it come first."""
    words = {word.rstrip("s") for word in Path(path).stem.split("_")}
    files = [file for room in PASSES[which][package] for file in sorted((ROOT / "tests" / room).rglob("test_*.py"))]
    files.sort(key=lambda file: -len(words & {word.rstrip("s") for word in file.stem.split("_")}))
    return [*(() if which == "deep" else ("-m", "not slow")), *(str(file.relative_to(ROOT)) for file in files)]


def run_tests(place: Path, tests: Sequence[str], seconds: float | None) -> str:
    with tempfile.TemporaryDirectory(prefix="mut-", ignore_cleanup_errors=True) as scratch:
        env = {**os.environ, "PYTHONPATH": str(place / "src"), "TMPDIR": scratch, "CI": "1"}
        env.pop("PYTHONDONTWRITEBYTECODE", None)
        command = [sys.executable, "-m", "pytest", "-x", "-n", "0", "-p", "no:cacheprovider", "--tb=line", *tests]
        try:
            with (Path(scratch) / "said").open("w+b") as out:
                done = subprocess.run(command, cwd=place, env=env, stdout=out, stderr=out, timeout=seconds, check=False)
                out.seek(0)
                lines = out.read().decode(errors="replace").splitlines()
        except subprocess.TimeoutExpired:
            return f"no end within {seconds:.0f} s"
        finally:
            end_all(scratch)
        failed = [line for line in lines if line.startswith(("FAILED", "ERROR"))]
        return "" if done.returncode == 0 else (failed or lines or [f"exit code {done.returncode}"])[-1][:300]


def end_all(scratch: str) -> None:
    """End what a test run left behind: that has the run's scratch directory in its environment."""
    for environment in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):
            if f"TMPDIR={scratch}\0".encode() in environment.read_bytes():
                os.kill(int(environment.parent.name), signal.SIGKILL)


def survivors(mutants: Sequence[Mutant], which: str, copies: Copies, workers: int) -> list[Mutant]:
    """Those that this pass does not catch."""
    limits = {package: copies.limit(package, which) for package in sorted({mutant.package for mutant in mutants})}

    def survives(mutant: Mutant) -> bool:
        source = mutant.apply((ROOT / mutant.path).read_bytes())
        tests = tests_for(mutant.path, mutant.package, which)
        caught = copies.judge(mutant.path, source, tests, limits[mutant.package])
        print(f"{which} {'caught  ' if caught else 'SURVIVED'} {mutant} {caught}".rstrip(), flush=True)
        return not caught

    with ThreadPoolExecutor(workers) as pool:
        return [mutant for mutant, survived in zip(mutants, pool.map(survives, mutants), strict=True) if survived]


def main() -> int:
    parser = argparse.ArgumentParser(prog="make mutants-sample", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--places", type=int, default=200, help="how many mutants (%(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="which ones (%(default)s)")
    parser.add_argument("--workers", type=int, default=2, help="how many at once (%(default)s)")
    parser.add_argument("--list", action="store_true", help="print the mutants and try none")
    asked = parser.parse_args()
    mutants = sample(asked.places, asked.seed)
    if asked.list:
        print(*mutants, sep="\n")
        return 0
    left = mutants
    with tempfile.TemporaryDirectory(prefix="mutants-") as within:
        copies = Copies(within, asked.workers)
        for which in PASSES:
            left = survivors(left, which, copies, asked.workers)
    print("", *(f"survived: {mutant}" for mutant in left), sep="\n")
    print(f"{len(mutants) - len(left)} of {len(mutants)} mutants caught, {len(left)} survived")
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main())
