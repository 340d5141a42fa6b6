"""Whatever a request holds, the answer is a problem in one shape, and never a mistake of the server."""

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx2
import pytest

from clew.control.services import Services
from clew.server.bodies import LARGEST
from clew.store.engine import sqlite
from clew.store.engine.open import open_current, upgrade_database
from tests.server.kit import House, inside, serving

JSON = {"Content-Type": "application/json"}


def problem(answer: httpx2.Response, status: int) -> dict[str, Any]:
    assert answer.status_code == status, (answer.status_code, answer.text)
    assert answer.headers["content-type"] == "application/problem+json"
    said: dict[str, Any] = answer.json()
    assert {"type", "title", "status", "detail", "code", "remedy"} <= set(said)
    assert said["status"] == status
    assert said["type"] == f"urn:clew:problem:{said['code']}"
    assert said["detail"]
    return said


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "code"),
    [
        ("GET", "/agents/nobody", None, 404, "store:no-such-agent"),
        ("GET", "/projects/none", None, 404, "store:no-such-project"),
        ("GET", "/threads/issue-9", None, 404, "store:no-such-thread"),
        ("GET", "/runs/rn_none", None, 404, "store:no-such-run"),
        ("GET", "/wakes/wk_none", None, 404, "store:no-such-wake"),
        ("GET", "/why/none", None, 404, None),
        ("POST", "/approvals/none", {"allow": True}, 404, "store:no-such-approval"),
        ("POST", "/threads/issue-1/words", {"text": "hello"}, 404, "store:no-such-thread"),
        ("POST", "/wakes", {"agent": "nobody"}, 404, "store:no-such-agent"),
        ("GET", "/nothing", None, 404, "server:not-found"),
        ("PUT", "/agents", {}, 405, "server:method-not-allowed"),
        ("GET", "/runs?state=flying", None, 422, "ask:bad-request"),
        ("GET", "/threads?limit=0", None, 422, "ask:invalid"),
        ("GET", "/threads?limit=many", None, 422, "ask:invalid"),
        ("POST", "/issues", {"title": "x", "titel": "y"}, 422, "ask:invalid"),
        ("POST", "/runs/rn_none/retry", {"taken": True, "takne": True}, 422, "ask:invalid"),
        ("POST", "/workspaces/clean", {"askde": []}, 422, "ask:invalid"),
        ("PATCH", "/threads/chat-1/lanes/ada", {"overlap": "queue", "over": 1}, 422, "ask:invalid"),
        ("POST", "/issues", {}, 422, "ask:invalid"),
        ("POST", "/issues", [], 422, "ask:invalid"),
        ("POST", "/issues", {"title": ["x"]}, 422, "ask:invalid"),
        ("POST", "/issues", {"title": "x" * 10_000}, 422, "ask:bad-request"),
        ("POST", "/agents", {"name": "../x", "provider": "guide"}, 422, "ask:bad-name"),
        ("POST", "/agents", {"name": "x", "provider": "guide", "mode": "root"}, 422, "ask:invalid"),
        ("POST", "/agents", {"name": "x", "provider": "guide"}, 503, "control:no-machine"),
    ],
)
def test_what_is_wrong_is_said(
    tmp_path: Path, method: str, path: str, body: object, status: int, code: str | None
) -> None:
    async def work(house: House) -> None:
        said = problem(await house.http.request(method, f"/api/v1{path}", json=body), status)
        assert code in (None, said["code"])

    inside(tmp_path, work)


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"{", 400),
        (b"", 422),
        (b"null", 422),
        (b'{"title": "\\ud800"}', 400),
        (b'{"title": "\xff"}', 400),
        (b'{"title": "a\\u0000b"}', 400),
        (b'{"t\\u0000": 1}', 400),
        (b'{"title": NaN}', 400),
        (b'{"title": "x", "body": ' + b"1" * 400 + b"}", 400),
        (b"[" * 200_000, 400),
        (b'{"title": "' + b"x" * LARGEST + b'"}', 413),
    ],
)
def test_a_body_that_is_none_is_refused(tmp_path: Path, body: bytes, status: int) -> None:
    async def work(house: House) -> None:
        problem(await house.http.post("/api/v1/issues", content=body, headers=JSON), status)

    inside(tmp_path, work)


def test_a_body_without_a_length_ends_at_the_same_bound(tmp_path: Path) -> None:
    async def work(house: House) -> None:
        async def endless() -> Any:
            while True:
                yield b" " * 100_000

        problem(await house.http.post("/api/v1/issues", content=endless(), headers=JSON), 413)

    inside(tmp_path, work)


def test_a_body_of_another_kind_is_refused(tmp_path: Path) -> None:
    """A form is what a page of another site can send without asking first."""

    async def work(house: House) -> None:
        for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"):
            answer = await house.http.post("/api/v1/issues", content=b'{"title": "x"}', headers={"Content-Type": kind})
            said = problem(answer, 415)
            assert kind.partition(";")[0] in said["detail"]
            assert "application/json" in said["remedy"]

    inside(tmp_path, work)


