"""Opening a session: it is probed, opened as planned and verified before it is told anything."""

import asyncio
import logging
from dataclasses import dataclass, field

from clew.daemon.landing import LandingRefused, landed_of
from clew.daemon.limits import Limits
from clew.daemon.reports import Reports
from clew.daemon.stop_signal import RunStopped, StopSignal
from clew.daemon.warm import OpenedAs, WarmSession, WarmSessions
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

_UNNAMED = NativeId("")
_GONE = frozenset({ProbeKind.MISSING, ProbeKind.REJECTED, ProbeKind.BUSY})


class CannotTransfer(Fault):
    code = "daemon:cannot-transfer"


class PlanHolds(Exception):
    """The plan that a probe led to is to hold the run."""

    def __init__(self, plan: Plan) -> None:
        super().__init__(plan.words)
        self.plan = plan


@dataclass(slots=True)
class Opened:
    """A session that is open and as planned. `warm`: it was still open from an earlier turn."""

    session: WarmSession
    plan: Plan
    landed: Landed
    warm: bool

    @property
    def live(self) -> LiveSession:
        return self.session.live


@dataclass(slots=True)
class Opener:
    """`settled` are the plans that probes led to. `reopened`: a second session was tried in place of one that refused.
    `program` is the machine's key of the agent's program."""

    order: Order
    provider: Provider
    program: str
    directory: Directory
    warm: WarmSessions
    stop: StopSignal
    reports: Reports
    limits: Limits
    settled: list[Plan] = field(default_factory=list)
    reopened: bool = False

    async def open(self, plan: Plan) -> Opened:
        while True:
            plan, kept = await self._probed(plan)
            if plan.outcome is Outcome.HOLD:
                raise PlanHolds(plan)
            if plan.outcome is Outcome.TRANSFER:
                words = "The session is on another machine, and Clew cannot transfer sessions yet."
                raise CannotTransfer(
                    words, "Wake the agent with a fresh start, or on the machine that has the session."
                )
            if kept is not None and (opened := await self._verified(plan, kept, warm=True)) is not None:
                return opened
            try:
                live = await self._open(plan)
            except Fault as fault:
                plan = await self.plan_again(plan, fault)
                continue
            mode = live.landing.mode or plan.mode
            assert mode is not None
            session = WarmSession(live, live.landing.native_id or _UNNAMED, self._opened_as(plan), mode)
            opened = await self._verified(plan, session, warm=False)
            assert opened is not None
            return opened

    async def plan_again(self, plan: Plan, fault: Exception, was_warm: bool = False) -> Plan:
        """The session refused: probe it once more. Only where the agent says that it is gone, or a warm process had
        died, is there another plan, and only once. Otherwise the fault is raised."""
        if self.reopened or plan.outcome not in USES_EARLIER_SESSION:
            raise fault
        probe = await self._probe(plan)
        if probe.kind not in _GONE and not was_warm:
            raise fault
        again = self._settle(plan, probe)
        self.reopened = again.outcome is not Outcome.HOLD
        return again

    # ---------------------------------------------------------------- probing

    async def _probed(self, plan: Plan) -> tuple[Plan, WarmSession | None]:
        """Probe until the session is proven or a plan needs none. A session that is open here proves itself."""
        kept: WarmSession | None = None
        while plan.needs_probe:
            kept = await self._warm_session(plan)
            probe = _open_here(self.directory) if kept is not None else await self._probe(plan)
            plan = self._settle(plan, probe)
        return plan, kept

    def _settle(self, plan: Plan, probe: Probe) -> Plan:
        settled = settle(plan, probe)
        self.settled.append(settled)
        return settled

    async def _probe(self, plan: Plan) -> Probe:
        assert plan.session is not None, "only a session is asked for"
        cursor = plan.session.cursor
        assert isinstance(cursor, Cursor), "a plan continues only a session that has a cursor"
        self.reports.log_step("probe", f"The agent is asked for session {cursor.native_id}.")
        try:
            asking = self.provider.probe(cursor, self.directory)
            return await self.stop.within("probe", self.limits.probe, self.limits.cancel, asking)
        except RunStopped:
            raise
        except Exception as fault:  # noqa: BLE001 - a failed probe tells nothing about the session
            return Probe(ProbeKind.UNREACHABLE, detail=str(fault) or repr(fault))

    # ---------------------------------------------------------------- a session that is open here

    async def _warm_session(self, plan: Plan) -> WarmSession | None:
        """The warm session that the plan continues, set to the plan's mode. One that does not fit, or whose process is
        gone, is closed first: the next one is opened at once, and would find the session in use."""
        cursor = None if plan.session is None else plan.session.cursor
        if not isinstance(cursor, Cursor):
            return None
        kept = self.warm.pop(self.order.runtime, cursor.native_id)
        if kept is None:
            await self.warm.wait_ended(self.order.runtime, cursor.native_id)
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
            kept.mode = await self.stop.within("mode", self.limits.probe, self.limits.cancel, setting)
        except RunStopped:
            await self.warm.end(kept)
            raise
        except Exception as fault:  # noqa: BLE001 - it is closed, and opened anew in the wanted mode
            _log.info("a warm session did not take the mode %s: %r", plan.mode, fault)
            return False
        return kept.mode <= plan.mode

    def _opened_as(self, plan: Plan) -> OpenedAs:
        return OpenedAs(self.order.runtime, self.program, self.directory, plan.model, self.order.agent.instructions)

    # ---------------------------------------------------------------- opening and verifying

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
        self.reports.log_step("open", f"The agent opens its session: {plan.outcome}. {plan.words}")
        opening = self.provider.open(spec)
        return await self.stop.within("opening", self.limits.open, self.limits.cancel, opening, self._close)

    async def _verified(self, plan: Plan, session: WarmSession, warm: bool) -> Opened | None:
        """Compare what the agent says it opened with the plan. A session that is refused is closed before anything
        else; a warm one is only stale then, and None says that it is to be opened anew."""
        landing = session.landing if warm else session.live.landing
        verification = verify(plan, landing)
        landed = landed_of(verification, landing)
        if verification.may_continue:
            self.reports.log_step("verify", f"It is as planned: {verification.claim}.")
            return Opened(session, plan, landed, warm)
        await self.warm.end(session)
        if warm:
            return None
        self.reports.log_step("verify", landed.refused or "It is not as planned.")
        raise LandingRefused(verification, landed)

    async def _close(self, live: LiveSession) -> None:
        try:
            async with asyncio.timeout(self.limits.close):
                await live.close()
        except Exception as fault:  # noqa: BLE001 - nothing waits for this session
            _log.warning("a session that opened too late could not be closed: %r", fault)


def _open_here(directory: Directory) -> Probe:
    return Probe(ProbeKind.FOUND_HERE, directory, detail="it is still open here from its last turn")
