"""The loopback model by itself: what it hears, says and does, in each wire format."""

import http.client
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from tests.providers.loopback.heard import Format, Json, asked
from tests.providers.loopback.script import BEGINNING, TITLE, USAGE
from tests.providers.loopback.server import HOST, Model


@dataclass(frozen=True)
class Asking:
    """A request in one format. `history` is of prompts, answers ("> ...") and tool results ("= ...")."""

    path: str
    history: Callable[[str], Json]
    tools: list[Json]
    field: str = "messages"

    def body(self, *history: str, tools: bool = True, **rest: object) -> Json:
        offered = {"tools": self.tools} if tools else {}
        return {"model": "m", "stream": True, self.field: [self.history(line) for line in history], **offered, **rest}


def anthropic(line: str) -> Json:
    match line[:2]:
        case "> ":
            return {"role": "assistant", "content": [{"type": "text", "text": line[2:]}]}
        case "= ":
            result = {"type": "tool_result", "tool_use_id": "t", "content": line[2:]}
            reminder = {"type": "text", "text": "<system-reminder>be kind</system-reminder>"}
            return {"role": "user", "content": [result, reminder]}
        case _:
            return {"role": "user", "content": line}


def responses(line: str) -> Json:
    match line[:2]:
        case "> ":
            return {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": line[2:]}]}
        case "= ":
            return {"type": "function_call_output", "call_id": "t", "output": line[2:]}
        case _:
            return {"type": "message", "role": "user", "content": [{"type": "input_text", "text": line}]}


def chat(line: str) -> Json:
    match line[:2]:
        case "> ":
            return {"role": "assistant", "content": line[2:]}
        case "= ":
            return {"role": "tool", "tool_call_id": "t", "content": line[2:]}
        case _:
            return {"role": "user", "content": line}


def functions(*names: str) -> list[Json]:
    return [{"type": "function", "function": {"name": name}} for name in names]


ASKING = {
    Format.ANTHROPIC: Asking("/v1/messages", anthropic, [{"name": name} for name in ("Bash", "Write")]),
    Format.RESPONSES: Asking(
        "/v1/responses", responses, [{"type": "function", "name": "exec_command"}, {"type": "web_search"}], "input"
    ),
    Format.CHAT: Asking("/v1/chat/completions", chat, functions("bash", "write")),
}
SHELL = {Format.ANTHROPIC: "Bash", Format.RESPONSES: "exec_command", Format.CHAT: "bash"}


@pytest.fixture(params=list(ASKING))
def format(request: pytest.FixtureRequest) -> Format:  # noqa: A001 - the word of the model
    chosen: Format = request.param
    return chosen


@pytest.fixture
def asking(format: Format) -> Asking:  # noqa: A002
    return ASKING[format]


@contextmanager
def connected(model: Model, seconds: float = 10.0) -> Iterator[http.client.HTTPConnection]:
    connection = http.client.HTTPConnection(HOST, model.port, timeout=seconds)
    try:
        yield connection
    finally:
        connection.close()


def post(connection: http.client.HTTPConnection, path: str, body: Json) -> tuple[int, str]:
    connection.request("POST", path, json.dumps(body), {"content-type": "application/json", "x-api-key": "secret"})
    response = connection.getresponse()
    return response.status, response.read().decode()


def ask(model: Model, path: str, body: Json) -> tuple[int, str]:
    with connected(model) as connection:
        return post(connection, path, body)


def events(streamed: str) -> list[Any]:
    data = [line.removeprefix("data: ") for line in streamed.splitlines() if line.startswith("data: ")]
    return [json.loads(line) for line in data if line != "[DONE]"]


def said(streamed: str) -> str:
    """The text of an answer, whatever its format."""
    parts = []
    for event in events(streamed):
        delta = event.get("delta")
        if isinstance(delta, dict):
            parts.append(delta.get("text", ""))
        elif event.get("type") == "response.output_text.delta":
            parts.append(delta)
        parts += [choice["delta"].get("content", "") for choice in event.get("choices", [])]
    return "".join(parts)


# ---------------------------------------------------------------- what it hears and says


def test_the_answer_proves_the_history(model: Model, asking: Asking, format: Format) -> None:  # noqa: A002
    status, streamed = ask(model, asking.path, asking.body("hello alpha", "> yes", "second beta"))
    assert status == 200
    assert said(streamed) == 'SAW users=2 first="hello alpha" last="second beta"'
    (request,) = model.requests
    assert request.format is format
    assert request.turns == (("user", "hello alpha"), ("assistant", "yes"), ("user", "second beta"))
    assert request.headers["x-api-key"] == "(hidden)"
    assert "secret" not in repr(request)


def test_an_answer_that_is_not_streamed_is_whole(model: Model, asking: Asking) -> None:
    status, answer = ask(model, asking.path, asking.body("SAY: in one piece", stream=False))
    assert status == 200
    assert "in one piece" in answer
    assert str(USAGE.input) in answer


def test_calls_are_made_one_after_the_other_and_the_last_result_is_told(
    model: Model,
    asking: Asking,
    format: Format,  # noqa: A002
) -> None:
    prompt = "RUN: echo one\nRUN: echo two"
    for results, command in ((), "echo one"), (("= one",), "echo two"):
        _, streamed = ask(model, asking.path, asking.body(prompt, *results))
        assert SHELL[format] in streamed
        assert command in streamed
        assert not said(streamed)
    _, streamed = ask(model, asking.path, asking.body(prompt, "= one", "= two"))
    assert said(streamed).startswith("TOOL SAID: two\nSAW users=1")
    assert [request.answered for request in model.requests] == ["call", "call", "say"]
    _, streamed = ask(model, asking.path, asking.body(prompt, "= one", "= two", "> done", "and now?"))
    assert said(streamed).startswith("SAW users=2")


def test_a_file_is_written_by_the_agents_own_tool(model: Model, asking: Asking) -> None:
    _, streamed = ask(model, asking.path, asking.body("WRITE: /tmp/x some words"))
    assert "/tmp/x" in streamed
    assert "some words" in streamed
    assert model.requests[0].answered == "call"


def test_any_tool_can_be_called_if_it_is_offered(model: Model, asking: Asking, format: Format) -> None:  # noqa: A002
    _, streamed = ask(model, asking.path, asking.body(f'CALL: {SHELL[format]} {{"odd": 31}}'))
    assert "odd" in streamed
    _, streamed = ask(model, asking.path, asking.body("CALL: absent {}"))
    assert said(streamed).startswith("NO TOOL for CALL among ")


def test_lines_that_were_taught_are_followed_where_the_last_prompt_has_the_words(model: Model, asking: Asking) -> None:
    model.teach("door", "SAY: a door")
    model.teach("second door", "RUN: ls")
    assert said(ask(model, asking.path, asking.body("Add a door."))[1]) == "a door"
    ask(model, asking.path, asking.body("Add a door.", "> a door", "Add a second door."))
    assert said(ask(model, asking.path, asking.body("Add a door.", "> a door", "A window?"))[1]).startswith(
        "SAW users=2"
    )
    assert [request.answered for request in model.requests] == ["say", "call", "say"]


def test_codex_is_made_to_ask_to_leave_its_sandbox(model: Model) -> None:
    asking = ASKING[Format.RESPONSES]
    _, streamed = ask(model, asking.path, asking.body("ESCALATE: touch x"))
    assert "require_escalated" in streamed


def test_a_thought_comes_before_the_answer(model: Model, asking: Asking) -> None:
    _, streamed = ask(model, asking.path, asking.body("THINK: let me see\nSAY: Z"))
    assert 0 < streamed.index("let me see") < streamed.index('"Z"')
    assert said(streamed) == "Z"


def test_a_title_is_a_side_request_and_follows_no_directive(model: Model) -> None:
    asking = ASKING[Format.CHAT]
    system = {"role": "system", "content": "You are a title generator."}
    body = asking.body("HANG", tools=False)
    body["messages"].insert(0, system)
    _, streamed = ask(model, asking.path, body)
    assert said(streamed) == TITLE
    assert model.requests[0].side
    assert model.work == []


@pytest.mark.parametrize(
    ("text", "prompt"),
    [
        ("hello", "hello"),
        ("<system-reminder>be kind</system-reminder>\nhello", "hello"),
        ("<environment_context>\n<cwd>/</cwd>\n</environment_context>", ""),
        ("<permissions instructions>x</permissions instructions>", ""),
        ("# AGENTS.md instructions for /srv", ""),
        ("[Request interrupted by user]", ""),
        ("<b>bold</b> words", "<b>bold</b> words"),
    ],
)
def test_only_what_a_person_asked_is_a_prompt(text: str, prompt: str) -> None:
    assert asked(text) == prompt


# ---------------------------------------------------------------- what goes wrong with it


@pytest.mark.parametrize("status", [400, 401, 429, 500, 529])
def test_it_fails_as_often_as_told(model: Model, asking: Asking, status: int) -> None:
    model.fail(status, times=2)
    answers = [ask(model, asking.path, asking.body("hello")) for _ in range(3)]
    assert [code for code, _ in answers] == [status, status, 200]
    assert "error" in json.loads(answers[0][1])
    model.fail(status, body={"own": "words"})
    assert ask(model, asking.path, asking.body("hello")) == (status, '{"own": "words"}')
    model.ok()
    assert ask(model, asking.path, asking.body("hello"))[0] == 200


def test_a_side_request_fails_too_and_is_not_counted(model: Model, asking: Asking) -> None:
    model.fail(500, times=1)
    side, work = asking.body("hello", tools=False), asking.body("hello")
    assert [ask(model, asking.path, body)[0] for body in (side, side, work, side, work)] == [500, 500, 500, 200, 200]


def test_a_limit_says_when_it_ends(model: Model, asking: Asking) -> None:
    model.fail(429, retry_after=7, resets_at=1_900_000_000)
    with connected(model) as connection:
        connection.request("POST", asking.path, json.dumps(asking.body("hello")))
        response = connection.getresponse()
        told = f"{response.headers} {response.read().decode()}"
    assert response.headers["retry-after"] == "7"
    assert "1900000000" in told


def test_a_cut_answer_begins_and_does_not_end(model: Model, asking: Asking) -> None:
    model.cut(times=1)
    for prompt in ("hello", "CUT"):
        with pytest.raises(http.client.IncompleteRead) as broken:
            ask(model, asking.path, asking.body(prompt))
        assert BEGINNING[0] in said(broken.value.partial.decode())
    with pytest.raises(http.client.RemoteDisconnected):
        ask(model, asking.path, asking.body("CUT", stream=False))


@pytest.mark.parametrize("mute", [False, True])
def test_a_hanging_answer_never_ends(model: Model, asking: Asking, mute: bool) -> None:
    model.hang(times=1, mute=mute)
    with connected(model, seconds=0.3) as connection, pytest.raises(TimeoutError):
        post(connection, asking.path, asking.body("hello"))
    with connected(model, seconds=0.3) as connection, pytest.raises(TimeoutError):
        post(connection, asking.path, asking.body("HANG"))
    assert [request.answered for request in model.requests] == ["hang", "hang"]
    assert ask(model, asking.path, asking.body("hello"))[0] == 200


def test_a_slow_answer_takes_its_time_and_arrives(model: Model, asking: Asking) -> None:
    began = time.monotonic()
    _, streamed = ask(model, asking.path, asking.body("SLOW: 0.4\nSAY: piece by piece by piece"))
    assert time.monotonic() - began >= 0.35
    assert said(streamed) == "piece by piece by piece"


def test_down_refuses_and_drops_and_up_is_on_the_same_port(model: Model, asking: Asking) -> None:
    port = model.port
    with connected(model) as idle:
        assert post(idle, asking.path, asking.body("hello"))[0] == 200
        model.down()
        model.down()
        with pytest.raises(ConnectionRefusedError):
            ask(model, asking.path, asking.body("hello"))
        with pytest.raises(ConnectionError):
            post(idle, asking.path, asking.body("hello"))
    model.up()
    model.up()
    assert model.port == port
    assert ask(model, asking.path, asking.body("hello"))[0] == 200


# ---------------------------------------------------------------- its manners


def test_a_connection_serves_many_requests(model: Model, asking: Asking) -> None:
    with connected(model) as connection:
        for number in range(5):
            model.fail(500, times=number % 2) if number % 2 else model.ok()
            assert post(connection, asking.path, asking.body(f"hello {number}"))[0] == (500 if number % 2 else 200)
    assert [request.prompts for request in model.requests] == [(f"hello {number}",) for number in range(5)]


def test_a_slow_request_holds_up_no_other(model: Model, asking: Asking) -> None:
    answers: list[str] = []

    def talk(prompt: str) -> None:
        answers.append(said(ask(model, asking.path, asking.body(prompt))[1]))

    slow = threading.Thread(target=talk, args=("SLOW: 1\nSAY: slow enough",))
    slow.start()
    model.wait(1)
    quick = [threading.Thread(target=talk, args=(f"SAY: {number}",)) for number in range(8)]
    for each in quick:
        each.start()
    for each in [*quick, slow]:
        each.join(10)
    assert sorted(answers[:-1]) == sorted(str(number) for number in range(8))
    assert answers[-1] == "slow enough"


def test_a_body_may_come_in_chunks(model: Model, asking: Asking) -> None:
    content = json.dumps(asking.body("hello")).encode()
    with connected(model) as connection:
        connection.request("POST", asking.path, iter([content[:10], content[10:]]), encode_chunked=True)
        assert connection.getresponse().status == 200
    assert model.requests[0].prompts == ("hello",)


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("HEAD", "/", 200),
        ("GET", "/", 200),
        ("GET", "/v1/models", 200),
        ("POST", "/v1/messages/count_tokens", 200),
        ("GET", "/elsewhere", 404),
    ],
)
def test_what_is_asked_beside_the_work_is_answered(model: Model, method: str, path: str, status: int) -> None:
    with connected(model) as connection:
        for _ in range(2):
            connection.request(method, path)
            response = connection.getresponse()
            response.read()
            assert response.status == status
    assert model.requests == []


def test_waiting_has_an_end(model: Model) -> None:
    with pytest.raises(TimeoutError, match="0 of 1"):
        model.wait(1, seconds=0.05)


def test_it_ends_at_once_and_leaves_nothing() -> None:
    before = set(threading.enumerate())
    asking = ASKING[Format.ANTHROPIC]
    with Model() as model, connected(model) as idle, connected(model) as hanging:
        assert post(idle, asking.path, asking.body("hello"))[0] == 200
        hanging.request("POST", asking.path, json.dumps(asking.body("HANG")))
        model.wait(2)
        began = time.monotonic()
        model.close()
        model.close()
    assert time.monotonic() - began < 2
    assert set(threading.enumerate()) == before
    with pytest.raises(ConnectionRefusedError):
        ask(model, asking.path, asking.body("hello"))


def test_a_request_it_does_not_understand_fails_the_test() -> None:
    model = Model()
    with pytest.raises(ConnectionError):
        ask(model, ASKING[Format.CHAT].path, {"messages": [{"no": "role"}]})
    with pytest.raises(ExceptionGroup, match="did not understand"):
        model.close()
