"""Services with a machine of our own beside it, and a daemon's hand that serves what it is given."""

import json
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from clew.control.actor import MachineDaemon, Person
from clew.control.agents import add_agent
from clew.control.daemon_api import DaemonApi
from clew.control.services import Services
from clew.kernel import (
    AccountId,
    Attestation,
    Capabilities,
    Cursor,
    Directory,
    Evidence,
    LandingField,
    LaneId,
    MachineId,
    NativeId,
    PermissionMode,
    ProviderName,
    RunId,
    RuntimeId,
    WorkspaceId,
    capabilities_to_record,
    runtime_id,
)
from clew.ports.fault import Fault
from clew.ports.logins import Logins
from clew.ports.provider import FoundSession
from clew.ports.work import WorkOf
from clew.ports.workspaces import Cleaned, Listed, SourceFound, SourceKind
from clew.protocol.control import Registration
from clew.protocol.machine import AgentProgram, Looked, Tried, UnreadLetter
from clew.protocol.orders import ClaimRequest, Order
from clew.protocol.reports import (
    Completed,
    End,
    Failed,
    Finish,
    Finished,
    Landed,
    Report,
    Reported,
    Stopped,
    StoreAnswer,
    StoreAsked,
)
from clew.protocol.requests import NewAgent
from clew.protocol.views import AgentView
from clew.store.engine.database import Database
from clew.store.schema.check import check
from clew.workspaces import GitWorkspaces
from tests.store.kit import pin_of, prompted_of

LAPTOP = MachineId("laptop")
USER = Person("user")
ABLE = Capabilities(
    resume=True,
    fork=True,
    reapply_mode=True,
    hears=True,
    modes=frozenset(PermissionMode),
    reports=frozenset(LandingField),
)


@dataclass
class Laptop:
    """A machine: two providers are installed, a third is known and missing. Another home is another variable HOME."""

    root: Path
    offered: list[tuple[RuntimeId, AgentProgram]] = field(default_factory=list)
    found: dict[RuntimeId, list[FoundSession]] = field(default_factory=dict)
    listed: list[Listed] = field(default_factory=list)
    cleaned: list[WorkspaceId] = field(default_factory=list)
    gone: set[str] = field(default_factory=lambda: {"spindle"})
    removed: set[str] = field(default_factory=set)
    """Providers whose packages were removed."""
    modes: frozenset[PermissionMode] = ABLE.modes
    account: AccountId | None = field(default_factory=lambda: AccountId("me"))
    warm: set[tuple[RuntimeId, NativeId]] = field(default_factory=set)
    unread: list[UnreadLetter] = field(default_factory=list)
    missing_homes: set[str] = field(default_factory=set)
    known: Logins | None = None
    tried: list[tuple[AgentProgram, str | None, PermissionMode]] = field(default_factory=list)
    answers: Tried = field(default_factory=lambda: Tried("ready", seconds=1.5, mode="read"))

    @property
    def id(self) -> MachineId:
        return LAPTOP

    async def providers(self) -> Sequence[str]:
        return [name for name in ("loom", "wheel", "spindle") if name not in self.removed]

    async def discover(self, program: AgentProgram) -> Looked:
        if program.provider in self.removed:
            return Looked(program, None, missing=f"There is no provider {program.provider!r}.")
        if program.provider in self.gone:
            return Looked(program, None, missing=f"no program {program.provider} on the path.")
        registration = Registration(
            machine=LAPTOP,
            machine_name="the laptop",
            provider=ProviderName(program.provider),
            home=program.home.get("HOME", "/srv/home"),
            account=self.account,
            capabilities=json.dumps(capabilities_to_record(replace(ABLE, modes=self.modes))),
            max_live=8,
            root=str(self.root / "work"),
        )
        return Looked(program, registration, version="1.0")

    async def check_homes(self, home: Mapping[str, str], create: bool) -> None:
        if not create and (missing := self.missing_homes.intersection(home.values())):
            raise Fault(f"{min(missing)} does not exist.", "Correct the path.")

    async def logins(self, program: AgentProgram) -> Logins | None:  # noqa: ARG002 - the same for all
        return self.known

    async def unread_letters(self) -> Sequence[UnreadLetter]:
        return self.unread

    async def try_prompt(self, program: AgentProgram, model: str | None, mode: PermissionMode) -> Tried:
        self.tried.append((program, model, mode))
        return self.answers

    async def offer(self, runtime: RuntimeId, program: AgentProgram) -> None:
        self.offered.append((runtime, program))

    async def sessions(self, runtime: RuntimeId) -> Sequence[FoundSession]:
        return self.found.get(runtime, [])

    async def release(self, runtime: RuntimeId, natives: Collection[NativeId]) -> Sequence[NativeId]:
        freed = [native for native in natives if (runtime, native) in self.warm]
        self.warm.difference_update((runtime, native) for native in freed)
        return freed

    async def inspect(self, source: str, plain: bool, base: str | None = None) -> SourceFound:
        if base not in (None, "main"):
            raise Fault(f"{source} has no branch {base!r}.", "Name one that is, as main.")
        if "://" in source:
            return SourceFound(source, SourceKind.ADDRESS)
        if not Path(source).is_dir():
            raise Fault(f"There is no directory {source}.", "Name one that is there.")
        if (Path(source) / ".git").exists():
            return SourceFound(source, SourceKind.REPOSITORY)
        if not plain:
            raise Fault(f"{source} is no git repository.", "Run `git init`, or add it as a plain directory.")
        return SourceFound(source, SourceKind.PLAIN)

    async def workspaces(self) -> Sequence[Listed]:
        return self.listed

    @property
    def worktrees(self) -> WorkOf:
        return GitWorkspaces(self.root / "work")

    async def clean(
        self,
        asked: Collection[WorkspaceId] = (),
        spared: Mapping[LaneId, str] = MappingProxyType({}),  # noqa: ARG002
        dry: bool = False,  # noqa: ARG002
    ) -> Sequence[Cleaned]:
        self.cleaned.extend(asked)
        return []


