"""What Codex tells, translated: cases that no turn on loopback brings about."""

import asyncio
from typing import Any

import pytest

from clew.kernel import Answer
from clew.ports.events import ApprovalAsked, Event, PlanChanged, Text, ToolFinished, ToolStarted
from clew.programs.secrets import Redactor
from clew.providers.codex.approvals import Approvals, Kind
from clew.providers.codex.events import Meter
from clew.providers.codex.turn import Notification, Turn


def told(method: str, **arguments: Any) -> list[Event]:
    async def scene() -> list[Event]:
        turn = Turn("thread", Meter(), Redactor({"API_KEY": "hush-hush"}))
        turn.begin("turn")
        return list(turn.events(Notification(method, {"threadId": "thread", "turnId": "turn", **arguments}), {}))

    return asyncio.run(scene())


def test_a_plan_is_told_with_its_steps() -> None:
    plan = [{"step": "look", "status": "completed"}, {"step": "leap", "status": "inProgress"}]
    assert told("turn/plan/updated", plan=plan) == [PlanChanged((("look", "completed"), ("leap", "inProgress")))]


@pytest.mark.parametrize(
    ("item", "name", "ok"),
    [
        ({"type": "mcpToolCall", "server": "files", "tool": "read", "status": "completed"}, "files.read", True),
        ({"type": "mcpToolCall", "server": "files", "tool": "read", "status": "failed"}, "files.read", False),
        ({"type": "dynamicToolCall", "tool": "own", "status": "completed"}, "own", True),
        ({"type": "webSearch", "query": "?"}, "webSearch", True),
        ({"type": "fileChange", "changes": [], "status": "declined"}, "fileChange", False),
        ({"type": "ofTomorrow"}, "ofTomorrow", True),
    ],
)
def test_every_kind_of_tool_is_told(item: dict[str, Any], name: str, ok: bool) -> None:
    (started,) = told("item/started", item={**item, "id": "1"})
    (finished,) = told("item/completed", item={**item, "id": "1"})
    assert isinstance(started, ToolStarted)
    assert isinstance(finished, ToolFinished)
    assert (started.id, started.name) == ("1", name)
    assert (finished.id, finished.ok) == ("1", ok)


@pytest.mark.case("S13")
def test_other_threads_and_earlier_turns_have_no_part() -> None:
    item = {"type": "agentMessage", "id": "1", "text": "aside"}
    assert told("item/completed", item=item, threadId="child") == []
    assert told("item/completed", item=item, turnId="earlier") == []


def test_secrets_are_hidden() -> None:
    (text,) = told("item/completed", item={"type": "agentMessage", "id": "1", "text": "it is hush-hush"})
    assert "hush-hush" not in repr(text)
    assert "hush-hush" not in str(text.raw)


def test_a_secret_that_is_cut_by_the_parts_is_hidden() -> None:
    async def scene() -> list[Event]:
        turn = Turn("thread", Meter(), Redactor({"API_KEY": "hush-hush"}))
        turn.begin("turn")
        of = {"threadId": "thread", "turnId": "turn"}
        parts = [
            Notification("item/agentMessage/delta", {**of, "itemId": "1", "delta": part})
            for part in ("it hus", "h-hush hu")
        ]
        ends = Notification(
            "item/completed", {**of, "item": {"type": "agentMessage", "id": "1", "text": "it hush-hush hu"}}
        )
        return [event for each in (*parts, ends) for event in turn.events(each, {})]

    events = asyncio.run(scene())
    shown = "".join(event.text for event in events if isinstance(event, Text) and not event.final)
    assert shown == "it [hidden] hu"
    told_raw = "".join(str((event.raw or {}).get("params", {}).get("delta", "")) for event in events)
    assert "hush" not in told_raw


@pytest.mark.case("A03")
@pytest.mark.parametrize(
    ("kind", "arguments", "yes", "no"),
    [
        (Kind.COMMAND, {"command": "ls"}, {"decision": "accept"}, {"decision": "decline"}),
        (Kind.FILES, {}, {"decision": "accept"}, {"decision": "decline"}),
        (
            Kind.PERMISSIONS,
            {"permissions": {"network": {"enabled": True}}},
            {"permissions": {"network": {"enabled": True}}, "scope": "turn"},
            {"permissions": {}, "scope": "turn"},
        ),
        (Kind.SERVER, {"message": "?"}, {"action": "accept", "content": {}}, {"action": "decline", "content": None}),
    ],
)
def test_an_answer_is_for_once(kind: Kind, arguments: dict[str, Any], yes: object, no: object) -> None:
    for given, expected in ((Answer.APPROVE, yes), (Answer.DENY, no)):
        questions = Approvals("session")
        events = questions.ask(7, kind.value, arguments, "", {})
        assert events is not None
        (asked,) = events
        assert isinstance(asked, ApprovalAsked)
        assert questions.answer(asked.id, given, "") == (7, expected)
        assert questions.answer(asked.id, given, "") is None


def test_what_no_person_can_answer_is_not_asked() -> None:
    assert Approvals("session").ask(1, "item/tool/call", {}, "", {}) is None
    assert Approvals("session").ask(1, Kind.QUESTION.value, {"questions": []}, "", {}) is None
