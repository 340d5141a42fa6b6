"""Permission modes in Codex: a sandbox that the system enforces, and a policy that says when a person is asked."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from clew.kernel import PermissionMode
from clew.programs.faults import NotUnderstood, Refused, TooSlow
from clew.programs.rpc import CallRefused
from clew.providers.codex.server import AppServer, Json

_OPEN_AGAIN = "Open the session again."


class Sandbox(StrEnum):
    READ_ONLY = "read-only"
    WORKSPACE_WRITE = "workspace-write"
    DANGER_FULL_ACCESS = "danger-full-access"


class Approval(StrEnum):
    NEVER = "never"
    ON_REQUEST = "on-request"


PERSON = "user"
"""Who reviews approvals. A home may be set to let a model answer; that would be no person's yes."""


@dataclass(frozen=True, slots=True)
class Rule:
    sandbox: Sandbox
    approval: Approval


RULES: Mapping[PermissionMode, Rule] = {
    PermissionMode.READ: Rule(Sandbox.READ_ONLY, Approval.NEVER),
    PermissionMode.ASK: Rule(Sandbox.READ_ONLY, Approval.ON_REQUEST),
    PermissionMode.EDIT: Rule(Sandbox.WORKSPACE_WRITE, Approval.ON_REQUEST),
    PermissionMode.FULL: Rule(Sandbox.DANGER_FULL_ACCESS, Approval.NEVER),
}


def asked(mode: PermissionMode) -> dict[str, Any]:
    """The settings to open a thread with. Sent every time: those of an earlier opening may be wider."""
    rule = RULES[mode]
    return {"sandbox": rule.sandbox.value, "approvalPolicy": rule.approval.value, "approvalsReviewer": PERSON}


@dataclass(frozen=True, slots=True)
class Policy:
    """The permissions that Codex says it enforces."""

    sandbox: Mapping[str, Any]
    approval: Any
    reviewer: str

    @property
    def mode(self) -> PermissionMode:
        """Never narrower than the truth: what is not certain counts as the widest it could be."""
        asks = self.approval != Approval.NEVER
        match self.sandbox.get("type"):
            case "readOnly" if asks and self.reviewer != PERSON:
                return PermissionMode.FULL
            case "readOnly" if self.sandbox.get("networkAccess"):
                return PermissionMode.EDIT
            case "readOnly":
                return PermissionMode.ASK if asks else PermissionMode.READ
            case "workspaceWrite" if not asks or self.reviewer == PERSON:
                return PermissionMode.EDIT
            case _:
                return PermissionMode.FULL

    def for_turn(self) -> dict[str, Any]:
        return {
            "sandboxPolicy": dict(self.sandbox),
            "approvalPolicy": self.approval,
            "approvalsReviewer": self.reviewer,
        }


def policy_in(answer: Mapping[str, Any], sandbox: str = "sandbox") -> Policy:
    kept = answer.get(sandbox)
    if not isinstance(kept, Mapping) or "approvalPolicy" not in answer:
        raise NotUnderstood("Codex did not say which permissions it keeps.", "Update Codex or Clew; nothing was sent.")
    return Policy(kept, answer["approvalPolicy"], str(answer.get("approvalsReviewer")))


def policy_of(mode: PermissionMode, workspace: Mapping[str, Any]) -> Policy:
    """The policy for a thread that is open already; `workspace` is what the home adds to that sandbox."""
    rule = RULES[mode]
    match rule.sandbox:
        case Sandbox.READ_ONLY:
            kept: Mapping[str, Any] = {"type": "readOnly", "networkAccess": False}
        case Sandbox.WORKSPACE_WRITE:
            kept = {"type": "workspaceWrite", **workspace}
        case Sandbox.DANGER_FULL_ACCESS:
            kept = {"type": "dangerFullAccess"}
    return Policy(kept, rule.approval.value, PERSON)


class ThreadSettings:
    """The policy and the model of the next turn. A change counts only when Codex confirms it."""

    def __init__(self, server: AppServer, thread: str, policy: Policy, model: str) -> None:
        self.policy, self.model = policy, model
        self._server, self._thread = server, thread
        self._one_at_a_time = asyncio.Lock()
        self._confirmed: asyncio.Future[Json] | None = None

    async def set_mode(self, mode: PermissionMode, workspace: Mapping[str, Any]) -> PermissionMode:
        async with self._one_at_a_time:
            wanted = policy_of(mode, workspace)
            if self.policy != wanted:
                self.policy = policy_in(await self._change(wanted.for_turn()), "sandboxPolicy")
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

    def on_updated(self, arguments: Json) -> None:
        waiting = self._confirmed
        if waiting is not None and not waiting.done() and arguments.get("threadId") == self._thread:
            waiting.set_result(arguments.get("threadSettings") or {})

    async def _change(self, change: Json) -> Json:
        confirmed: asyncio.Future[Json] = asyncio.get_running_loop().create_future()
        self._confirmed = confirmed
        try:
            await self._server.call("thread/settings/update", {"threadId": self._thread, **change})
            async with asyncio.timeout(self._server.deadlines.answer):
                return await confirmed
        except CallRefused as fault:
            raise Refused(f"Codex does not change its settings: {fault.words}", _OPEN_AGAIN) from fault
        except TimeoutError as fault:
            raise TooSlow("Codex did not say that its settings changed.", _OPEN_AGAIN) from fault
        finally:
            self._confirmed = None
