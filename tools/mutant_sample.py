"""Mutate the daemon and the store in a sample of places and list the mutants that no test catches.

`make mutants-sample` runs this. A seed picks the places, in proportion to how many each package has: the same seed on
the same code judges the same mutants. Every mutant is tried in a copy of the tree, in up to three passes:

    narrow  the package's own tests that start no agent, no server and no PostgreSQL
    broad   for what survived: the same tests of the packages that use it
    deep    for what survived that: the slow tests too, with PostgreSQL, but without agents

A mutant is caught when a test fails, or when a pass takes far longer than without a mutant. Each verdict is appended to
a JSON-lines file at once, and a run that was interrupted goes on from there. The exit code is 1 when a mutant survived.
"""

import argparse
import ast
import importlib.util
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from dataclasses import asdict, dataclass
from itertools import accumulate, pairwise
from pathlib import Path
from queue import SimpleQueue

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "clew"
ROOMS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "narrow": {"daemon": ("daemon",), "store": ("store",)},
    "broad": {"daemon": ("cli", "server", "testing"), "store": ("control", "daemon", "cli", "server", "testing")},
    "deep": {"daemon": ("daemon", "up"), "store": ("store", "control")},
}
"""The directories of tests of each pass, by the package that is mutated."""
PACKAGES = tuple(ROOMS["narrow"])
PLANTED = b"this is no Python\n"
COMPARISONS: dict[type[ast.cmpop], tuple[str, str]] = {
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Is: ("is", "is not"),
    ast.IsNot: (r"is\s+not", "is"),
    ast.In: ("in", "not in"),
    ast.NotIn: (r"not\s+in", "in"),
}
Positioned = ast.expr | ast.stmt | ast.keyword


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
        return f"{self.path}:{self.line} {' '.join(self.before.split())} -> {self.after or '(nothing)'}"

    def apply(self, source: bytes) -> bytes:
        return source[: self.start] + self.after.encode() + source[self.end :]


class Places:
    """The mutants of a file."""

    def __init__(self, path: Path, optional: Mapping[str, set[str]]) -> None:
        self.path, self.source, self.optional = path.relative_to(ROOT).as_posix(), path.read_bytes(), optional
        self.lines = [0, *accumulate(map(len, self.source.splitlines(keepends=True)))]
        self.found: list[Mutant] = []
        waiting: list[ast.AST] = [ast.parse(self.source)]
        while waiting:
            node = waiting.pop()
            self.mutate(node)
            waiting += parts(node)

    def mutate(self, node: ast.AST) -> None:  # noqa: C901 - a table, one row for each kind of mutation
        match node:
            case ast.Compare(left=first, ops=operators, comparators=others):
                for left, operator, right in zip((first, *others), operators, others, strict=False):
                    self.swap(left, right, *COMPARISONS[type(operator)])
            case ast.BoolOp(op=operator, values=values):
                for left, right in pairwise(values):
                    self.swap(left, right, *(("and", "or") if isinstance(operator, ast.And) else ("or", "and")))
            case ast.BinOp(op=ast.Add() | ast.Sub() as operator, left=left, right=right):
                if not any(isinstance(each, ast.Constant) and isinstance(each.value, str) for each in (left, right)):
                    self.swap(left, right, *((r"\+", "-") if isinstance(operator, ast.Add) else ("-", "+")))
            case ast.UnaryOp(op=ast.Not()):
                self.add(self.start(node), self.start(node) + len("not"), "")
            case ast.If(test=test) | ast.IfExp(test=test):
                self.force(test, "True", "False")
            case ast.While(test=test):
                self.force(test, "False")
            case ast.comprehension(ifs=tests):
                for test in tests:
                    self.force(test, "True", "False")
            case ast.Constant(value=bool(value)):
                self.replace(node, str(not value))
            case ast.Constant(value=int(number) | float(number)):
                self.replace(node, str(number + 1))
            case ast.Return(value=ast.Constant(value=None)):
                pass
            case ast.Return(value=ast.expr() as value):
                self.replace(value, "None")
            case ast.Expr(value=ast.Call() | ast.Await(value=ast.Call())):
                self.replace(node, "pass")
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name), keywords=keywords):
                for each in keywords:
                    if each.arg in self.optional.get(name, ()):
                        comma = re.match(rb"\s*,", self.source[self.end(each) :])
                        self.add(self.start(each), self.end(each) + (comma.end() if comma else 0), "")
            case _:
                pass

    def force(self, test: ast.expr, *after: str) -> None:
        """Force a condition, unless it binds a name or is a constant already."""
        if not isinstance(test, ast.Constant) and not any(isinstance(node, ast.NamedExpr) for node in ast.walk(test)):
            self.replace(test, *after)

    def replace(self, node: ast.expr | ast.stmt, *after: str) -> None:
        for each in after:
            self.add(self.start(node), self.end(node), each)

    def swap(self, left: ast.expr, right: ast.expr, pattern: str, after: str) -> None:
        """Swap the operator between two operands; parentheses may stand there as well."""
        start, end = self.end(left), self.start(right)
        found = re.search(pattern.encode(), self.source[start:end])
        assert found is not None
        self.add(start + found.start(), start + found.end(), after)

    def add(self, start: int, end: int, after: str) -> None:
        before = self.source[start:end].decode()
        self.found.append(Mutant(self.path, self.source.count(b"\n", 0, start) + 1, start, end, before, after))

    def start(self, node: Positioned) -> int:
        return self.lines[node.lineno - 1] + node.col_offset

    def end(self, node: Positioned) -> int:
        return self.lines[(node.end_lineno or 0) - 1] + (node.end_col_offset or 0)


