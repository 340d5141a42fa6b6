"""The page about the API lists every call there is, and no other."""

import re
from pathlib import Path

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


def test_the_page_lists_every_call_and_no_other(tmp_path: Path) -> None:
    async def work(house: House) -> None:
        there = {plain(path) for path in house.api.openapi()["paths"]}
        assert listed() | {"/health"} == there

    inside(tmp_path, work)
