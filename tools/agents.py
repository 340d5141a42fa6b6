"""Install the real agents that the tests drive, each at the version that agents/package.json pins.

    python -m tools.agents                  install them, once, into the cache
    python -m tools.agents --if-possible    the same, but a machine that cannot is told so and it is no failure
    python -m tools.agents --lock           write agents/package-lock.json again after a change of a pin

They come from the npm registry that is configured here and go into $CLEW_CACHE, or clew/ below $XDG_CACHE_HOME or
~/.cache, never into the clone. Nothing of the packages is run to install them.
"""

import argparse
import fcntl
import hashlib
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

PINS = Path(__file__).resolve().parents[1] / "agents"
SPACE = 3 * 10**9
DEADLINE = 1800.0
EVERY = 10.0

Tell = Callable[[str], None]


class CannotInstall(Exception):
    """The agents cannot be installed here. The text says why and what to do."""


@dataclass(frozen=True)
class Program:
    """`command` starts the program itself, not a wrapper that would outlive or hide it."""

    name: str
    version: str
    command: tuple[str, ...]

    @property
    def path(self) -> Path:
        return Path(self.command[-1])


@dataclass(frozen=True)
class Source:
    """Where a program lies below node_modules; the platform's own build has the platform in its path."""

    package: str
    found: str
    script: bool = False
    tells_version: bool = True


SOURCES = {
    "claude": Source("@anthropic-ai/claude-code", "@anthropic-ai/claude-code-*/claude"),
    "codex": Source("@openai/codex", "@openai/codex-*/vendor/*/bin/codex"),
    "opencode": Source("opencode-ai", "opencode-*/bin/opencode"),
    "claude-acp": Source(
        "@zed-industries/claude-code-acp",
        "@zed-industries/claude-code-acp/dist/index.js",
        script=True,
        tells_version=False,
    ),
    "codex-acp": Source("@zed-industries/codex-acp", "@zed-industries/codex-acp-*/bin/codex-acp", tells_version=False),
}


# ---------------------------------------------------------------- what is there


def pins() -> dict[str, str]:
    """The pinned version of every program, by the program's name."""
    versions = json.loads((PINS / "package.json").read_text(encoding="utf-8"))["dependencies"]
    return {name: versions[source.package] for name, source in SOURCES.items()}


def cache() -> Path:
    """Where what can be fetched again is kept."""
    if own := os.environ.get("CLEW_CACHE"):
        return Path(own).absolute()
    shared = os.environ.get("XDG_CACHE_HOME")
    return (Path(shared) if shared else Path.home() / ".cache") / "clew"


def place() -> Path:
    """Where these pins belong on this kind of machine. It is there only when the whole of it is."""
    digest = hashlib.sha256((PINS / "package-lock.json").read_bytes())
    digest.update(f"{platform.system()} {platform.machine()}".encode())
    return cache() / "agents" / digest.hexdigest()[:16]


def programs(where: Path) -> dict[str, Program]:
    """The programs of an installation. One that has no build for this platform is not among them."""
    versions = pins()
    there = {}
    for name, source in SOURCES.items():
        path = _best(sorted((where / "node_modules").glob(source.found)))
        node = shutil.which("node") if source.script else ""
        if path and node is not None:
            there[name] = Program(name, versions[name], (node, str(path)) if node else (str(path),))
    return there


def _best(paths: Sequence[Path]) -> Path | None:
    """OpenCode has a second build for processors without AVX2."""
    old = [path for path in paths if "-baseline" in str(path)]
    new = [path for path in paths if path not in old]
    return next(iter(new + old if _avx2() else old + new), None)


def _avx2() -> bool:
    try:
        return "avx2" in Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return True


# ---------------------------------------------------------------- installing


def install(tell: Tell = print) -> Path:
    """Where the agents are, installed now if they were not. Two at once do not collide: the second waits."""
    where = place()
    if where.is_dir():
        return where
    npm = _npm()
    where.parent.mkdir(parents=True, exist_ok=True)
    with alone(where.parent / "lock", tell):
        if where.is_dir():
            return where
        # Only one runs at a time, so what an earlier one left half-done belongs to nobody.
        for left in where.parent.glob("partial-*"):
            shutil.rmtree(left)
        free = shutil.disk_usage(where.parent).free
        if free < SPACE:
            raise CannotInstall(f"{where.parent} has {_size(free)} free, and {_size(SPACE)} are needed: make room.")
        partial = Path(tempfile.mkdtemp(prefix="partial-", dir=where.parent))
        try:
            _fetch(npm, partial, tell)
            for line in _proved(partial):
                tell(f"  {line}")
            partial.rename(where)
        finally:
            shutil.rmtree(partial, ignore_errors=True)
    return where


def _npm() -> str:
    for tool in ("node", "npm"):
        if shutil.which(tool) is None:
            raise CannotInstall(f"{tool} is not here: install Node.js 18 or newer with npm, then run `make agents`.")
    return str(shutil.which("npm"))


@contextmanager
def alone(file: Path, tell: Tell) -> Iterator[None]:
    """Hold a lock that ends with its process, however that ends."""
    with file.open("a") as held:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            tell("Another run installs the agents; waiting for it")
            fcntl.flock(held, fcntl.LOCK_EX)
        yield


