"""One run's calls of the context engine."""

import logging
from dataclasses import replace
from pathlib import Path

from clew.daemon.limits import Limits
from clew.daemon.sent_files import place_files, with_paths
from clew.kernel import LIVE, Directory, Plan, PromptId, RunScope, RunState
from clew.ports.context import ContextEngine, Prompt, PromptRequest, TurnEnded
from clew.protocol.control import ControlPlane
from clew.protocol.orders import Order
from clew.protocol.reports import Finished

_log = logging.getLogger("clew.daemon")


class RunContext:
    def __init__(self, order: Order, engine: ContextEngine, plane: ControlPlane, limits: Limits) -> None:
        self._order, self._engine, self._plane, self._limits = order, engine, plane, limits

    async def prompt(self, order: Order, plan: Plan, directory: Directory) -> Prompt:
        """`order` may have other entries and wakes than the run's own: those that come within its turn. Their files are
        put into the directory first."""
        await place_files(Path(directory.path), order, order.entries, self._plane)
        order = replace(order, entries=tuple(map(with_paths, order.entries)))
        scope = plan.situation.scope
        await self._engine.bootstrap(scope)
        await self._engine.ingest(scope, order.entries)
        budget = self._limits.budget
        request = PromptRequest(plan, order.agent.id, order.thread, order.wakes, order.entries, budget, order.tries)
        return await self._engine.assemble(scope, request)

    async def after_turn(self, plan: Plan, prompt: Prompt, id_: PromptId, completed: bool, tokens: int) -> None:
        turn = TurnEnded(id_, self._order.run, prompt.told, completed, tokens)
        try:
            await self._engine.after_turn(plan.situation.scope, turn)
        except Exception as fault:  # noqa: BLE001 - the turn is over, and its end is reported whatever an engine does
            _log.warning("run %s: the context engine failed after the turn: %r", self._order.run, fault)

    async def dispose(self, finished: Finished) -> None:
        """An isolated run's scope ends with the run. One that is queued again still needs it."""
        scope = self._order.plan.situation.scope
        if not isinstance(scope, RunScope) or finished.state in LIVE | {RunState.QUEUED}:
            return
        try:
            await self._engine.dispose(scope)
        except Exception as fault:  # noqa: BLE001 - the run is over
            _log.warning("run %s: the context engine could not dispose of its scope: %r", self._order.run, fault)
