"""A turn told by the server's events: only the session's own words count, and late ones are not the next turn's."""

from typing import Any

import pytest

from clew.ports.events import ApprovalAsked, Event, PlanChanged, QuestionAsked, Text, Thought, ToolFinished, Used
from clew.programs.secrets import Redactor
from clew.providers.opencode.approvals import Approvals
from clew.providers.opencode.events import Retry, TurnFollower

OWN, CHILD, OTHER = "ses_own", "ses_child", "ses_other"


class Told:
    def __init__(self, known: set[str] | None = None, secret: str = "") -> None:
        redactor = Redactor({"TOKEN": secret})
        self.turn = TurnFollower(OWN, redactor, Approvals(redactor), known if known is not None else set())

    def __call__(self, kind: str, session: str = OWN, **about: Any) -> list[Event]:
        return list(self.turn.follow({"type": kind, "properties": {"sessionID": session, **about}}))

    def message(self, id_: str, role: str = "assistant", session: str = OWN, **more: Any) -> list[Event]:
        return self("message.updated", session, info={"id": id_, "role": role, "time": {"created": 1}, **more})

    def part(self, message: str, kind: str, session: str = OWN, **more: Any) -> list[Event]:
        part = {"id": more.pop("id", "prt_1"), "messageID": message, "type": kind, **more}
        return self("message.part.updated", session, part=part)

    def status(self, kind: str, session: str = OWN, **more: Any) -> list[Event]:
        return self("session.status", session, status={"type": kind, **more})

    def is_over(self) -> bool:
        return self.turn.is_over

    def begin(self) -> None:
        self.message("msg_prompt", "user")
        self.status("busy")
        self.message("msg_1")


OVER = {"start": 1, "end": 2}


def test_a_message_is_told_in_parts_and_then_whole() -> None:
    told = Told()
    told.begin()
    told.part("msg_1", "text", text="", time={"start": 1})
    parts = [
        *told("message.part.delta", messageID="msg_1", partID="prt_1", field="text", delta="one "),
        *told("message.part.delta", messageID="msg_1", partID="prt_1", field="text", delta="two"),
    ]
    assert parts == [Text("one ", final=False), Text("two", final=False)]
    assert told.part("msg_1", "text", text="one two", time=OVER) == [Text("one two")]
    assert told.turn.reply == "one two"


def test_the_prompt_is_not_told_back() -> None:
    told = Told()
    told.begin()
    assert told.part("msg_prompt", "text", text="what was asked", time=OVER) == []


@pytest.mark.case("S13", "P10")
def test_other_sessions_say_nothing_in_this_turn() -> None:
    told = Told()
    told.begin()
    told("session.created", CHILD, info={"id": CHILD, "parentID": OWN})
    for session in (CHILD, OTHER):
        told.message("msg_x", session=session)
        assert told.part("msg_x", "text", session=session, text="not mine", time=OVER) == []
        told("session.idle", session)
        told("session.error", session, error={"name": "APIError"})
    assert not told.turn.idle
    assert told.turn.error is None
    assert told.turn.reply == ""


@pytest.mark.case("S13")
def test_what_a_subagent_asks_and_uses_is_of_this_turn() -> None:
    told = Told()
    told.begin()
    told("session.created", CHILD, info={"id": CHILD, "parentID": OWN})
    told("session.created", "ses_grandchild", info={"id": "ses_grandchild", "parentID": CHILD})
    (asked,) = told("permission.asked", "ses_grandchild", id="per_1", permission="bash", metadata={"command": "ls"})
    assert isinstance(asked, ApprovalAsked)
    assert asked.command == "ls"
    assert told("permission.asked", OTHER, id="per_2", permission="bash") == []
    tokens = {"input": 5, "output": 2, "reasoning": 1, "cache": {"read": 3, "write": 0}}
    told.part("msg_1", "step-finish", tokens=tokens, cost=0.5)
    (used,) = told.part("msg_c", "step-finish", session=CHILD, tokens=tokens, cost=0.25)
    assert used == Used(10, 6, 6, 0.75)


@pytest.mark.case("P10")
def test_what_comes_late_of_the_turn_before_ends_no_other() -> None:
    told = Told(known={"msg_old_prompt", "msg_old"})
    told.message("msg_old_prompt", "user")
    told.message("msg_old", error={"name": "MessageAbortedError"})
    told.status("idle")
    told("session.idle")
    assert told.part("msg_old", "text", text="from before", time=OVER) == []
    assert not told.turn.idle
    assert told.turn.error is None
    told.begin()
    told.message("msg_1", time={"created": 1, "completed": 2})
    told("session.idle")
    assert told.is_over()


