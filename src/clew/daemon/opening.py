"""Opening: the session is asked for, opened as planned and looked at, before it is told anything."""

import asyncio
import logging
from dataclasses import dataclass, field

from clew.daemon.calls import CalledOff, Calls
from clew.daemon.landing import LandingRefused, landed_of
from clew.daemon.limits import Limits
from clew.daemon.reporting import Reporting
from clew.daemon.warm import OpenedAs, Warm, WarmSession
from clew.kernel import (
    USES_EARLIER_SESSION,
    Cursor,
    Directory,
    NativeId,
    Outcome,
    Plan,
    Probe,
    ProbeKind,
    settle,
    verify,
)
from clew.ports.fault import Fault
from clew.ports.provider import LiveSession, OpenSpec, Provider
from clew.protocol.orders import Order
from clew.protocol.reports import Landed

_log = logging.getLogger("clew.daemon")

_UNTOLD = NativeId("")
_GONE = frozenset({ProbeKind.MISSING, ProbeKind.REJECTED, ProbeKind.BUSY})


class CannotTransfer(Fault):
    code = "daemon:cannot-transfer"


class PlanHolds(Exception):
    """The plan, as it was settled, holds the run."""

    def __init__(self, plan: Plan) -> None:
        super().__init__(plan.words)
        self.plan = plan


@dataclass(slots=True)
class Opened:
    """An open session that is as planned. `warm` when it had been kept from an earlier turn."""

    session: WarmSession
    plan: Plan
    landed: Landed
    warm: bool

    @property
    def live(self) -> LiveSession:
        return self.session.live


