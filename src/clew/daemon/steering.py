"""What is told to an agent within its turn: asked for when there is news, told one after the other, and settled.

What comes while something is being told is asked for with the word of what became of that.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace

from clew.daemon.limits import Limits
from clew.daemon.reporting import Reporting
from clew.kernel import HELD_BY_AGENT, Attestation, Evidence, Plan, Sent, WakeId, digest_of, steered_plan
from clew.ports.provider import LiveSession
from clew.protocol.orders import Order
from clew.protocol.prompts import PromptMaker
from clew.protocol.reports import Steer, Steered

_log = logging.getLogger("clew.daemon")


class Steering:
    """`took` once the agent has taken something: from then on the turn is about more than its prompt."""

    def __init__(
        self,
        order: Order,
        prompts: PromptMaker,
        reporting: Reporting,
        limits: Limits,
        ask: Callable[[LiveSession, Sent], Awaitable[Attestation]],
    ) -> None:
        self._order, self._prompts, self._reporting, self._limits = order, prompts, reporting, limits
        self._ask = ask
        self._turn: tuple[LiveSession, Plan] | None = None
        self._telling: asyncio.Task[None] | None = None
        self._unsettled: Steer | None = None
        self._news = self._asked = False
        self._heard: set[WakeId] = set()
        self._digest = ""
        self.took = False
        reporting.may_steer = self._asks

    # ---------------------------------------------------------------- the turn

    def begin(self, live: LiveSession, plan: Plan) -> None:
        if plan.wanted.here.capabilities.steers:
            self._turn = live, plan
            self.look()

    async def end(self) -> None:
        """The turn is over: nothing more is told, and what was being told is settled before the run ends. Where it is
        not certain whether the agent took it, its own store is asked; what that cannot tell is asked for later."""
        turn, self._turn, telling = self._turn, None, self._telling
        if telling is not None and not telling.done():
            await asyncio.wait((telling,), timeout=self._limits.interrupt)
            if not telling.done():
                telling.cancel()
                await asyncio.wait((telling,), timeout=self._limits.calling_off)
        if self._unsettled is not None and turn is not None:
            steer = self._unsettled
            heard = await self._ask(turn[0], Sent(steer.id, self._digest))
            self._reporting.step("evidence", f"What was told within the turn: {heard.evidence}. {heard.detail}".strip())
            if heard.evidence is Evidence.UNKNOWN:
                self._unsettled = None
            else:
                self.took = self.took or heard.evidence in HELD_BY_AGENT
                self._settle(steer, heard.evidence in HELD_BY_AGENT)
        if self._asked:
            # What was asked for and comes only now is refused, or it would end with the run as if it had been told.
            await self._reporting.sent()
            self._asked = False

    # ---------------------------------------------------------------- what there is to tell

    def hear_news(self) -> None:
        """There may be something to tell: it is asked for as soon as it could be told."""
        self._news = True

    def look(self) -> None:
        if self._news and self._is_free:
            self._reporting.look()

    def hear(self, steer: Steer) -> None:
        """The run carries it from now on. One answer may come twice."""
        wakes = {wake.id for wake in steer.wakes}
        if wakes <= self._heard:
            return
        self._heard |= wakes
        if self._turn is None:
            self._settle(steer, taken=False)
            return
        self._unsettled = steer
        self._telling = asyncio.create_task(self._tell(steer, *self._turn), name=f"steering {self._order.run}")

    @property
    def _is_free(self) -> bool:
        return self._turn is not None and self._unsettled is None

    def _asks(self) -> bool:
        """Whether a report that is about to go asks for it."""
        if not self._is_free:
            return False
        self._news, self._asked = False, True
        return True

    async def _tell(self, steer: Steer, live: LiveSession, plan: Plan) -> None:
        taken: bool | None = None
        try:
            act_on = sorted({seq for wake in steer.wakes for seq in wake.entries})
            order = replace(self._order, wakes=steer.wakes, entries=steer.entries)
            prompt = await self._prompts(order, steered_plan(plan, steer.after, steer.through, act_on))
            self._digest = digest_of(prompt.text)
            taken = await live.steer(prompt.text, steer.id)
        except Exception as fault:  # noqa: BLE001 - whether it was taken is asked at the end of the turn
            _log.warning("run %s: its agent could not be told within its turn: %r", self._order.run, fault)
        finally:
            self.took = self.took or bool(taken)
            if self._unsettled is steer and taken is not None:
                self._settle(steer, taken)

    def _settle(self, steer: Steer, taken: bool) -> None:
        self._unsettled = None
        self._reporting.tell_steered(steer, taken)
        self._reporting.steered(Steered(taken, steer.through))