def _fetch(npm: str, into: Path, tell: Tell) -> None:
    for name in ("package.json", "package-lock.json"):
        shutil.copy(PINS / name, into / name)
    named = ", ".join(f"{name} {version}" for name, version in pins().items())
    tell(f"Installing {named}")
    tell(f"  into {into.parent}, about 1.4 GB, once for these versions")
    began = time.monotonic()
    # The programs are in the optional packages of the platform, whatever this machine's npm leaves out by itself.
    options = ("--ignore-scripts", "--include=optional", "--no-bin-links", "--no-audit", "--no-fund")
    patience = ("--fetch-retries=2", "--fetch-retry-mintimeout=1000", "--fetch-retry-maxtimeout=10000")
    _run((npm, "ci", *options, *patience, "--loglevel=error"), into, tell)
    tell(f"  {_size(_weight(into))} in {time.monotonic() - began:.0f} s")


def _run(command: Sequence[str], directory: Path, tell: Tell) -> None:
    """Run npm to its end, telling how far it is; whatever happens, nothing of it runs on."""
    began = time.monotonic()
    with (
        tempfile.TemporaryFile("w+", encoding="utf-8") as said,
        subprocess.Popen(
            command, cwd=directory, stdin=subprocess.DEVNULL, stdout=said, stderr=said, start_new_session=True
        ) as npm,
    ):
        try:
            while npm.poll() is None:
                try:
                    npm.wait(EVERY)
                except subprocess.TimeoutExpired:
                    passed = time.monotonic() - began
                    if passed > DEADLINE:
                        raise CannotInstall(f"npm was not done after {DEADLINE:.0f} s.") from None
                    tell(f"  {_size(_weight(directory))} after {passed:.0f} s")
        finally:
            if npm.poll() is None:
                os.killpg(npm.pid, signal.SIGKILL)
        said.seek(0)
        text = said.read()
    if npm.returncode:
        errors = [line.removeprefix("npm error ") for line in text.splitlines() if line.startswith("npm error ")]
        raise CannotInstall(f"npm failed: {' / '.join(errors[:4]) or text.strip()[-300:] or npm.returncode}")


def _proved(where: Path) -> Iterator[str]:
    """Each program says its own version, in a home that is thrown away; what it says is what was pinned."""
    there = programs(where)
    for name, version in pins().items():
        program = there.get(name)
        if program is None:
            yield f"{name} {version}: has no build for this platform in the lock; what needs it will be skipped"
            continue
        if SOURCES[name].tells_version:
            _ask_version(program)
        yield f"{name} {version}: {_size(_weight(program.path))}"


def _ask_version(program: Program) -> None:
    with tempfile.TemporaryDirectory() as home:
        homes = dict.fromkeys(("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"), home)
        try:
            asked = subprocess.run(
                [*program.command, "--version"],
                env={"PATH": os.environ.get("PATH", ""), **homes},
                cwd=home,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=120,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as fault:
            raise CannotInstall(f"{program.name} does not run here: {fault}") from fault
    if program.version not in asked.stdout:
        said = (asked.stdout + asked.stderr).strip()[:200]
        raise CannotInstall(f"{program.name} should be {program.version} and says {said!r}.")


def _weight(path: Path) -> int:
    if path.is_file():
        return path.stat().st_size
    total = 0
    for directory, _, files in os.walk(path):
        for file in files:
            try:
                total += (Path(directory) / file).lstat().st_size
            except FileNotFoundError:
                continue
    return total


def _size(count: float) -> str:
    return f"{count / 10**9:.1f} GB" if count >= 10**9 else f"{count / 10**6:.0f} MB"


# ---------------------------------------------------------------- locking


def lock(tell: Tell = print) -> None:
    """Write the lock for every platform: with the hash of every package, without the address of any registry."""
    npm = _npm()
    with tempfile.TemporaryDirectory() as directory:
        work = Path(directory)
        # Not the old lock: a build that its registry did not have would stay away for good.
        shutil.copy(PINS / "package.json", work / "package.json")
        _run((npm, "install", "--package-lock-only", "--ignore-scripts", "--no-audit", "--no-fund"), work, tell)
        found = json.loads((work / "package-lock.json").read_text(encoding="utf-8"))
    for name in plain(found["packages"]):
        tell(f"{name} is not in this registry, so it is not in the lock")
    (PINS / "package-lock.json").write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")


def plain(packages: Mapping[str, dict[str, object]]) -> list[str]:
    """Take the addresses out, and the builds for other platforms that the registry did not have: npm would refuse."""
    known = {path.rpartition("node_modules/")[2] for path in packages}
    dropped = []
    for package in packages.values():
        package.pop("resolved", None)
        builds = package.get("optionalDependencies")
        if isinstance(builds, dict):
            absent = [name for name in builds if name not in known]
            for name in absent:
                del builds[name]
            dropped += absent
    return sorted(dropped)


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.agents", description="Install the agents the tests drive.")
    parser.add_argument("--if-possible", action="store_true", help="end well where they cannot be installed")
    parser.add_argument("--lock", action="store_true", help="write agents/package-lock.json again instead")
    asked = parser.parse_args(arguments)
    try:
        if asked.lock:
            lock(lambda line: print(line, flush=True))
        else:
            print(f"Agents: {install(lambda line: print(line, flush=True))}")
    except CannotInstall as fault:
        print(f"THE AGENTS ARE NOT INSTALLED. {fault}", file=sys.stderr)
        print(f"Every test that drives {', '.join(SOURCES)} will be skipped.", file=sys.stderr)
        return 0 if asked.if_possible else 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
