"""docs/kernel.md names the whole public API of the kernel, nothing that is gone, and its examples run."""

import re
import shlex
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from pathlib import Path

import mypy.api
import pytest

from clew import kernel
from clew.kernel import Reason, RuleReason
from clew.kernel.rule_reason import RuleName
from examples.run_all import WAKES, quick_start

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "kernel.md").read_text(encoding="utf-8")
QUICK_START, _, REFERENCE = PAGE.partition("\n## What it is\n")

BLOCK = re.compile(r"^```python\n(?P<code>.*?)^```\n+(?:^```text\n(?P<printed>.*?)^```\n)?", re.MULTILINE | re.DOTALL)
FENCE = re.compile(r"^```.*?^```\n", re.MULTILINE | re.DOTALL)
TABLE = re.compile(r"(?:^\|.*\|\n)+", re.MULTILINE)
TICKED = re.compile(r"`([^`\n]+)`")


@dataclass(frozen=True)
class Table:
    """A table, the text it follows, and its rows as cells."""

    under: str
    head: list[str]
    rows: list[list[str]]

    @property
    def first_column(self) -> list[str]:
        """What stands in backticks there; a row may name several."""
        return [name for row in self.rows for name in TICKED.findall(row[0])]


def tables(page: str) -> Iterator[Table]:
    prose = FENCE.sub("", page)
    for found in TABLE.finditer(prose):
        head, _, *rows = [[cell.strip() for cell in line[1:-1].split("|")] for line in found[0].splitlines()]
        heading = prose[: found.start()].rpartition("\n#")[2].partition("\n")[0].strip("# ")
        yield Table(heading, head, rows)


TABLES = list(tables(PAGE))


def reason_classes(base: type[Reason] = Reason) -> Iterator[type[Reason]]:
    for each in base.__subclasses__():
        yield each
        yield from reason_classes(each)


def members(kind: object) -> list[str]:
    """An enum's values or a dataclass's fields."""
    if isinstance(kind, type) and issubclass(kind, Enum):
        return [str(member.value) for member in kind]
    assert isinstance(kind, type)
    assert is_dataclass(kind), f"{kind} has nothing to list"
    return [field.name for field in fields(kind)]


def test_every_public_name_has_one_row_and_every_row_a_public_name() -> None:
    named = Counter(name for table in TABLES if table.head[0] == "name" for name in table.first_column)
    assert named == Counter(kernel.__all__)


def test_no_type_is_named_that_is_gone() -> None:
    named = {name for name in TICKED.findall(FENCE.sub("", PAGE)) if re.fullmatch(r"(?:[A-Z][a-z]+)+", name)}
    assert named - set(kernel.__all__) - {each.__name__ for each in reason_classes()} == {"ValueError"}


MEMBERS = [table for table in TABLES if TICKED.fullmatch(table.head[0])]


@pytest.mark.parametrize("table", MEMBERS, ids=[table.head[0].strip("`") for table in MEMBERS])
def test_a_table_headed_by_a_type_lists_all_its_members(table: Table) -> None:
    assert sorted(table.first_column) == sorted(members(getattr(kernel, table.head[0].strip("`"))))


def test_every_reason_is_listed_with_its_code_and_sentence() -> None:
    listed = {
        table.under.strip("`"): [tuple(row) for row in table.rows]
        for table in TABLES
        if table.head == ["code", "sentence"]
    }
    assert listed == {
        each.__name__: [(f"`{reason.code}`", reason.sentence) for reason in each]
        for each in reason_classes()
        if each is not RuleReason
    }


def test_the_rules_stand_in_their_order() -> None:
    (table,) = (table for table in TABLES if table.head == ["rule", "code", "effect", "sentence"])
    assert table.rows == [
        [reason.rule, f"`{reason.code}`", reason.effect.name.lower(), reason.sentence]
        for rule in RuleName
        for reason in RuleReason
        if reason.rule is rule
    ]


def test_the_quick_start_is_the_example_whole_and_in_60_lines() -> None:
    (code,) = (found["code"] for found in BLOCK.finditer(QUICK_START))
    assert code == (ROOT / "examples" / "kernel_quick_start.py").read_text(encoding="utf-8")
    assert len(code.splitlines()) <= 60


def test_the_quick_start_prints_what_the_page_says() -> None:
    """In processes of their own: the second resumes, and nothing is resumed or sent in a wrong directory."""
    (console,) = re.findall(r"^```console\n\$ mkdir maze attic\n(.*?)^```", QUICK_START, re.MULTILINE | re.DOTALL)
    _, *shown = re.split(r"^\$ python kernel_quick_start.py ", console, flags=re.MULTILINE)
    assert [tuple(shlex.split(each.partition("\n")[0])) for each in shown] == list(WAKES)
    assert [each.partition("\n")[2] for each in shown] == quick_start()


def test_the_examples_type_check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "page.py"
    script.write_text("\n".join(found["code"] for found in BLOCK.finditer(REFERENCE)), encoding="utf-8")
    monkeypatch.setenv("MYPYPATH", str(ROOT / "src"))
    said, fault, status = mypy.api.run(["--strict", "--config-file=", f"--cache-dir={tmp_path}", str(script)])
    assert status == 0, said + fault


def test_the_examples_print_what_the_page_says() -> None:
    blocks = list(BLOCK.finditer(REFERENCE))
    assert len(blocks) == len(re.findall("^```python$", REFERENCE, re.MULTILINE))
    assert len([found for found in blocks if found["printed"]]) == len(re.findall("^```text$", REFERENCE, re.MULTILINE))
    mark = "-- end of block --"
    script = "".join(f"{found['code']}print({mark!r})\n" for found in blocks)
    done = subprocess.run(
        [sys.executable, "-"],
        input=script,
        env={"PYTHONPATH": str(ROOT / "src"), "PYTHONUTF8": "1"},
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split(f"{mark}\n")[:-1] == [found["printed"] or "" for found in blocks]
