"""What OpenCode's own description allows, and what not."""

from typing import Any

import pytest

from clew.providers.opencode.restore import Checker

SCHEMAS: dict[str, Any] = {
    "Message": {"anyOf": [{"$ref": "#/components/schemas/User"}, {"$ref": "#/components/schemas/Other"}]},
    "User": {
        "type": "object",
        "properties": {
            "id": {"type": "string", "pattern": "^msg"},
            "role": {"type": "string", "enum": ["user"]},
            "count": {"type": "integer"},
            "cost": {"type": "number"},
            "parts": {"type": "array", "items": {"type": "string"}},
            "gone": {"anyOf": [{"type": "boolean"}, {"type": "null"}]},
        },
        "required": ["id", "role"],
        "additionalProperties": False,
    },
    "Other": {"type": "object", "properties": {"role": {"enum": ["other"]}}, "required": ["role"]},
}
GOOD: dict[str, Any] = {"id": "msg_1", "role": "user"}


@pytest.mark.parametrize(
    "value",
    [
        GOOD,
        {"role": "other", "anything": [1]},
        {**GOOD, "count": 3, "cost": 0.5, "parts": ["a"], "gone": None},
        {**GOOD, "count": 3.0, "cost": 1, "gone": True},
        {**GOOD, "not named": {}},
    ],
)
def test_what_is_described_passes(value: Any) -> None:
    assert Checker(SCHEMAS).problem(value, "Message") is None


@pytest.mark.case("T02")
@pytest.mark.parametrize(
    "value",
    [
        None,
        [],
        {},
        {"id": "msg_1"},
        {**GOOD, "id": "prt_1"},
        {**GOOD, "id": 1},
        {**GOOD, "role": "somebody"},
        {**GOOD, "count": 0.5},
        {**GOOD, "count": True},
        {**GOOD, "cost": "1"},
        {**GOOD, "parts": ["a", 1]},
        {**GOOD, "gone": "no"},
    ],
)
def test_what_is_not_described_is_a_problem(value: Any) -> None:
    assert Checker(SCHEMAS).problem(value, "Message")


def test_a_problem_says_where_it_is() -> None:
    assert Checker(SCHEMAS).problem({**GOOD, "parts": ["a", 1]}, "User") == "User.parts[1] is no string"