LOOM = runtime_id(LAPTOP, ProviderName("loom"), "/srv/home")
WHEEL = runtime_id(LAPTOP, ProviderName("wheel"), "/srv/home")


@dataclass
class Office:
    """Where a test works: the services, its machine, and a daemon that holds what it claimed."""

    services: Services
    laptop: Laptop
    plane: DaemonApi
    database: Database

    async def agent(self, name: str = "ada", **changes: Any) -> AgentView:
        return await add_agent(self.services, USER, NewAgent(**{"name": name, "provider": "loom", **changes}))

    async def claim(
        self, most: int = 1, wait: float = 0.0, runtimes: Sequence[RuntimeId] = (LOOM, WHEEL)
    ) -> list[Order]:
        asked = ClaimRequest("daemon-1", tuple(runtimes), most, wait=wait)
        return list((await self.plane.claim(asked)).orders)

    async def claim_one(self) -> Order:
        (order,) = await self.claim()
        return order

    async def report(self, order: Order, **said: Any) -> Reported:
        return await self.plane.report(Report(order.run, order.attempt, **said))

    async def prompt(self, order: Order, native: str | None = None) -> Reported:
        """Opened as planned, and the prompt about to go out; with `native` its session is pinned along with it."""
        told = await self.report(
            order,
            opens=True,
            landed=Landed(json.dumps({"native_id": native or "n", "directory": "/srv"}), "started"),
            told=order.plan.situation.head,
            prompted=prompted_of(order, native),
            pin=None if native is None else pin_of(order.plan, native),
        )
        assert told.may_prompt
        return told

    async def finish(self, order: Order, end: End | None = None) -> Finished:
        """As a daemon does: of a turn that did not end well it has asked the agent's store, which has the prompt."""
        if isinstance(end, Failed | Stopped) and end.heard is None:
            end = replace(end, heard=Attestation(Evidence.CUT_OFF, "it is in the store"))
        return await self.plane.finish(Finish(order.run, order.attempt, end or Completed("done", 1)))

    async def answer(self, order: Order, evidence: Evidence, reply: str = "") -> Finished:
        """Say what the agent's store says of the prompts that the order asks for."""
        said = Attestation(evidence, "it was looked for", reply)
        answers = tuple(StoreAnswer(each.run, said, said) for each in order.questions)
        return await self.plane.finish(Finish(order.run, order.attempt, StoreAsked(answers)))

    async def serve(self, native: str | None = None, end: End | None = None) -> Order:
        order = await self.claim_one()
        await self.prompt(order, native)
        assert (await self.finish(order, end)).taken
        return order


@asynccontextmanager
async def office(database: Database, root: Path) -> AsyncIterator[Office]:
    """Whatever it was put through, every promise of the store holds in the end."""
    laptop = Laptop(root)
    services = Services(database, root, [laptop])
    try:
        yield Office(services, laptop, DaemonApi(services, MachineDaemon(LAPTOP)), database)
    finally:
        await services.close()
    assert database.read(check) == ()


def session_of(native: str, directory: str | None = "/srv/mine", turns: int = 3) -> FoundSession:
    where = None if directory is None else Directory(directory)
    return FoundSession(Cursor(1, NativeId(native)), where, "earlier work", 5.0, turns)


def held(*orders: Order) -> frozenset[RunId]:
    return frozenset(order.run for order in orders)
