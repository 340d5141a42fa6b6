"""docs/api-reference.md and a real server: it takes every example; answers and events have the shapes of the page."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter

from clew.protocol.live import BeatView, ChangedView
from clew.protocol.views import LogView
from clew.server.router import BASE
from tests.up.kit import Up, until, up
from tests.up.test_live import PAGES, events
from tests.workspaces.kit import git, repository
from tools.api_examples import EXAMPLES, Example
from tools.api_reference import EVENTS, VALUES, openapi
from tools.log_lines import log_lines

DESCRIBED = openapi()
SHAPES = {
    **DESCRIBED["components"]["schemas"],
    **{each.__name__: TypeAdapter(each).json_schema() for each in (BeatView, ChangedView, LogView)},
}
LINES = {line.kind: line for line in log_lines()}


class Story:
    """Sends examples, fills in what the page leaves open, and compares each answer with the page."""

    def __init__(self, clew: Up, project: Path) -> None:
        self.clew, self.project = clew, project
        self.sent: list[Example] = []

    def send(self, call: str, nth: int = 0, **ids: str) -> Any:
        example = [each for each in EXAMPLES if each.call == call][nth]
        self.sent.append(example)
        base = "" if example.path == "/health" else BASE
        typed = isinstance(example.body, str)
        written = example.body if typed else json.dumps(example.body)
        path, body = f"{base}{example.path}", written.replace("/srv/web", str(self.project))
        for name, value in ids.items():
            path, body = path.replace(f"{{{name}}}", value), body.replace(f"{{{name}}}", value)
        with self.clew.http() as http:
            given: Any = {} if example.body is None else {"content": body} if typed else {"json": json.loads(body)}
            answer = http.request(example.method, f"{self.clew.address}{path}", **given)
        answers = DESCRIBED["paths"][base + call.partition(" ")[2]][example.method.lower()]["responses"]
        (status,) = (each for each in answers if each.startswith("2"))
        assert answer.status_code == int(status), (call, answer.status_code, answer.text)
        if "application/json" not in answers[status]["content"]:
            return answer.content
        matches(answer.json(), answers[status]["content"]["application/json"]["schema"])
        return answer.json()

    def says(self, text: str, ref: str = "issue-1") -> Any:
        """Not an example: words that make the guide do something. The wake."""
        return self.clew.ask("POST", f"/threads/{ref}/words", {"text": text})["wake"]

    def idle(self, ref: str = "issue-1") -> None:
        until(lambda: self.clew.ask("GET", f"/threads/{ref}")["thread"]["status"] == "idle", "an idle thread")


def matches(value: Any, schema: Any, where: str = "") -> None:
    """Exactly the fields that the page lists, and of fields with few values one of those."""
    match schema:
        case {"$ref": str(ref)}:
            shape = ref.rpartition("/")[2]
            assert set(value) == set(SHAPES[shape]["properties"]), shape
            for name, kind in SHAPES[shape]["properties"].items():
                known = VALUES.get(f"{shape}.{name}", ())
                assert not known or value[name] in (None, "", *known), f"{shape}.{name} is {value[name]}"
                matches(value[name], kind, f"{shape}.{name}")
        case {"type": "array", "items": kind}:
            for each in value:
                matches(each, kind, where)
        case {"anyOf": [{"$ref": _} as kind, {"type": "null"}]}:
            if value is not None:
                matches(value, kind, where)
        case _:
            pass


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    place = tmp_path_factory.mktemp("api")
    project = repository(place / "web")
    git(project, "remote", "add", "origin", "https://example.invalid/acme/web.git")
    with up(place / "data") as started:
        started.guide()
        yield Story(started, project)
        assert started.stop() == 0


def test_a_server_takes_every_example(story: Story, tmp_path: Path) -> None:
    send = story.send
    for call in ("GET /health", "GET /doctor", "GET /runtimes", "POST /tickets"):
        send(call)
    _agents(story)
    _projects(story, tmp_path)

    opened = send("POST /issues")
    assert opened["thread"]["ref"] == "issue-1"
    story.idle()
    _threads(story)
    _work(story)
    _runs(story)
    _sessions(story, tmp_path)
    send("POST /threads/{ref}/close")
    send("POST /threads/{ref}/reopen")
    for mark in ("read", "unread", "pin", "unpin", "archive", "unarchive"):
        send(f"POST /threads/{{ref}}/{mark}")
    send("GET /workspaces")
    send("POST /workspaces/clean")
    send("POST /begin")
    _live(story)
    assert [each.call for each in EXAMPLES if each not in story.sent] == []


def _agents(story: Story) -> None:
    send = story.send
    send("POST /agents")
    story.clew.ask("POST", "/agents", {"name": "bob", "provider": "guide"})
    for call in ("GET /agents", "GET /agents/{name}", "PATCH /agents/{name}", "DELETE /agents/{name}"):
        send(call)
    send("POST /agents/{name}/policy")
    send("GET /agents/{name}/policy")
    send("GET /agents/{name}/login")
    assert send("POST /agents/{name}/test")["ok"]


def _projects(story: Story, place: Path) -> None:
    send = story.send
    send("POST /projects")
    story.clew.ask("POST", "/projects", {"name": "old", "source": str(repository(place / "old"))})
    for call in ("GET /projects", "GET /projects/{name}", "PATCH /projects/{name}", "DELETE /projects/{name}"):
        send(call)
    send("POST /projects/{name}/policy")
    send("GET /projects/{name}/policy")


def _threads(story: Story) -> None:
    send = story.send
    send("POST /chats")
    send("GET /threads")
    send("GET /threads/{ref}")
    send("PATCH /threads/{ref}")
    spoken = send("POST /threads/{ref}/words")
    story.clew.ran(spoken["wake"])
    uploaded = send("POST /files")["id"]
    assert send("GET /files/{file}", file=uploaded) == b"The build log of Friday\n"
    story.clew.ran(send("POST /threads/{ref}/words", 1, file=uploaded)["wake"])
    send("POST /threads/{ref}/assign")
    story.idle()
    send("PATCH /threads/{ref}/lanes/{agent}")


def _work(story: Story) -> None:
    """What the agent changed goes its way into the base."""
    clew, send = story.clew, story.send
    clew.ran(story.says("THINK: which file?\nPLAN: find it; mend it\nWRITE: login.txt mended"))
    assert "login.txt" in send("GET /threads/{ref}/diff")["text"]
    send("POST /threads/{ref}/commit")
    directory = send("POST /threads/{ref}/checkout")["directory"]
    git(Path(directory), "switch", "--quiet", "--create", "mended")
    send("POST /threads/{ref}/checkout", 1)
    assert send("POST /workspaces/accept")["branch"] == "mended"
    send("POST /threads/{ref}/propose")
    send("POST /threads/{ref}/merge")


def _runs(story: Story) -> None:
    clew, send = story.clew, story.send
    send("POST /wakes")
    # In the project's mode, edit, the guide asks before it runs a command.
    wake = story.says("RUN: echo hello")
    (asked,) = until(lambda: clew.ask("GET", "/approvals"), "an approval")
    assert send("GET /approvals") == [asked]
    send("POST /approvals/{approval}", approval=asked["id"])
    clew.ran(wake)
    send("DELETE /threads/{ref}/lanes/{agent}/allowed")
    for stop in ("POST /runs/{run}/interrupt", "POST /runs/{run}/cancel"):
        story.says("SLOW: 300")
        until(lambda: clew.ask("GET", "/runs/issue-1")["state"] == "running", "a live run")
        if stop.endswith("interrupt"):
            waiting = story.says("One more thing.")
            _queue(story, waiting["id"], story.says("And another.")["id"])
        assert send(stop)["taken"]
        story.idle()
    send("POST /runs/{run}/rerun")
    story.idle()
    story.says("FAIL: 400")
    until(lambda: clew.ask("GET", "/runs/issue-1")["state"] == "failed", "a failed run")
    send("POST /runs/{run}/retry")
    story.idle()
    for call in (
        "GET /runs",
        "GET /runs/{run}",
        "GET /why/{subject}",
        "GET /overview",
        "GET /notices",
        "GET /push",
        "GET /usage",
        "GET /search",
        "POST /replay",
    ):
        send(call)
    browser = send("POST /push/subscriptions")["id"]
    assert send("DELETE /push/subscriptions/{subscription}", subscription=browser)["subscriptions"] == []
    for line in send("GET /runs/{run}/events"):
        assert set(line["body"]) == set(LINES[line["kind"]].example), line


def _queue(story: Story, wake: str, later: str) -> None:
    """Two messages wait: they change places, and then neither waits."""
    send = story.send
    assert send("GET /threads/{ref}/preview")["outcome"] == "steered"
    send("GET /wakes/{wake}", wake=wake)
    send("PATCH /wakes/{wake}", wake=wake)
    send("POST /threads/{ref}/queue", wake=wake, later=later)
    assert [each["wake"] for each in send("GET /threads/{ref}/queue")] == [later, wake]
    send("DELETE /wakes/{wake}", wake=later)
    send("POST /wakes/{wake}/steer", wake=wake)


def _sessions(story: Story, place: Path) -> None:
    clew, send = story.clew, story.send
    send("GET /sessions")
    send("POST /threads/{ref}/release")
    before = {each["native_id"] for each in clew.ask("GET", "/sessions/found")}
    _own_session(clew.data / "guide", place)
    (found,) = (each for each in send("GET /sessions/found") if each["native_id"] not in before)
    send("POST /threads/{ref}/adopt", runtime=found["runtime"], native_id=found["native_id"])
    send("POST /sessions/adopt", runtime=found["runtime"], native_id=found["native_id"])


def _live(story: Story) -> None:
    (example,) = (each for each in EXAMPLES if each.call == "GET /live")
    stream = events(story.clew, example.query)
    assert next(stream).kind == "thread"
    stream.close()
    story.sent.append(example)


def _own_session(home: Path, place: Path) -> None:
    """A session that a person began with the guide's own program."""
    calls = [{"id": 1, "method": "session/new", "params": {"cwd": str(place)}}]
    subprocess.run(
        [sys.executable, "-m", "clew.providers.guide.agent"],
        input="".join(f"{json.dumps(each)}\n" for each in calls),
        env={"GUIDE_HOME": str(home)},
        text=True,
        check=True,
        capture_output=True,
    )


