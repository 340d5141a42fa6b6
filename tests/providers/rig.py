"""The rig of a provider: what the contract suite needs to know in order to put any provider on trial.

A file `tests/providers/rigs/<name>.py` holds one class for each rig and lists them:

    class ClaudeRig(Rig):
        name = "claude"
        real = True

        def settings(self, home: str) -> Settings:
            return claude_home(self.root / home, self.model, self.agents)

        def make(self, settings: Settings) -> Provider:
            return make(settings)

    RIGS = (ClaudeRig,)

What a provider declares that it cannot do (`Capabilities`) must be refused with `NotAble`. The suite checks that, too,
and counts it as "declared unable". What no ability is declared for, such as running a command, a rig refuses with
`NotPlayed`.

CLEW_RIGS names the file of a rig of another package; the suite then plays that one alone (docs/provider-tutorial.md).
"""

import importlib
import json
import os
import re
import runpy
import signal
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Self

from clew.kernel import Cursor, Directory
from clew.ports.provider import Provider, Settings
from clew.programs.process_tag import VARIABLE
from tests.providers.agents import Agents
from tests.providers.loopback.server import Model

SECRET = {"CONTRACT_TOKEN": "contract-9f31c7aa-must-not-be-seen"}
"""Every rig lays this into `Settings.environment`. No event and no command line may show the value."""

_SAW = re.compile(
    r"(?:SAW users=|Prompts that I remember: )(?P<users>\d+),? "
    r'(?:first=|from )(?P<first>"(?:[^"\\]|\\.)*") (?:last=|to )(?P<last>"(?:[^"\\]|\\.)*")'
)


@dataclass(frozen=True)
class Seen:
    """Which history the agent had before it: how many prompts, the first and the last."""

    users: int
    first: str
    last: str

    @classmethod
    def in_(cls, reply: str) -> Self:
        found = _SAW.search(reply)
        assert found is not None, f"the reply does not say what was seen: {reply!r}"
        return cls(int(found["users"]), json.loads(found["first"]), json.loads(found["last"]))


class NotPlayed(Exception):
    """This agent has nothing of the kind. The test that asks for it counts as declared unable."""