@pytest.mark.case("L05")
def test_a_turn_that_was_cut_short_is_over_when_its_last_words_have_come() -> None:
    told = Told()
    told.begin()
    state = {"status": "running", "input": {"command": "sleep 9"}}
    told.part("msg_1", "tool", callID="call_1", tool="bash", state=state)
    told("session.idle")
    assert told.turn.idle
    assert not told.is_over()
    state = {"status": "completed", "input": {}, "output": "aborted", "metadata": {"exit": None}}
    assert told.part("msg_1", "tool", callID="call_1", tool="bash", state=state) == [
        ToolFinished("call_1", ok=False, output="aborted")
    ]
    told.message("msg_1", time={"created": 1, "completed": 2}, error={"name": "MessageAbortedError"})
    assert told.is_over()
    assert list(told.turn.unfinished()) == []


def test_a_tool_of_whose_end_nothing_was_told_is_finished_badly() -> None:
    told = Told()
    told.begin()
    told.part("msg_1", "tool", callID="call_1", tool="bash", state={"status": "running", "input": {}})
    (finished,) = told.turn.unfinished()
    assert isinstance(finished, ToolFinished)
    assert not finished.ok


@pytest.mark.parametrize(
    ("state", "ok"),
    [
        ({"status": "completed", "metadata": {"exit": 0}}, True),
        ({"status": "completed", "metadata": {"exit": 2}}, False),
        ({"status": "completed", "metadata": {"exit": None}}, False),
        ({"status": "completed", "metadata": {}}, True),
        ({"status": "error", "error": "no"}, False),
    ],
)
def test_a_command_that_failed_is_not_told_as_well(state: dict[str, Any], ok: bool) -> None:
    told = Told()
    told.begin()
    *_, finished = told.part("msg_1", "tool", callID="call_1", tool="bash", state={"input": {}, **state})
    assert isinstance(finished, ToolFinished)
    assert finished.ok is ok


@pytest.mark.case("L06")
@pytest.mark.case("L10")
@pytest.mark.parametrize(
    ("attempt", "pause", "told"), [(1, 2.5, False), (9, 640.0, False), (1, 60.0, True), (3, 3600.0, True)]
)
def test_the_end_of_a_limit_is_told_apart_from_a_pause_of_its_own(attempt: int, pause: float, told: bool) -> None:
    assert Retry("again", 1000.0 + pause, attempt).reset(1000.0) == (1000.0 + pause if told else None)


def test_a_retry_and_what_it_repeats_are_no_progress() -> None:
    told = Told()
    told.begin()
    before = told.turn.progress
    told.status("retry", attempt=1, message="fails with 500", next=5000)
    told.status("busy")
    told("message.part.delta", messageID="msg_1", partID="prt_1", field="text", delta="B")
    assert told.turn.progress == before
    assert told.turn.retry is not None
    assert (told.turn.retry.words, told.turn.retry.next) == ("fails with 500", 5.0)
    told.part("msg_1", "step-finish", tokens={}, cost=0)
    assert told.turn.progress > before
    assert told.turn.retry is None


def test_thoughts_plans_and_questions_are_told() -> None:
    told = Told()
    told.begin()
    told.part("msg_1", "reasoning", text="", time={"start": 1})
    assert told("message.part.delta", messageID="msg_1", partID="prt_1", field="text", delta="hm") == []
    assert told.part("msg_1", "reasoning", text="hmm", time=OVER) == [Thought("hmm")]
    assert told("todo.updated", todos=[{"content": "do it", "status": "pending"}]) == [
        PlanChanged((("do it", "pending"),))
    ]
    options = [{"label": "One"}, {"label": "Two"}]
    asked = told(
        "question.asked", id="que_1", questions=[{"question": "Which?", "options": options}, {"question": "Why?"}]
    )
    assert [(each.id, each.words, each.choices) for each in asked if isinstance(each, QuestionAsked)] == [
        ("que_1/0", "Which?", ("One", "Two")),
        ("que_1/1", "Why?", ()),
    ]
    assert told.turn.asks
    told("question.replied", requestID="que_1")
    assert not told.turn.asks


def test_secrets_stay_out_of_what_is_told() -> None:
    told = Told(secret="sk-verysecret")
    told.begin()
    events = [
        *told("message.part.delta", messageID="msg_1", partID="prt_1", field="text", delta="it is sk-very"),
        *told("message.part.delta", messageID="msg_1", partID="prt_1", field="text", delta="secret, so"),
        *told.part("msg_1", "text", text="it is sk-verysecret, so", time=OVER),
        *told.part("msg_1", "tool", tool="bash", state={"status": "error", "input": {"command": "echo sk-verysecret"}}),
        *told("permission.asked", id="per_1", permission="bash", metadata={"command": "echo sk-verysecret"}),
    ]
    assert len(events) == 6
    assert not any("sk-very" in f"{event!r} {event.raw}" for event in events)
