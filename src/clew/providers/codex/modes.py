"""What the four modes are for Codex: a sandbox that the system keeps, and a policy that says when a person is asked."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from clew.kernel import PermissionMode
from clew.programs.faults import NotUnderstood


class Sandbox(StrEnum):
    """As it is asked for, and as it is told."""

    READ_ONLY = "read-only"
    WORKSPACE_WRITE = "workspace-write"
    DANGER_FULL_ACCESS = "danger-full-access"


class Approval(StrEnum):
    NEVER = "never"
    ON_REQUEST = "on-request"


PERSON = "user"
"""Who answers. A home may be set to let a model answer; that would be nobody's yes."""


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
    """For opening a thread: sent every time, for what a thread has kept of an earlier opening may be wider."""
    rule = RULES[mode]
    return {"sandbox": rule.sandbox.value, "approvalPolicy": rule.approval.value, "approvalsReviewer": PERSON}


@dataclass(frozen=True, slots=True)
class Policy:
    """What the program says that it keeps."""

    sandbox: Mapping[str, Any]
    approval: Any
    reviewer: str

    @property
    def mode(self) -> PermissionMode:
        """Never narrower than the truth: what is not known for sure counts as the widest it could be."""
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


def told(answer: Mapping[str, Any], sandbox: str = "sandbox") -> Policy:
    """The policy out of what the program answered."""
    kept = answer.get(sandbox)
    if not isinstance(kept, Mapping) or "approvalPolicy" not in answer:
        raise NotUnderstood("Codex did not say which permissions it keeps.", "Update Codex or Clew; nothing was sent.")
    return Policy(kept, answer["approvalPolicy"], str(answer.get("approvalsReviewer")))


def policy_of(mode: PermissionMode, workspace: Mapping[str, Any]) -> Policy:
    """For a thread that is open already; `workspace` is what the home adds to the sandbox of that name."""
    rule = RULES[mode]
    match rule.sandbox:
        case Sandbox.READ_ONLY:
            kept: Mapping[str, Any] = {"type": "readOnly", "networkAccess": False}
        case Sandbox.WORKSPACE_WRITE:
            kept = {"type": "workspaceWrite", **workspace}
        case Sandbox.DANGER_FULL_ACCESS:
            kept = {"type": "dangerFullAccess"}
    return Policy(kept, rule.approval.value, PERSON)