class Rig(ABC):
    """One provider on trial, with homes "a" and "b" below `root`. It lives as long as the test run of its worker."""

    name: ClassVar[str]
    real: ClassVar[bool] = False
    """A program that `make agents` installs; `agents` is set then, and a model on loopback is made for it."""
    brief: ClassVar[bool] = False
    """Much of it is tried elsewhere: only those tests of the suite marked `core` run, unless CLEW_THOROUGH=1."""
    long: ClassVar[bool] = False
    """Too slow for every day: nothing runs, unless CLEW_THOROUGH=1."""
    starts_programs: ClassVar[bool] = True
    """False for a provider that is its agent itself, and starts no process."""
    warm: ClassVar[bool] = False
    """A program that stays between sessions, as a server does."""
    patience: ClassVar[float] = 60.0
    """Seconds that one test may take."""
    other_model: ClassVar[str | None] = None
    """A model beside the usual one, where there is more than one."""
    takes_back: ClassVar[bool] = True
    """Whether a session that the program made, and nobody wants any more, can be deleted."""
    tells_tools: ClassVar[bool] = True
    """Whether the program says which tools it uses."""
    tells_failures: ClassVar[bool] = True
    """Whether the program passes on why its model failed, in a structured way."""
    tells_reset: ClassVar[bool] = False
    """Whether the program passes on when a usage limit ends."""

    def __init__(self, root: Path, agents: Agents | None) -> None:
        self.root = root
        self._agents = agents
        self.model: Model | None = Model() if self.real else None
        self._killed: set[int] = set()

    @property
    def agents(self) -> Agents:
        assert self._agents is not None, "only a real rig has agents"
        return self._agents

    @property
    def loopback(self) -> Model:
        assert self.model is not None, "only a rig with a model has one"
        return self.model

    # ---------------------------------------------------------------- the provider

    @abstractmethod
    def settings(self, home: str) -> Settings:
        """For the home of that name below `root`; the same name gives the same home. `state` is the suite's."""

    @abstractmethod
    def make(self, settings: Settings) -> Provider: ...

    def directory(self, name: str) -> Directory:
        """A directory of that name to work in, made if it is not there."""
        path = self.root / "work" / name
        path.mkdir(parents=True, exist_ok=True)
        return Directory(str(path), str(path.resolve()))

    def close(self) -> None:
        if self.model is not None:
            self.model.close()

    # ---------------------------------------------------------------- how a prompt is put

    def say(self, text: str) -> str:
        """Answer with just this text. Any other prompt is answered with what was seen."""
        return f"SAY: {text}"

    def run(self, command: str) -> str:
        return f"RUN: {command}"

    def asking(self, command: str) -> str:
        """Run a command that needs an approval in the mode `ask`."""
        return self.run(command)

    def write(self, path: Path, text: str) -> str:
        """Write a file with the agent's own tool for that."""
        return f"WRITE: {path} {text}"

    def slow(self, seconds: float) -> str:
        """Stream an answer over that time."""
        return f"SLOW: {seconds:g}"

    def hang(self) -> str:
        """Begin to answer and never go on."""
        return "HANG"

    # ---------------------------------------------------------------- what can be seen from outside

    def heard(self) -> str:
        """All that the model was handed last. A rig without a model reads it from its agent's store."""
        return json.dumps(self.loopback.work[-1].body)

    def rules(self, cursor: Cursor) -> int | None:  # noqa: ARG002 - most programs keep none
        """How many permission rules the program itself keeps for a session; None where it keeps none."""
        return None

    def processes(self, home: str) -> list[int]:
        """Every process that a provider started for that home, by its environment, whoever is its parent by now."""
        return [pid for pid, lines in _environments() if _belongs(lines, str(self.root / home))]

    def command_lines(self, home: str) -> list[bytes]:
        found = []
        for pid in self.processes(home):
            with suppress(OSError):
                found.append(Path(f"/proc/{pid}/cmdline").read_bytes())
        return found

    def staying(self, home: str) -> set[int]:
        """The processes in the groups of the programs that a provider of this test run started for that home."""
        found = self.processes(home)
        groups = {pid for pid in found if _parent(pid) == os.getpid()}
        return {pid for pid in found if _group(pid) in groups}

    def kill(self, home: str) -> None:
        """SIGKILL to every program of that home; not to what those have started."""
        for pid in self.processes(home):
            if _parent(pid) == os.getpid():
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                    self._killed.add(pid)

    def dying(self) -> bool:
        """Whether one of those that were killed has not been waited for yet."""
        self._killed = {pid for pid in self._killed if _parent(pid) == os.getpid()}
        return bool(self._killed)


def rigs() -> list[type[Rig]]:
    """Every rig in tests/providers/rigs/, by name; or those of the file that CLEW_RIGS names."""
    if named := os.environ.get("CLEW_RIGS"):
        own: tuple[type[Rig], ...] = runpy.run_path(named)["RIGS"]
        return list(own)
    files = sorted((Path(__file__).parent / "rigs").glob("*.py"))
    found = [rig for file in files for rig in importlib.import_module(f"tests.providers.rigs.{file.stem}").RIGS]
    return sorted(found, key=lambda rig: rig.name)


def _environments() -> Iterator[tuple[int, list[str]]]:
    for directory in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            lines = (directory / "environ").read_bytes().decode(errors="replace").split("\0")
            yield int(directory.name), lines


def _belongs(lines: list[str], home: str) -> bool:
    values = [line.partition("=")[2] for line in lines]
    marked = any(line.startswith(f"{VARIABLE}=") for line in lines)
    return marked and any(value == home or value.startswith(home + "/") for value in values)


def _parent(pid: int) -> int:
    with suppress(OSError):
        # The name in brackets may hold anything, so what follows the last bracket is read.
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    return 0


def _group(pid: int) -> int:
    with suppress(OSError):
        return os.getpgid(pid)
    return 0
