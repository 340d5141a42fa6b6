"""Steering: messages that reach the agent within its turn, one at a time, each confirmed or refused.

Messages that arrive during a delivery are requested in the report that acknowledges it.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace

from clew.daemon.context import RunContext
from clew.daemon.limits import Limits
from clew.daemon.reports import Reports
from clew.kernel import HELD_BY_AGENT, Attestation, Directory, Evidence, Plan, PromptId, Sent, digest_of, steered_plan
from clew.ports.provider import LiveSession
from clew.protocol.orders import Order
from clew.protocol.reports import Steer, Steered

_log = logging.getLogger("clew.daemon")


class Steering:
    """`taken`: the agent has taken a message, so the turn is about more than its prompt. `ask` asks the agent's store
    about a message."""

    def __init__(
        self,
        order: Order,
        context: RunContext,
        reports: Reports,
        limits: Limits,
        ask: Callable[[LiveSession, Sent], Awaitable[Attestation]],
    ) -> None:
        self._order, self._context, self._reports, self._limits = order, context, reports, limits
        self._ask = ask
        self._turn: tuple[LiveSession, Plan, Directory] | None = None
        self._delivery: asyncio.Task[None] | None = None
        self._unconfirmed: Steer | None = None
        self._news = self._requested = False
        self._received: set[PromptId] = set()
        self._digest = ""
        self.taken = False
        reports.may_steer = self._requests

    # ---------------------------------------------------------------- the turn

    def begin(self, live: LiveSession, plan: Plan, directory: Directory) -> None:
        if plan.wanted.here.capabilities.steers:
            self._turn = live, plan, directory
            self.poll_if_free()

    async def end(self) -> None:
        """The turn is over: nothing more is delivered, and a delivery on its way is resolved before the run ends.

        Where it is not certain that the agent took it, its store is asked. Where the store cannot tell, the message
        stays unconfirmed, and the server has the store asked again later.
        """
        turn, self._turn, delivery = self._turn, None, self._delivery
        if delivery is not None and not delivery.done():
            await asyncio.wait((delivery,), timeout=self._limits.interrupt)
            if not delivery.done():
                delivery.cancel()
                await asyncio.wait((delivery,), timeout=self._limits.cancel)
        if self._unconfirmed is not None and turn is not None:
            steer = self._unconfirmed
            heard = await self._ask(turn[0], Sent(steer.id, self._digest))
            words = f"The message within the turn: {heard.evidence}. {heard.detail}".strip()
            self._reports.log_step("evidence", words)
            if heard.evidence is Evidence.UNKNOWN:
                self._unconfirmed = None
            else:
                self.taken = self.taken or heard.evidence in HELD_BY_AGENT
                self._resolve(steer, heard.evidence in HELD_BY_AGENT)
        if self._requested:
            # A message that was requested and comes only now is refused; otherwise it would end with the run as told.
            await self._reports.drained()
            self._requested = False

    # ---------------------------------------------------------------- messages

    def note_news(self) -> None:
        """The server may have messages. They are requested as soon as one could be delivered."""
        self._news = True

    def poll_if_free(self) -> None:
        if self._news and self._is_free:
            self._reports.poll_server()

    def deliver(self, steer: Steer) -> None:
        """The run carries these wakes from now on. The same answer may come twice."""
        if steer.id in self._received:
            return
        self._received.add(steer.id)
        if self._turn is None:
            self._resolve(steer, taken=False)
            return
        self._unconfirmed = steer
        self._delivery = asyncio.create_task(self._steer(steer, *self._turn), name=f"steering {self._order.run}")

    @property
    def _is_free(self) -> bool:
        return self._turn is not None and self._unconfirmed is None

    def _requests(self) -> bool:
        """Whether the report that is about to go requests a message."""
        if not self._is_free:
            return False
        self._news, self._requested = False, True
        return True

    async def _steer(self, steer: Steer, live: LiveSession, plan: Plan, directory: Directory) -> None:
        taken: bool | None = None
        try:
            act_on = sorted({seq for wake in steer.wakes for seq in wake.entries})
            order = replace(self._order, wakes=steer.wakes, entries=steer.entries)
            steered = steered_plan(plan, steer.after, steer.through, act_on)
            prompt = await self._context.prompt(order, steered, directory)
            self._digest = digest_of(prompt.text)
            taken = await live.steer(prompt.text, steer.id)
        except Exception as fault:  # noqa: BLE001 - whether it was taken is asked at the end of the turn
            _log.warning("run %s: a message could not be delivered within its turn: %r", self._order.run, fault)
        finally:
            self.taken = self.taken or bool(taken)
            if self._unconfirmed is steer and taken is not None:
                self._resolve(steer, taken)

    def _resolve(self, steer: Steer, taken: bool) -> None:
        self._unconfirmed = None
        self._reports.log_steer(steer, taken)
        self._reports.note_steered(Steered(taken, steer.through))
