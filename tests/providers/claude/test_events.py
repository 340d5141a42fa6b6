"""Claude Code's lines in our words, from lines that it wrote."""

import json
from pathlib import Path
from typing import Any

import pytest

from clew.kernel import Answer, ApprovalId
from clew.ports.events import ErrorCode, Event, PlanChanged, QuestionAsked, Text, ToolFinished, ToolStarted, Used
from clew.programs.secrets import Redactor
from clew.providers.claude.approvals import Approvals
from clew.providers.claude.events import EventReader, Usage, failure_in

NO_SECRETS = Redactor({})


def assistant(*content: dict[str, Any], side: str | None = None, **rest: Any) -> dict[str, Any]:
    message = {"role": "assistant", "model": "claude-opus-4-8", "content": list(content)}
    return {"type": "assistant", "message": message, "parent_tool_use_id": side, "uuid": "u", **rest}


def result_of(call: str, text: str) -> dict[str, Any]:
    block = {"type": "tool_result", "tool_use_id": call, "content": text}
    return {"type": "user", "message": {"role": "user", "content": [block]}, "parent_tool_use_id": None}


def all_of(reader: EventReader, *messages: dict[str, Any]) -> list[Event]:
    return [event for message in messages for event in reader.read(message)]


@pytest.mark.case("S13")
def test_a_side_thread_counts_with_what_it_runs_and_not_with_what_it_says(tmp_path: Path) -> None:
    reader = EventReader(NO_SECRETS, tmp_path)
    events = all_of(
        reader,
        assistant({"type": "text", "text": "mine"}),
        assistant({"type": "text", "text": "not mine"}, side="toolu_1"),
        assistant({"type": "tool_use", "id": "t", "name": "Bash", "input": {"command": "ls"}}, side="toolu_1"),
    )
    assert events == [Text("mine"), ToolStarted("t", "Bash", "ls")]
    assert reader.reply == "mine"


def test_a_change_of_the_agents_own_list_is_told(tmp_path: Path) -> None:
    for number, state in (("1", "completed"), ("2", "pending"), ("10", "pending")):
        (tmp_path / f"{number}.json").write_text(json.dumps({"subject": f"step {number}", "status": state}))
    created = assistant({"type": "tool_use", "id": "t", "name": "TaskCreate", "input": {"subject": "step 10"}})
    events = all_of(EventReader(NO_SECRETS, tmp_path), created, result_of("t", "Task #10 created"))
    steps = (("step 1", "completed"), ("step 2", "pending"), ("step 10", "pending"))
    assert events[1:] == [ToolFinished("t", True, "Task #10 created"), PlanChanged(steps)]


def test_a_secret_is_hidden_even_where_it_comes_in_parts(tmp_path: Path) -> None:
    reader = EventReader(Redactor({"A_TOKEN": "swordfish"}), tmp_path)
    parts = [
        {"type": "stream_event", "event": {"delta": {"type": "text_delta", "text": text}}, "parent_tool_use_id": None}
        for text in ("it is sword", "fish, sw", "ear not")
    ]
    events = all_of(reader, *parts, assistant({"type": "text", "text": "it is swordfish, swear not"}))
    assert [event.text for event in events if isinstance(event, Text)] == [
        "it is ",
        "[hidden], ",
        "swear not",
        "it is [hidden], swear not",
    ]


def test_how_long_a_tool_may_be_silent_is_what_the_model_allowed(tmp_path: Path) -> None:
    reader = EventReader(NO_SECRETS, tmp_path)
    given = {"command": "make", "timeout": 90_000}
    all_of(reader, assistant({"type": "tool_use", "id": "t", "name": "Bash", "input": given}))
    assert reader.allowed == 90.0
    all_of(reader, result_of("t", "made"))
    assert reader.allowed == 0.0


@pytest.mark.case("L10")
def test_the_end_of_a_usage_limit_is_told(tmp_path: Path) -> None:
    reader = EventReader(NO_SECRETS, tmp_path)
    limit = {"status": "rejected", "resetsAt": 1794794387, "isUsingOverage": False}
    all_of(reader, {"type": "rate_limit_event", "rate_limit_info": limit})
    result = {"type": "result", "subtype": "success", "is_error": True, "api_error_status": 429, "result": "limited"}
    failed = failure_in(result, "rate_limit", reader.reset_at)
    assert failed is not None
    assert (failed.code, failed.retryable, failed.reset_at) == (ErrorCode.USAGE_LIMIT, True, 1794794387.0)


@pytest.mark.case("L06")
@pytest.mark.parametrize(
    ("status", "kind", "code", "retryable"),
    [
        (403, "authentication_failed", ErrorCode.NOT_ALLOWED, False),
        (404, "model_not_found", ErrorCode.BAD_REQUEST, False),
        (413, "unknown", ErrorCode.BAD_REQUEST, False),
        (529, "overloaded", ErrorCode.MODEL_FAILED, True),
        (None, "server_error", ErrorCode.MODEL_UNREACHABLE, True),
        (None, "authentication_failed", ErrorCode.NOT_ALLOWED, False),
        (None, None, ErrorCode.UNKNOWN, False),
    ],
)
def test_a_failure_is_known_by_its_status_or_its_kind(
    status: int | None, kind: str | None, code: ErrorCode, retryable: bool
) -> None:
    failed = failure_in({"is_error": True, "api_error_status": status, "result": "words"}, kind, None)
    assert failed is not None
    assert (failed.code, failed.retryable, failed.words) == (code, retryable, "words")


def test_what_a_turn_used_is_what_came_on_top() -> None:
    def result(count: int, **rest: Any) -> dict[str, Any]:
        tokens = {"inputTokens": 100, "outputTokens": 7, "cacheReadInputTokens": 20}
        one = {**{name: number * count for name, number in tokens.items()}, "costUSD": 0.5}
        return {"modelUsage": {"opus": one, "haiku": {"inputTokens": 1, "costUSD": 0.25}}, **rest}

    used, so_far = Usage.of_turn(result(1), Usage())
    assert used == Used(101, 7, 20, 0.75)
    assert Usage.of_turn(result(3), so_far)[0] == Used(200, 14, 40, 0.0)
    since = {"opus": {"inputTokens": 5, "costUSD": 0.125}}
    assert Usage.of_turn(result(9, model_usage_since_last_result=since), so_far)[0] == Used(5, 0, 0, 0.125)


def test_questions_are_put_one_by_one_and_answered_together() -> None:
    approvals = Approvals(NO_SECRETS)
    colour = {"question": "Which colour?", "options": [{"label": "Red"}, {"label": "Blue"}]}
    size = {"question": "Which size?", "options": []}
    given = {"questions": [colour, size]}
    one, two = approvals.ask("r", {"tool_name": "AskUserQuestion", "input": given})
    assert one == QuestionAsked(ApprovalId("r"), "Which colour?", ("Red", "Blue"))
    assert isinstance(two, QuestionAsked)
    assert approvals.answer(two.id, Answer.APPROVE, "large") == (True, None)
    assert approvals.answer(two.id, Answer.APPROVE, "small") == (False, None)
    answers = {"Which size?": "large", "Which colour?": "Blue"}
    allowed = {"behavior": "allow", "updatedInput": {**given, "answers": answers}}
    assert approvals.answer(ApprovalId("r"), Answer.APPROVE, "Blue") == (True, ("r", allowed))
    assert not approvals
