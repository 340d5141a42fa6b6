"""Every table that a benchmark writes with --write has its place in docs/performance.md."""

import re

import pytest

from bench.providers.__main__ import PART as AGENTS
from bench.store import history, jobs, statements, trip
from bench.table import PAGE, Table, keep
from bench.web import following, live, opening, search

PARTS = (
    statements.PART,
    trip.PART,
    history.PART,
    jobs.PART,
    jobs.BESIDE,
    AGENTS,
    "running",
    "waiting",
    "added",
    opening.PART,
    opening.OUTPUT,
    following.PART,
    following.LINES,
    live.PART,
    search.PART,
)


def test_every_table_has_one_place(tmp_path_factory: pytest.TempPathFactory) -> None:
    page = tmp_path_factory.mktemp("docs") / PAGE.name
    page.write_text(PAGE.read_text(encoding="utf-8"), encoding="utf-8")
    keep([(part, f"the table of {part}") for part in PARTS], page)
    written = re.findall(r"<!-- (\w+) -->\n(.*?)\n<!-- end -->", page.read_text(encoding="utf-8"), re.DOTALL)
    assert sorted(written) == sorted((part, f"the table of {part}") for part in PARTS)


def test_a_row_that_misses_says_what_it_reached() -> None:
    table = Table("part", ("what", "wanted"))
    table.add("speed", table.judge("speed", False, "at least 1.0", "0.31"))
    assert table.missed == ["speed: wanted at least 1.0, reached 0.31"]
    assert "**at least 1.0: missed**" in table.text()