@pytest.mark.parametrize("path", ["/agents/%00", "/agents/a%0Ab", "/threads?agent=%00", "/runs?thread=a%1Bb"])
def test_characters_that_cannot_be_seen_are_refused_in_addresses(tmp_path: Path, path: str) -> None:
    async def work(house: House) -> None:
        problem(await house.http.get(f"/api/v1{path}"), 400)

    inside(tmp_path, work)


@pytest.mark.parametrize("name", ["%F0%9F%90%8D", "..", "%2e%2e%2f", "a/b", "%FF", "x" * 5000, "%25", "' OR 1=1 --"])
def test_odd_names_are_not_there(tmp_path: Path, name: str) -> None:
    async def work(house: House) -> None:
        for kind in ("agents", "threads", "runs", "wakes", "why"):
            answer = await house.http.get(f"/api/v1/{kind}/{name}")
            if answer.status_code != 200:
                assert answer.status_code in (404, 409, 422), answer.text
                problem(answer, answer.status_code)

    inside(tmp_path, work)


def test_what_was_sent_is_not_repeated(tmp_path: Path) -> None:
    async def work(house: House) -> None:
        body = {"name": "x", "provider": "guide", "environment": {"KEY": ["my-secret"]}, "odd": "my-secret"}
        answer = await house.http.post("/api/v1/agents", json=body)
        said = problem(answer, 422)
        assert [each["field"] for each in said["errors"]]
        assert "my-secret" not in answer.text
        # Each is named once in the words for people, by the name that a person gave.
        assert said["detail"].count("odd: ") == 1
        assert all(each["words"] in said["detail"] for each in said["errors"])
        said = problem(await house.http.get("/api/v1/runs?limit=0"), 422)
        assert said["detail"] == 'limit: This must be 1 or more (got "0").'

    inside(tmp_path, work)


_MODES = "mode: This must be one of: 'read', 'ask', 'edit' or 'full' (got \"all\")."
_OBJECT = "environment: This must be a JSON object."
"""Without the value, which may be secret."""


@pytest.mark.parametrize(
    ("method", "path", "body", "words"),
    [
        ("POST", "/agents", {}, "name: This is missing. provider: This is missing."),
        ("POST", "/agents", {"name": 7, "provider": "guide"}, "name: This must be a text (got 7)."),
        ("POST", "/agents", {"name": "x", "provider": "guide", "mode": "all"}, _MODES),
        (
            "POST",
            "/agents",
            {"name": "x", "provider": "guide", "most": "two"},
            'most: This must be a whole number (got "two").',
        ),
        ("POST", "/agents", {"name": "x", "provider": "guide", "options": []}, "options: This must be a JSON object."),
        ("PATCH", "/agents/x", {"paused": "maybe"}, 'paused: This must be true or false (got "maybe").'),
        ("GET", "/runs?limit=many", None, 'limit: This must be a whole number (got "many").'),
        ("POST", "/agents", {"name": "x", "provider": "guide", "environment": "KEY=my-secret"}, _OBJECT),
    ],
)
def test_a_wrong_type_is_named_in_the_words_of_json(
    tmp_path: Path, method: str, path: str, body: object, words: str
) -> None:
    async def work(house: House) -> None:
        said = problem(await house.http.request(method, f"/api/v1{path}", json=body), 422)
        assert said["detail"].startswith(words), said

    inside(tmp_path, work)


def test_a_bug_is_told_without_what_is_inside(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def work(house: House) -> None:
        def broken(_connection: object) -> None:
            raise RuntimeError("something secret")

        @house.api.get("/api/broken")
        async def call() -> None:
            await house.services.read(broken)

        answer = await house.http.get("/api/broken")
        said = problem(answer, 500)
        assert said["code"] == "server:bug"
        assert "secret" not in answer.text
        mark = said["detail"].split("under ")[1].rstrip(".")
        logged = [each for each in caplog.records if mark in each.getMessage()]
        assert len(logged) == 1
        assert logged[0].exc_info

    inside(tmp_path, work)


def test_a_database_that_another_program_holds_is_no_bug(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite, "PATIENCE", 0.01)

    async def work() -> None:
        path = tmp_path / "clew.db"
        upgrade_database(str(path))
        with closing(open_current(str(path))) as database:
            services = Services(database, tmp_path)
            async with serving(services) as at:
                with closing(sqlite3.connect(path, isolation_level=None)) as other:
                    other.execute("BEGIN EXCLUSIVE")
                    said = problem(await at.http.post("/api/v1/issues", json={"title": "x"}), 503)
                    assert said["code"] == "store:busy"
                    assert f"Another program holds {path}" in said["detail"]
                    assert "try again" in said["remedy"]
                assert (await at.http.post("/api/v1/issues", json={"title": "x"})).status_code == 201

    asyncio.run(work())