def parts(node: ast.AST) -> list[ast.AST]:
    """The parts of a node that are mutated: no annotation, decorator, assertion, export, log call or typing block."""
    match node:
        case ast.FunctionDef(args=args, body=body) | ast.AsyncFunctionDef(args=args, body=body):
            found: list[ast.AST] = [*args.defaults, *filter(None, args.kw_defaults), *body]
        case ast.ClassDef(body=body):
            found = [*body]
        case ast.AnnAssign(value=value):
            found = [] if value is None else [value]
        case _:
            found = [*ast.iter_child_nodes(node)]
    return [each for each in found if not _is_left_alone(each)]


def _is_left_alone(node: ast.AST) -> bool:
    match node:
        case ast.Assert() | ast.If(test=ast.Name(id="TYPE_CHECKING")) | ast.Assign(targets=[ast.Name(id="__all__")]):
            return True
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id="_log" | "logging" | "warnings")))):
            return True
        case _:
            return False


def optional_arguments() -> dict[str, set[str]]:
    """By the name of a function or class of Clew: its parameters and fields that have a default."""
    found: dict[str, set[str]] = {}
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                args = [*node.args.posonlyargs, *node.args.args]
                named = [each.arg for each in args[len(args) - len(node.args.defaults) :]]
                pairs = zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)
                named += [each.arg for each, default in pairs if default is not None]
                found.setdefault(node.name, set()).update(named)
            elif isinstance(node, ast.ClassDef):
                fields = [each for each in node.body if isinstance(each, ast.AnnAssign) and each.value is not None]
                named = [each.target.id for each in fields if isinstance(each.target, ast.Name)]
                found.setdefault(node.name, set()).update(named)
    return found


def sample(count: int, seed: int) -> list[Mutant]:
    """So many places, spread over the packages as their places are; of each place one of its mutants."""
    optional, chance = optional_arguments(), random.Random(seed)
    pools: list[list[list[Mutant]]] = []
    for package in PACKAGES:
        places: dict[tuple[str, int, int], list[Mutant]] = {}
        for path in sorted((SOURCE / package).rglob("*.py")):
            if "migrations" not in path.parts:
                for mutant in Places(path, optional).found:
                    places.setdefault((mutant.path, mutant.start, mutant.end), []).append(mutant)
        pools.append(list(places.values()))
    total = sum(map(len, pools))
    shares = [round(count * len(pool) / total) for pool in pools]
    shares[-1] = count - sum(shares[:-1])
    picked = [
        place for pool, share in zip(pools, shares, strict=True) for place in chance.sample(pool, min(share, len(pool)))
    ]
    print(f"seed {seed}: {len(picked)} of {total} places ({dict(zip(PACKAGES, shares, strict=True))})", flush=True)
    return [chance.choice(place) for place in picked]


