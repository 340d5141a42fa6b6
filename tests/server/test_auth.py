"""Every path there is, and every one that is not: without the token, for another host or from another site, refused."""

import itertools
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import httpx2
import pytest
from starlette.routing import Route

from clew.server.auth import HEADERS
from tests.server.kit import BEARER, BOUND, TOKEN, House, inside

Headers = Mapping[str, str]

ELSEWHERE = (
    {"Host": "evil.example"},
    {"Host": "evil.example:4747"},
    {"Host": "127.0.0.1"},
    {"Host": "127.0.0.1:4748"},
    {"Host": "127.0.0.1.evil.example:4747"},
    {"Host": "localhost.:4747"},
    {"Host": "0.0.0.0:4747"},
    {"Host": ""},
    {"Origin": "http://evil.example"},
    {"Origin": "https://127.0.0.1:4747"},
    {"Origin": "http://127.0.0.1:3000"},
    {"Origin": "http://localhost:4747"},
    {"Origin": "null"},
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"},
)


def paths(house: House) -> Iterator[tuple[str, str]]:
    """Every method of every route, as the application has them, and some that nobody serves."""
    routes = [route for route in house.api.routes if isinstance(route, Route)]
    assert len(routes) == len(house.api.routes)
    found = [(method, re.sub(r"[{}]", "", route.path)) for route in routes for method in route.methods or ()]
    assert {"/docs", "/enter", "/health", "/api/v1/openapi.json", "/api/v1/live"} <= {path for _, path in found}
    yield from ((method, path) for method, path in found if path not in ("/health", "/enter"))
    others = ("/docs", "/nothing", "/api/v1", "/api/v2/agents", "/api/v1/agents/", "//", "/health/x", "/HEALTH")
    yield from itertools.product(("GET", "POST", "OPTIONS", "TRACE", "HEAD", "DELETE"), others)


def refused(answer: httpx2.Response, status: int, code: str) -> None:
    assert answer.status_code == status, (answer.request.method, answer.request.url, answer.text)
    assert answer.headers["content-type"] == "application/problem+json"
    if answer.request.method != "HEAD":
        assert answer.json()["code"] == code
        assert TOKEN not in answer.text
    guarded(answer)


def guarded(answer: httpx2.Response) -> None:
    for name, value in HEADERS.items():
        if name != "content-security-policy":
            assert answer.headers[name] == value
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert not [name for name in answer.headers if name.startswith("access-control-")]


def test_every_path_needs_the_token(tmp_path: Path) -> None:
    async def work(house: House) -> None:
        wrong: tuple[Headers, ...] = (
            {},
            {"Authorization": "Bearer "},
            {"Authorization": f"Bearer {TOKEN[:-1]}"},
            {"Authorization": f"Bearer {TOKEN}x"},
            {"Authorization": f"Basic {TOKEN}"},
            {"Authorization": TOKEN},
            {"Cookie": f"{BOUND.cookie}={TOKEN}"},
            {"Cookie": "clew-4747=1999999999.x.y"},
        )
        seen = 0
        for method, path in paths(house):
            for headers in wrong:
                refused(await house.stranger.request(method, path, headers=headers), 401, "server:unauthorized")
                seen += 1
            # A token in the address would be in histories and logs.
            refused(await house.stranger.request(method, f"{path}?token={TOKEN}"), 401, "server:unauthorized")
        assert seen > 300

    inside(tmp_path, work)


def test_every_path_is_for_this_host_and_from_this_site_alone(tmp_path: Path) -> None:
    async def work(house: House) -> None:
        for method, path in (*paths(house), ("GET", "/health"), ("GET", "/enter")):
            for headers in ELSEWHERE:
                refused(await house.http.request(method, path, headers=headers), 403, "server:foreign")

    inside(tmp_path, work)


@pytest.mark.parametrize("host", ["127.0.0.1:4747", "localhost:4747", "[::1]:4747", "LOCALHOST:4747"])
def test_this_machine_may_call_itself_by_each_of_its_names(tmp_path: Path, host: str) -> None:
    async def work(house: House) -> None:
        for site in ({}, {"Origin": f"http://{host}"}, {"Sec-Fetch-Site": "none"}, {"Sec-Fetch-Site": "same-origin"}):
            answer = await house.http.get("/api/v1/agents", headers={"Host": host, **site})
            assert answer.status_code == 200, answer.text
            guarded(answer)

    inside(tmp_path, work)


def test_two_hosts_or_two_tokens_are_none(tmp_path: Path) -> None:
    async def work(house: House) -> None:
        twice = [("Host", "127.0.0.1:4747"), ("Host", "evil.example"), ("Authorization", f"Bearer {TOKEN}")]
        refused(await house.stranger.get("/api/v1/agents", headers=twice), 403, "server:foreign")
        both = [("Authorization", "Bearer wrong"), ("Authorization", f"Bearer {TOKEN}")]
        refused(await house.stranger.get("/api/v1/agents", headers=both), 401, "server:unauthorized")

    inside(tmp_path, work)


def test_only_health_needs_no_token(tmp_path: Path) -> None:
    async def work(house: House) -> None:
        answer = await house.stranger.get("/health")
        assert answer.status_code == 200
        assert answer.json()["ready"] is True
        guarded(answer)
        # At the root alone.
        refused(await house.stranger.get("/api/v1/health"), 401, "server:unauthorized")

    inside(tmp_path, work)


def test_a_link_becomes_a_cookie_once(tmp_path: Path) -> None:
    async def work(house: House) -> None:
        made = await house.http.post("/api/v1/tickets")
        assert made.status_code == 201, made.text
        link = made.json()["link"]
        assert TOKEN not in link
        entered = await house.stranger.get(link)
        assert (entered.status_code, entered.headers["location"]) == (303, "/")
        said = entered.headers["set-cookie"]
        assert {"HttpOnly", "SameSite=strict", "Path=/"} <= {part.strip() for part in said.split(";")}
        assert TOKEN not in said
        guarded(entered)
        cookie = {"Cookie": said.split(";")[0]}
        house.stranger.cookies.clear()
        assert (await house.stranger.get("/api/v1/agents", headers=cookie)).status_code == 200
        beside = {"Cookie": f"other=1; {BOUND.cookie}=of-another-server; {cookie['Cookie']}"}
        assert (await house.stranger.get("/api/v1/agents", headers=beside)).status_code == 200
        refused(await house.stranger.get(link), 403, "server:ticket")
        refused(await house.stranger.get("/enter"), 403, "server:ticket")
        # A page of this host sends it along whoever wrote the page: what changes something says where it is from.
        refused(await house.stranger.post("/api/v1/tickets", headers=cookie), 403, "server:foreign")
        ours = {**cookie, "Origin": BOUND.address}
        assert (await house.stranger.post("/api/v1/tickets", headers=ours)).status_code == 201

    inside(tmp_path, work)


def test_the_documentation_runs_nothing_of_others(tmp_path: Path) -> None:
    async def work(house: House) -> None:
        page = await house.http.get("/docs")
        assert page.status_code == 200
        assert "<script" not in page.text
        assert "//" not in page.text.replace("http://127.0.0.1", "").replace("sqlite:///", "").replace("://", "")
        assert "POST /api/v1/issues" in page.text
        described = (await house.http.get("/api/v1/openapi.json")).json()
        assert described["info"]["title"] == "Clew"

    inside(tmp_path, work)


def test_the_token_itself_opens(tmp_path: Path) -> None:
    async def work(house: House) -> None:
        answer = await house.stranger.get("/api/v1/agents", headers=BEARER)
        assert answer.status_code == 200, answer.text

    inside(tmp_path, work)
