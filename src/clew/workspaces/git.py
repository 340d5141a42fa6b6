"""The git command. Every call has a deadline and a process group of its own; no prompts, no hooks."""

import asyncio
import contextlib
import os
import re
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from clew.programs.program import environment_for
from clew.workspaces.faults import GitMissing, GitRefused, GitTooOld, GitTooSlow, explain_git

OLDEST = (2, 31)

# Variables for git's network access and its user's configuration. Those that would redirect git are left out.
_KEPT = (
    "XDG_CONFIG_HOME",
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_SYSTEM",
    "GIT_CONFIG_NOSYSTEM",
    "GIT_SSH",
    "GIT_SSH_COMMAND",
    "GIT_SSL_CAINFO",
    "GIT_SSL_CAPATH",
)

# No prompts, no locks for read-only commands, messages in English, and a committer for the reflog where none is set.
_OURS = {
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ASKPASS": "",
    "GIT_OPTIONAL_LOCKS": "0",
    "LC_ALL": "C",
    "GIT_COMMITTER_NAME": "Clew",
    "GIT_COMMITTER_EMAIL": "clew@localhost",
}

_SETTINGS = (
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "submodule.recurse=false",
    "advice.detachedHead=false",
    "core.quotePath=false",
)


@dataclass(frozen=True, slots=True)
class Deadlines:
    """Seconds: for a query, for a checkout, for the network."""

    ask: float = 60.0
    make: float = 900.0
    fetch: float = 1800.0


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    out: bytes
    err: str

    @property
    def ok(self) -> bool:
        return self.status == 0

    @property
    def text(self) -> str:
        """Its output, decoded like a file name: any bytes survive."""
        return os.fsdecode(self.out.removesuffix(b"\n"))


@dataclass(frozen=True, slots=True)
class Repository:
    """Where git runs: in a directory from which it finds its repository, or on a git directory of Clew's own.

    Git does not check the owner of a git directory that is named, so a person's is never named.
    """

    at: Path | None = None
    git_dir: Path | None = None

    @property
    def arguments(self) -> tuple[str, ...]:
        found = () if self.at is None else ("-C", os.fspath(self.at))
        return found if self.git_dir is None else (*found, f"--git-dir={self.git_dir}")


NOWHERE = Repository()


class Git:
    def __init__(self, of: Mapping[str, str] | None = None, deadlines: Deadlines | None = None) -> None:
        ours = os.environ if of is None else of
        kept = {name: ours[name] for name in _KEPT if name in ours}
        self._environment = environment_for(kept, _OURS, of=ours)
        self.deadlines = deadlines or Deadlines()
        self._version: tuple[int, ...] | None = None

    async def version(self) -> tuple[int, ...]:
        """Asked once. Raises when git is missing or too old."""
        if self._version is None:
            said = (await self._run(("git", "--version"), self.deadlines.ask, ())).text
            found = re.search(r"(\d+)\.(\d+)", said)
            version = (int(found[1]), int(found[2])) if found else (0, 0)
            if version < OLDEST:
                oldest = ".".join(map(str, OLDEST))
                raise GitTooOld(f"This is {said or 'no git'}; Clew needs git {oldest}.", "Install a newer git.")
            self._version = version
        return self._version

    async def ask(
        self,
        where: Repository,
        *arguments: str,
        seconds: float | None = None,
        keep: Sequence[int] = (),
        environment: Mapping[str, str] = MappingProxyType({}),
    ) -> Answer:
        """Run git and return its answer, whatever it is.

        It inherits the open files `keep`: if this process is killed, the locks on them are held until git has ended.
        """
        await self.version()
        settings = [part for setting in _SETTINGS for part in ("-c", setting)]
        command = ("git", *settings, *where.arguments, *arguments)
        return await self._run(command, seconds or self.deadlines.ask, keep, environment)

    async def do(
        self,
        where: Repository,
        *arguments: str,
        seconds: float | None = None,
        keep: Sequence[int] = (),
        environment: Mapping[str, str] = MappingProxyType({}),
    ) -> Answer:
        """The same, but a failure is raised as GitRefused."""
        answer = await self.ask(where, *arguments, seconds=seconds, keep=keep, environment=environment)
        if not answer.ok:
            raise git_refused(answer, next(word for word in arguments if not word.startswith("-")))
        return answer

    async def _run(
        self,
        command: Sequence[str],
        seconds: float,
        keep: Sequence[int],
        environment: Mapping[str, str] = MappingProxyType({}),
    ) -> Answer:
        process = await self._start(command, keep, environment)
        try:
            async with asyncio.timeout(seconds):
                out, err = await process.communicate()
        except TimeoutError as fault:
            await _end(process)
            words = f"git {_verb(command)} did not end within {seconds:g} s."
            raise GitTooSlow(words, "Check the disk or the network and try again.") from fault
        except asyncio.CancelledError:
            await _end(process)
            raise
        return Answer(process.returncode or 0, out, err.decode(errors="replace").strip())

    async def _start(
        self, command: Sequence[str], keep: Sequence[int], environment: Mapping[str, str]
    ) -> asyncio.subprocess.Process:
        starting = asyncio.create_task(
            asyncio.create_subprocess_exec(
                *command,
                cwd="/",
                env={**self._environment, **environment},
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                start_new_session=True,
                pass_fds=tuple(keep),
            )
        )
        try:
            # Shielded: asyncio hangs when it is cancelled before all pipes are connected.
            return await asyncio.shield(starting)
        except asyncio.CancelledError:
            await asyncio.wait([starting])
            if not starting.cancelled() and starting.exception() is None:
                await _end(starting.result())
            raise
        except FileNotFoundError as fault:
            raise GitMissing(
                "There is no git command on this machine.", "Install git, or put it on the PATH."
            ) from fault
        except OSError as fault:
            raise GitMissing(
                f"The git command cannot be started: {fault.strerror}.", "Check its installation."
            ) from fault
        except ValueError as fault:
            raise GitRefused(
                f"git cannot be given its arguments: {fault}.", "Remove characters that are not text."
            ) from fault


def git_refused(answer: Answer, verb: str) -> GitRefused:
    words, remedy = explain_git(answer.err, f"git {verb} ended with status {answer.status}.")
    return GitRefused(words, remedy)


async def _end(process: asyncio.subprocess.Process) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    await process.communicate()


def _verb(command: Sequence[str]) -> str:
    """The git command: the first word that is neither an option nor the value of one."""
    words = iter(command[1:])
    for word in words:
        if word in ("-c", "-C"):
            next(words, None)
        elif not word.startswith("-"):
            return word
    return "--version"