# ---------------------------------------------------------------- trying them


def tests_of(path: str, which: str) -> list[str]:
    """The arguments of pytest for a mutant of that file; the tests that are named like it come first."""
    words = {word.rstrip("s") for word in Path(path).stem.split("_")}
    files = [
        file.relative_to(ROOT)
        for room in ROOMS[which][Path(path).parts[2]]
        for file in sorted((ROOT / "tests" / room).rglob("test_*.py"))
    ]
    files.sort(key=lambda file: -len(words & {word.rstrip("s") for word in file.stem.split("_")}))
    return [*(() if which == "deep" else ("-m", "not slow")), *map(str, files)]


class Copy:
    """A copy of the tree. Its tests and the programs that they start import its sources, not those of the tree."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.running: subprocess.Popen[bytes] | None = None
        shutil.copytree(ROOT, place, ignore=shutil.ignore_patterns(".*", "__pycache__", "mutants"))

    def judge(self, path: str, mutate: Callable[[bytes], bytes], which: str, seconds: float | None) -> str:
        """What the tests say of the tree with that file mutated: the first failure, or nothing."""
        file = self.place / path
        original = file.read_bytes()
        # A compiled module is current by the second and the size of its source, and a mutant may have both.
        compiled = Path(importlib.util.cache_from_source(str(file)))
        try:
            file.write_bytes(mutate(original))
            compiled.unlink(missing_ok=True)
            return self._pytest(tests_of(path, which), seconds)
        finally:
            file.write_bytes(original)
            compiled.unlink(missing_ok=True)

    def stop(self) -> None:
        if self.running is not None:
            with suppress(ProcessLookupError):
                os.killpg(self.running.pid, signal.SIGKILL)

    def _pytest(self, tests: Sequence[str], seconds: float | None) -> str:
        with tempfile.TemporaryDirectory(prefix="mut-", ignore_cleanup_errors=True) as scratch:
            env = {**os.environ, "PYTHONPATH": str(self.place / "src"), "TMPDIR": scratch, "CI": "1"}
            env.pop("PYTHONDONTWRITEBYTECODE", None)
            command = [sys.executable, "-m", "pytest", "-x", "-n", "0", "-p", "no:cacheprovider", "--tb=line", *tests]
            said = Path(scratch) / "said"
            with said.open("wb") as out:
                running = self.running = subprocess.Popen(
                    command, cwd=self.place, env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=out, process_group=0
                )
            try:
                code = running.wait(seconds)
            except subprocess.TimeoutExpired:
                return f"no end within {seconds} s"
            finally:
                _end(running, scratch)
            lines = said.read_text(encoding="utf-8", errors="replace").splitlines()
            failed = [line for line in lines if line.startswith(("FAILED", "ERROR"))]
            return "" if code == 0 else (failed or lines or [f"exit code {code}"])[-1][:300]


def _end(running: "subprocess.Popen[bytes]", scratch: str) -> None:
    """End the group of a test run, and what has left it: that has the run's scratch directory in its environment."""
    with suppress(ProcessLookupError):
        os.killpg(running.pid, signal.SIGKILL)
    running.wait()
    for environment in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):
            if f"TMPDIR={scratch}".encode() in environment.read_bytes():
                os.kill(int(environment.parent.name), signal.SIGKILL)