@dataclass(slots=True)
class Opener:
    """`settled` are the plans that probes led to. `reopened`, once another was tried in place of one that refused."""

    order: Order
    provider: Provider
    program: str
    directory: Directory
    warm: Warm
    calls: Calls
    reporting: Reporting
    limits: Limits
    settled: list[Plan] = field(default_factory=list)
    reopened: bool = False

    async def open(self, plan: Plan) -> Opened:
        while True:
            plan, kept = await self._settled(plan)
            if plan.outcome is Outcome.HOLD:
                raise PlanHolds(plan)
            if plan.outcome is Outcome.TRANSFER:
                words = "The session would have to be brought here from another machine, which cannot be done yet."
                raise CannotTransfer(words, "Wake the agent with a fresh start, or on the machine that has it.")
            if kept is not None and (opened := await self._looked_at(plan, kept, warm=True)) is not None:
                return opened
            try:
                live = await self._open(plan)
            except Fault as fault:
                plan = await self.settled_again(plan, fault)
                continue
            return await self._must_fit(plan, live)

    async def settled_again(self, plan: Plan, fault: Exception, was_warm: bool = False) -> Plan:
        """The session refused: it is asked for once more, and only the agent's own sign that it is gone leads to
        another, once. One whose process had been kept and was dead may be there still. Otherwise the fault goes on."""
        if self.reopened or plan.outcome not in USES_EARLIER_SESSION:
            raise fault
        probe = await self._probe(plan)
        if probe.kind not in _GONE and not was_warm:
            raise fault
        again = self._settle(plan, probe)
        self.reopened = again.outcome is not Outcome.HOLD
        return again

    # ---------------------------------------------------------------- asking for it

    async def _settled(self, plan: Plan) -> tuple[Plan, WarmSession | None]:
        """Until the session is proven, or another plan needs none. A session that is open here proves itself."""
        kept: WarmSession | None = None
        while plan.needs_probe:
            kept = await self._kept(plan)
            probe = _open_here(self.directory) if kept is not None else await self._probe(plan)
            plan = self._settle(plan, probe)
        if kept is not None and plan.outcome is not Outcome.RESUME:
            await self.warm.end(kept)
            kept = None
        return plan, kept

    def _settle(self, plan: Plan, probe: Probe) -> Plan:
        settled = settle(plan, probe)
        self.settled.append(settled)
        return settled

    async def _probe(self, plan: Plan) -> Probe:
        cursor = None if plan.session is None else plan.session.cursor
        assert isinstance(cursor, Cursor), "a plan goes on only with a session that can be named"
        self.reporting.step("probe", f"The agent is asked for session {cursor.native_id}.")
        try:
            asking = self.provider.probe(cursor, self.directory)
            return await self.calls.within("probe", self.limits.probe, self.limits.calling_off, asking)
        except CalledOff:
            raise
        except Exception as fault:  # noqa: BLE001 - whatever went wrong, it is no word about the session
            return Probe(ProbeKind.UNREACHABLE, detail=str(fault) or repr(fault))

    # ---------------------------------------------------------------- a session that is open here

    async def _kept(self, plan: Plan) -> WarmSession | None:
        """The warm session that the plan goes on with, in the mode of the plan; one that does not fit, or whose process
        is gone, is closed first: the next one is opened at once, and not found in use by it."""
        cursor = None if plan.session is None else plan.session.cursor
        if not isinstance(cursor, Cursor):
            return None
        kept = self.warm.take(self.order.runtime, cursor.native_id)
        if kept is None:
            await self.warm.ended(self.order.runtime, cursor.native_id)
            return None
        if (
            plan.outcome is Outcome.RESUME
            and not kept.is_dead
            and kept.opened_as == self._opened_as(plan)
            and await self._in_mode(plan, kept)
        ):
            return kept
        await self.warm.end(kept)
        return None

    async def _in_mode(self, plan: Plan, kept: WarmSession) -> bool:
        if plan.mode is None:
            return False
        if kept.mode is plan.mode:
            return True
        try:
            setting = kept.live.set_mode(plan.mode)
            kept.mode = await self.calls.within("mode", self.limits.probe, self.limits.calling_off, setting)
        except CalledOff:
            await self.warm.end(kept)
            raise
        except Exception as fault:  # noqa: BLE001 - it is closed, and opened anew in the mode that is wanted
            _log.info("a warm session did not take the mode %s: %r", plan.mode, fault)
            return False
        return kept.mode <= plan.mode

    def _opened_as(self, plan: Plan) -> OpenedAs:
        return OpenedAs(self.order.runtime, self.program, self.directory, plan.model, self.order.agent.instructions)

    # ---------------------------------------------------------------- opening it

    async def _open(self, plan: Plan) -> LiveSession:
        assert plan.mode is not None, "a plan without a mode holds"
        cursor = plan.session.cursor if plan.session is not None and plan.outcome in USES_EARLIER_SESSION else None
        spec = OpenSpec(
            directory=self.directory,
            mode=plan.mode,
            cursor=cursor if isinstance(cursor, Cursor) else None,
            fork=plan.outcome is Outcome.FORK,
            fresh_id=None if plan.outcome is Outcome.RESUME else plan.native_id,
            model=plan.model,
            instructions=self.order.agent.instructions,
        )
        self.reporting.step("open", f"The agent opens its session: {plan.outcome}. {plan.words}")
        opening = self.provider.open(spec)
        return await self.calls.within("opening", self.limits.open, self.limits.calling_off, opening, self.close)

    async def _must_fit(self, plan: Plan, live: LiveSession) -> Opened:
        mode = live.landing.mode or plan.mode
        assert mode is not None
        session = WarmSession(live, live.landing.native_id or _UNTOLD, self._opened_as(plan), mode)
        opened = await self._looked_at(plan, session, warm=False)
        assert opened is not None
        return opened

    async def _looked_at(self, plan: Plan, session: WarmSession, warm: bool) -> Opened | None:
        """What the agent says it opened against the plan. One that is refused is closed before anything else; a warm
        one is only stale, and None says that it is to be opened anew."""
        landing = session.landing if warm else session.live.landing
        verification = verify(plan, landing)
        landed = landed_of(verification, landing)
        if verification.may_continue:
            self.reporting.step("verify", f"It is as planned: {verification.claim}.")
            return Opened(session, plan, landed, warm)
        await self.warm.end(session)
        if warm:
            return None
        self.reporting.step("verify", landed.refused or "It is not as planned.")
        raise LandingRefused(verification, landed)

    async def close(self, live: LiveSession) -> None:
        try:
            async with asyncio.timeout(self.limits.close):
                await live.close()
        except Exception as fault:  # noqa: BLE001 - it was not wanted, and nobody waits for it
            _log.warning("a session that was not wanted could not be closed: %r", fault)


def _open_here(directory: Directory) -> Probe:
    return Probe(ProbeKind.FOUND_HERE, directory, detail="it is still open here from its last turn")
