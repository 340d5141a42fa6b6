"""Search through the API: a page of results, its parameters, and problems."""

from pathlib import Path

import pytest

from tests.server.kit import House, inside

pytestmark = pytest.mark.case("U08")


def test_the_api_finds_words(tmp_path: Path) -> None:
    async def story(at: House) -> None:
        made = (await at.http.post("/api/v1/issues", json={"title": "The <b>login</b> page", "body": "a & b"})).json()
        answer = await at.http.get("/api/v1/search", params={"q": "login page", "kind": "title", "limit": 5})
        assert answer.status_code == 200
        (found,) = answer.json()["found"]
        assert (found["thread"], found["kind"]) == (made["thread"]["ref"], "title")
        assert found["snippet"] == "The <b>login</b> page", "text, not HTML"
        assert found["matches"] == [{"start": 7, "end": 12}, {"start": 17, "end": 21}]
        assert (answer.json()["older"], answer.json()["unindexed"]) == (None, 0)
        assert (await at.http.get("/api/v1/search", params={"q": "login", "before": found["id"]})).json()["found"] == []

    inside(tmp_path, story)


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ({}, "ask:invalid"),
        ({"q": ""}, "ask:bad-request"),
        ({"q": "x", "kind": "page"}, "ask:bad-request"),
        ({"q": "x" * 1001}, "ask:invalid"),
        ({"q": "x", "limit": "0"}, "ask:invalid"),
        ({"q": "x", "sort": "rank"}, "ask:bad-request"),
    ],
)
def test_a_wrong_search_is_a_problem(tmp_path: Path, query: dict[str, str], code: str) -> None:
    async def story(at: House) -> None:
        answer = await at.http.get("/api/v1/search", params=query)
        assert (answer.status_code, answer.json()["code"]) == (422, code), answer.json()

    inside(tmp_path, story)


def test_a_stranger_finds_nothing(tmp_path: Path) -> None:
    async def story(at: House) -> None:
        assert (await at.stranger.get("/api/v1/search", params={"q": "login"})).status_code == 401

    inside(tmp_path, story)
