"""Modes: what Codex says that it keeps is never taken for less than it is."""

from typing import Any

import pytest

from clew.kernel import PermissionMode
from clew.programs.faults import NotUnderstood
from clew.providers.codex.modes import RULES, Policy, policy_in, policy_of
from tests.providers.codex.kit import ASK, EDIT, FULL, READ


@pytest.mark.case("A01", "A02")
@pytest.mark.parametrize(
    ("sandbox", "approval", "reviewer", "mode"),
    [
        ({"type": "readOnly", "networkAccess": False}, "never", "user", READ),
        ({"type": "readOnly", "networkAccess": False}, "on-request", "user", ASK),
        ({"type": "readOnly", "networkAccess": False}, "untrusted", "user", ASK),
        ({"type": "readOnly", "networkAccess": False}, "on-request", "auto_review", FULL),
        ({"type": "readOnly", "networkAccess": True}, "never", "user", EDIT),
        ({"type": "workspaceWrite"}, "on-request", "user", EDIT),
        ({"type": "workspaceWrite"}, "never", "auto_review", EDIT),
        ({"type": "workspaceWrite"}, "on-request", "guardian_subagent", FULL),
        ({"type": "dangerFullAccess"}, "never", "user", FULL),
        ({"type": "dangerFullAccess"}, "untrusted", "user", FULL),
        ({"type": "externalSandbox"}, "never", "user", FULL),
        ({"type": "ofTomorrow"}, "never", "user", FULL),
    ],
)
def test_a_policy_is_the_widest_it_could_be(sandbox: Any, approval: str, reviewer: str, mode: PermissionMode) -> None:
    assert Policy(sandbox, approval, reviewer).mode is mode


@pytest.mark.parametrize("mode", RULES)
def test_the_policy_of_a_mode_is_that_mode(mode: PermissionMode) -> None:
    assert policy_of(mode, {}).mode is mode


def test_a_silent_program_is_not_believed() -> None:
    with pytest.raises(NotUnderstood):
        policy_in({"sandbox": None})
