"""This machine: its providers, each made once, and its workspaces."""

import asyncio
import hashlib
import json
import logging
import os
import re
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from types import MappingProxyType

from clew.daemon.trial import try_prompt
from clew.kernel import LaneId, MachineId, NativeId, PermissionMode, RuntimeId, WorkspaceId, capabilities_to_record
from clew.ports.fault import Fault
from clew.ports.logins import KnowsItsLogins, Logins
from clew.ports.plugins import Providers
from clew.ports.provider import Deadlines, FoundSession, KeepsServer, Provider, Settings
from clew.ports.work import WorkOf
from clew.ports.workspaces import Cleaned, Listed, SourceFound, Workspaces
from clew.programs.faults import BadOptions
from clew.programs.state import Ledger
from clew.protocol.control import Registration
from clew.protocol.machine import AgentProgram, Looked, Tried, UnreadLetter

_log = logging.getLogger("clew.daemon")
_MOST_KEYS = 1000


class NoSuchRuntime(Fault):
    code = "daemon:no-such-runtime"


class NoSuchHome(Fault):
    code = "daemon:no-such-home"


class LocalMachine:
    """`state` is the directory that records which processes run; `root` is where workspaces are made. `homes` has the
    home, by provider, of agents that name none. `find` finds the providers again: packages come and go."""

    def __init__(
        self,
        id_: MachineId,
        name: str,
        providers: Providers,
        workspaces: Workspaces,
        state: Path,
        root: Path,
        max_live: int = 8,
        deadlines: Deadlines = Deadlines(),
        homes: Mapping[str, Mapping[str, str]] = MappingProxyType({}),
        find: Callable[[], Providers] | None = None,
    ) -> None:
        self._id, self._name = id_, name
        self._providers, self._find, self._workspaces = providers, find, workspaces
        self._state, self._root = state, root
        self._max_live, self._deadlines, self._homes = max_live, deadlines, homes
        self._made: dict[str, Provider] = {}
        self._keys: dict[int, tuple[AgentProgram, str]] = {}
        self._offered: dict[RuntimeId, AgentProgram] = {}
        self._listener: Callable[[RuntimeId], None] | None = None
        self._unread: tuple[UnreadLetter, ...] = ()
        self._release: Callable[[RuntimeId, NativeId], Awaitable[bool]] | None = None

    @property
    def id(self) -> MachineId:
        return self._id

    @property
    def places(self) -> Workspaces:
        return self._workspaces

    @property
    def offered(self) -> tuple[RuntimeId, ...]:
        return tuple(self._offered)

    def listen(self, listener: Callable[[RuntimeId], None]) -> None:
        """Call `listener` for every runtime that is offered from now on."""
        self._listener = listener

    def tell_unread(self, letters: Sequence[UnreadLetter]) -> None:
        """What the daemon's outbox keeps and this version of Clew cannot read."""
        self._unread = tuple(letters)

    def release_with(self, release: Callable[[RuntimeId, NativeId], Awaitable[bool]]) -> None:
        """The daemon's way to end a session that it keeps open between turns."""
        self._release = release

    # ---------------------------------------------------------------- for the server

    async def unread_letters(self) -> Sequence[UnreadLetter]:
        return self._unread

    async def providers(self) -> Sequence[str]:
        await self._find_providers()
        return sorted(self._providers.makers)

    async def _find_providers(self) -> None:
        if self._find is not None:
            self._providers = await asyncio.to_thread(self._find)

    async def discover(self, program: AgentProgram) -> Looked:
        try:
            await self._find_providers()
            self._providers.check(program.provider)
            provider = self.provider(program)
            found = await provider.discover()
        except BadOptions:
            # The program may be installed: its options are wrong, which is the caller's fault and is raised.
            raise
        except Fault as fault:
            return Looked(program, None, missing=str(fault))
        if not found.installed:
            return Looked(program, None, missing=found.missing)
        registration = Registration(
            machine=self._id,
            machine_name=self._name,
            provider=provider.name,
            home=found.home,
            account=found.account,
            capabilities=json.dumps(capabilities_to_record(provider.capabilities)),
            max_live=self._max_live,
            # Resolved: two spellings of one root would be two directories for the server, which cannot see the disk.
            root=str(await asyncio.to_thread(self._root.resolve)),
            program=self.key_of(program),
            credential=found.credential,
        )
        return Looked(program, registration, found.version, found.models)

    async def check_homes(self, home: Mapping[str, str], create: bool) -> None:
        await asyncio.to_thread(_check_homes, home, create)

    async def logins(self, program: AgentProgram) -> Logins | None:
        provider = self.provider(program)
        if not isinstance(provider, KnowsItsLogins):
            return None
        known = await provider.logins()
        return replace(known, there=tuple(name for name in known.keys if os.environ.get(name)))

    async def try_prompt(self, program: AgentProgram, model: str | None, mode: PermissionMode) -> Tried:
        return await try_prompt(self.provider(program), model, mode)

    async def offer(self, runtime: RuntimeId, program: AgentProgram) -> None:
        known = runtime in self._offered
        self._offered[runtime] = program
        if not known and self._listener is not None:
            self._listener(runtime)

    async def sessions(self, runtime: RuntimeId) -> Sequence[FoundSession]:
        return await self.provider(self.offered_as(runtime)).sessions()

    async def release(self, runtime: RuntimeId, natives: Collection[NativeId]) -> Sequence[NativeId]:
        release = self._release
        freed = [] if release is None else [native for native in natives if await release(runtime, native)]
        if runtime in self._offered:
            provider: object = self.provider(self._offered[runtime])
            if isinstance(provider, KeepsServer):
                await provider.let_go()
        return freed

    async def inspect(self, source: str, plain: bool, base: str | None = None) -> SourceFound:
        return await self._workspaces.inspect(source, plain, base)

    async def workspaces(self) -> Sequence[Listed]:
        return await self._workspaces.listed()

    async def clean(
        self,
        asked: Collection[WorkspaceId] = (),
        spared: Mapping[LaneId, str] = MappingProxyType({}),
        dry: bool = False,
    ) -> Sequence[Cleaned]:
        return await self._workspaces.clean(asked, spared=spared, dry=dry)

    @property
    def worktrees(self) -> WorkOf:
        return self._workspaces

    # ---------------------------------------------------------------- for the daemon

    def offered_as(self, runtime: RuntimeId) -> AgentProgram:
        if runtime not in self._offered:
            raise NoSuchRuntime(f"This machine does not offer runtime {runtime}.", "Add its agent on this machine.")
        return self._offered[runtime]

    def provider(self, program: AgentProgram) -> Provider:
        """The same object for the same program, home and settings: it knows the processes that it started."""
        key = self.key_of(program)
        if key not in self._made:
            settings = Settings(
                program=program.program,
                home=program.home or self._homes.get(program.provider, {}),
                environment=program.environment,
                options=program.options,
                deadlines=self._deadlines,
                state=self._state / f"{program.provider}-{key}",
            )
            self._made[key] = self._providers.make(program.provider, settings)
        return self._made[key]

    def key_of(self, program: AgentProgram) -> str:
        """The key of a program, the same at each start. Computed once for each object: orders share them."""
        known = self._keys.get(id(program))
        if known is None or known[0] is not program:
            if len(self._keys) >= _MOST_KEYS:
                self._keys.clear()
            known = self._keys[id(program)] = (program, key_of(program))
        return known[1]

    async def end_leftovers(self) -> None:
        """End the processes that an earlier daemon left running, also those of agents that were removed since."""
        await asyncio.to_thread(_end_leftovers, self._state)

    async def close(self) -> None:
        made, self._made = list(self._made.values()), {}
        for fault in await asyncio.gather(*(each.close() for each in made), return_exceptions=True):
            if isinstance(fault, BaseException):
                _log.warning("a provider could not be closed: %s", fault)


def key_of(program: AgentProgram) -> str:
    """A digest, because the settings hold secrets."""
    text = json.dumps(asdict(program), sort_keys=True)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


_DIRECTORIES = re.compile(r"(HOME|DIR)$")
"""The names of variables that hold a directory."""


def _check_homes(home: Mapping[str, str], create: bool) -> None:
    for name, value in sorted(home.items()):
        path = Path(value)
        if not _DIRECTORIES.search(name) or not path.is_absolute() or path.is_dir():
            continue
        if path.exists():
            raise NoSuchHome(f"{name}={value} is not a directory.", "Name a directory.")
        if not create:
            raise NoSuchHome(
                f"{name}={value} does not exist on this machine.",
                "Correct the path, or add --create-home to create it.",
            )
        try:
            path.mkdir(parents=True, mode=0o700)
        except OSError as fault:
            raise NoSuchHome(f"{value} cannot be created: {fault.strerror}.", "Name another directory.") from fault


def _end_leftovers(state: Path) -> None:
    for ledger in sorted(state.glob("*/ledger")):
        try:
            Ledger(ledger).end_orphans()
        except Fault as fault:
            _log.warning("%s: %s", ledger, fault)