def test_live_events_and_log_lines_have_the_shapes_of_the_page(story: Story) -> None:
    clew = story.clew
    clew.ask("POST", "/agents", {"name": "careful", "provider": "guide", "mode": "ask"})
    ref = clew.ask("POST", "/chats", {"agent": "careful"})["ref"]
    stream = events(clew, f"thread={ref}")
    told = [next(stream)]
    story.says("THINK: well\nPLAN: one; two\nRUN: echo three", ref)
    for event in stream:
        told.append(event)
        if event.kind == "approval" and event.data["state"] == "pending":
            clew.ask("POST", f"/approvals/{event.data['id']}", {"allow": True})
        if event.kind == "run" and event.data["ended_at"] is not None:
            break
    stream.close()
    pages = events(clew, f"follow={ref}", kinds=PAGES)
    told += [next(pages), next(pages)]
    pages.close()
    assert {event.kind for event in told} == set(EVENTS)
    for event in told:
        matches(event.data, {"$ref": EVENTS[event.kind]})
    lines = [event.data for event in told if event.kind == "log"]
    assert {line["kind"] for line in lines} >= {"step", "text", "thought", "plan", "tool-started", "approval", "done"}
    for line in lines:
        assert set(line["body"]) == set(LINES[line["kind"]].example), line
        if line["kind"] == "step":
            assert line["body"]["what"] in LINES["step"].values("what")
