"""The page about the API: every call that it lists is there, where it says."""

import re
from pathlib import Path

from starlette.routing import Route

from tests.server.kit import House, inside

PAGE = Path(__file__).parents[2] / "docs" / "api.md"


def listed() -> set[str]:
    """The whole paths of the table, without what stands for a name. `/close` stands for its neighbour's last part."""
    found = set()
    table = PAGE.read_text(encoding="utf-8").partition("| call |")[2].partition("## ")[0]
    for row in re.findall(r"^\| (`.*?`) \|", table, re.MULTILINE):
        before = ""
        for call in re.findall(r"`([^`]+)`", row):
            methods, _, path = call.rpartition(" /") if " /" in call else ("", "", call.removeprefix("/"))
            before = path if methods else before.rpartition("/")[0] + "/" + path
            found.add("/api/v1/" + plain(before))
    return found


def plain(path: str) -> str:
    return re.sub(r"\{[^}]*\}", "{}", path)


def test_every_call_that_is_listed_is_there(tmp_path: Path) -> None:
    async def work(house: House) -> None:
        there = {plain(route.path) for route in house.api.routes if isinstance(route, Route)}
        assert len(listed()) > 20
        assert listed() <= there, listed() - there
        assert "/health" in there

    inside(tmp_path, work)
