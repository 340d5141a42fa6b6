"""Settings of an open thread: changed from the next turn on, and taken for changed only when Codex says so."""

import asyncio
from collections.abc import Mapping
from typing import Any

from clew.kernel import PermissionMode
from clew.programs.faults import Refused, TooSlow
from clew.programs.rpc import CallRefused
from clew.providers.codex import modes
from clew.providers.codex.server import AppServer, Json

_OPEN_AGAIN = "Open the session again."


class Settings:
    """The policy and the model that the next turn is sent with."""

    def __init__(self, server: AppServer, thread: str, policy: modes.Policy, model: str) -> None:
        self.policy, self.model = policy, model
        self._server, self._thread = server, thread
        self._one_at_a_time = asyncio.Lock()
        self._said: asyncio.Future[Json] | None = None

    async def set_mode(self, mode: PermissionMode, workspace: Mapping[str, Any]) -> PermissionMode:
        async with self._one_at_a_time:
            wanted = modes.policy_of(mode, workspace)
            if self.policy != wanted:
                self.policy = modes.told(await self._change(wanted.for_turn()), "sandboxPolicy")
        if self.policy.mode > mode:
            raise Refused(f"The mode {mode} was to be set; Codex keeps {self.policy.mode}.", _OPEN_AGAIN)
        return self.policy.mode

    async def set_model(self, model: str) -> None:
        async with self._one_at_a_time:
            if model == self.model:
                return
            kept = await self._change({"model": model})
            if kept.get("model") != model:
                raise Refused(f"The model {model} was to be set; Codex keeps {kept.get('model')}.", _OPEN_AGAIN)
            self.model = model

    def said(self, arguments: Json) -> None:
        if self._said is not None and not self._said.done() and arguments.get("threadId") == self._thread:
            self._said.set_result(arguments.get("threadSettings") or {})

    async def _change(self, change: Json) -> Json:
        said: asyncio.Future[Json] = asyncio.get_running_loop().create_future()
        self._said = said
        try:
            await self._server.call("thread/settings/update", {"threadId": self._thread, **change})
            async with asyncio.timeout(self._server.deadlines.answer):
                return await said
        except CallRefused as fault:
            raise Refused(f"Codex does not change its settings: {fault.words}", _OPEN_AGAIN) from fault
        except TimeoutError as fault:
            raise TooSlow("Codex did not say that its settings changed.", _OPEN_AGAIN) from fault
        finally:
            self._said = None