class Trial:
    """Tries mutants, each in one of the copies; verdicts go to a file."""

    def __init__(self, copies: Sequence[Copy], verdicts: Path) -> None:
        self.copies, self.verdicts, self.workers = copies, verdicts, len(copies)
        self.free: SimpleQueue[Copy] = SimpleQueue()
        for copy in copies:
            self.free.put(copy)

    def judge(self, path: str, mutate: Callable[[bytes], bytes], which: str, seconds: float | None = None) -> str:
        copy = self.free.get()
        try:
            return copy.judge(path, mutate, which, seconds)
        finally:
            self.free.put(copy)

    def limit(self, package: str, which: str) -> float:
        """The seconds that a mutant has. Shown on the way: the tests pass without a mutant, and they see a mutant."""
        path, began = f"src/clew/{package}/__init__.py", time.monotonic()
        if failed := self.judge(path, bytes, which):
            raise SystemExit(f"{which}: the tests of {package} fail without a mutant: {failed}")
        took = time.monotonic() - began
        if not self.judge(path, lambda _: PLANTED, which):
            raise SystemExit(f"{which}: the tests of {package} do not import the copy")
        print(f"{which}: the tests for {package} take {took:.0f} s", flush=True)
        return round(60 + 3 * took)

    def survivors(self, mutants: Iterable[Mutant], which: str, again: bool) -> list[Mutant]:
        """Those that this pass does not catch."""
        known = self._known(which)
        caught = {mutant: known[mutant] for mutant in mutants if mutant in known and not (again and not known[mutant])}
        left = [mutant for mutant in mutants if mutant not in caught]
        packages = {Path(mutant.path).parts[2] for mutant in left}
        with ThreadPoolExecutor(self.workers) as pool:
            try:
                limits = dict(zip(packages, pool.map(lambda each: self.limit(each, which), packages), strict=True))
                jobs = {
                    pool.submit(self.judge, each.path, each.apply, which, limits[Path(each.path).parts[2]]): each
                    for each in left
                }
                for job in as_completed(jobs):
                    caught[jobs[job]] = job.result()
                    with self.verdicts.open("a", encoding="utf-8") as out:
                        line = {"pass": which, "caught": job.result(), "mutant": asdict(jobs[job])}
                        out.write(json.dumps(line) + "\n")
                    print(f"{which} {'caught  ' if job.result() else 'SURVIVED'} {jobs[job]}", flush=True)
            except BaseException:
                # Interrupted: what is being tried is ended, and nothing is tried after it.
                pool.shutdown(wait=False, cancel_futures=True)
                for copy in self.copies:
                    copy.stop()
                raise
        return [mutant for mutant in mutants if not caught[mutant]]

    def _known(self, which: str) -> dict[Mutant, str]:
        if not self.verdicts.exists():
            return {}
        lines = map(json.loads, self.verdicts.read_text(encoding="utf-8").splitlines())
        return {Mutant(**line["mutant"]): line["caught"] for line in lines if line["pass"] == which}


def main() -> int:
    parser = argparse.ArgumentParser(prog="make mutants-sample", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--places", type=int, default=200, help="how many mutants (%(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="which ones (%(default)s)")
    parser.add_argument("--workers", type=int, default=2, help="how many at once (%(default)s)")
    parser.add_argument("--passes", nargs="+", choices=list(ROOMS), default=list(ROOMS), help="only these")
    parser.add_argument("--again", action="store_true", help="try those that survived before once more")
    parser.add_argument("--list", action="store_true", help="print the mutants and try none")
    parser.add_argument("--verdicts", type=Path, help="the JSON-lines file; otherwise mutants/sample-SEED-PLACES.jsonl")
    asked = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    mutants = sample(asked.places, asked.seed)
    if asked.list:
        print(*mutants, sep="\n")
        return 0
    verdicts = asked.verdicts or ROOT / "mutants" / f"sample-{asked.seed}-{asked.places}.jsonl"
    verdicts.parent.mkdir(exist_ok=True)
    left = mutants
    with tempfile.TemporaryDirectory(prefix="mutants-") as scratch:
        trial = Trial([Copy(Path(scratch) / str(number)) for number in range(asked.workers)], verdicts)
        for which in asked.passes:
            left = trial.survivors(left, which, asked.again)
    print("", *(f"survived: {mutant}" for mutant in left), sep="\n")
    caught = len(mutants) - len(left)
    print(f"{caught} of {len(mutants)} mutants caught, {len(left)} survived ({', '.join(asked.passes)})")
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main())
