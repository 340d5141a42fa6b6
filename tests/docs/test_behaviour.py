"""docs/behaviour.md and the tests say the same about every behaviour case."""

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
PAGE = TESTS.parent / "docs" / "behaviour.md"
LEVELS = ("kernel", "store", "providers", "workspaces", "context", "daemon", "control", "server", "cli", "web", "story")

SECTION = re.compile(r"## (?P<letter>[A-Z])\. \S.*")
LISTED = r"[a-z]+(?:, [a-z]+)*"
STATUS = rf"done: (?P<done>{LISTED})(?:; planned: (?P<rest>{LISTED}))?|planned: (?P<all>{LISTED})"
CASE = re.compile(rf"- \*\*(?P<id>[A-Z]\d\d)\*\* \((?:{STATUS})\) \S.*")


@dataclass(frozen=True)
class Case:
    id: str
    done: tuple[str, ...] = ()
    planned: tuple[str, ...] = ()


@dataclass(frozen=True)
class Carried:
    """A case id on a test of a level."""

    id: str
    level: str
    where: str


def read_cases(page: str) -> tuple[list[Case], list[str]]:
    """The cases below the first section heading, and what is wrong with the page."""
    cases: list[Case] = []
    wrong: list[str] = []
    section, number = "", 0
    for at, line in enumerate(page.splitlines(), 1):
        if line.startswith("## "):
            heading = SECTION.fullmatch(line)
            section, number = heading["letter"] if heading else "?", 0
            if heading is None:
                wrong.append(f"line {at} is not a section: {line}")
        elif line and section:
            found = CASE.fullmatch(line)
            if found is None:
                wrong.append(f"line {at} is not a case: {line[:60]}")
                continue
            due = f"{section}{number + 1:02}"
            if found["id"] != due:
                wrong.append(f"line {at}: {found['id']} stands where {due} belongs")
            if any(case.id == found["id"] for case in cases):
                wrong.append(f"line {at}: {found['id']} is there twice")
            number = int(found["id"][1:])
            done, planned = (
                tuple(re.findall("[a-z]+", part or "")) for part in (found["done"], found["rest"] or found["all"])
            )
            named = done + planned
            wrong += [f"{found['id']}: {level} is no level" for level in named if level not in LEVELS]
            wrong += [f"{found['id']}: {level} is named twice" for level in LEVELS if named.count(level) > 1]
            cases.append(Case(found["id"], done, planned))
    return cases, wrong


def read_marks(source: str, level: str, file: str) -> tuple[list[Carried], list[str]]:
    """The case ids that the tests of a file carry, and the case marks that nobody could rely on."""
    tree = ast.parse(source)
    calls = {id(mark.func): mark for mark in _marks_pytest_reads(tree) if isinstance(mark, ast.Call)}
    carried: list[Carried] = []
    wrong: list[str] = []
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Attribute) and re.search(r"\bmark\.case$", ast.unparse(node))):
            continue
        where = f"{file}:{node.lineno}"
        call = calls.get(id(node))
        if call is None:
            wrong.append(f"{where}: a case mark that no test carries")
        elif not call.args or call.keywords:
            wrong.append(f"{where}: a case mark takes ids and nothing else")
        for argument in call.args if call else ():
            if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                carried.append(Carried(argument.value, level, where))
            else:
                wrong.append(f"{where}: {ast.unparse(argument)} is not a literal id")
    return carried, wrong


def _marks_pytest_reads(tree: ast.Module) -> Iterator[ast.expr]:
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() if _is_test(node):
                yield from node.decorator_list
            case ast.ClassDef(name=name) if name.startswith("Test") or any(map(_is_test, node.body)):
                yield from node.decorator_list
            case ast.Assign(targets=[ast.Name(id="pytestmark")], value=value):
                yield from _each(value)
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(func=mark)) if name.startswith("Test"):
                yield mark  # TestLanes = pytest.mark.case("W07")(Lanes.TestCase), the way to mark a state machine
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.Call(func=mark)) if name.startswith("Test"):
                yield mark
            case ast.Call(func=ast.Attribute(attr="param"), keywords=keywords):
                for keyword in keywords:
                    if keyword.arg == "marks":
                        yield from _each(keyword.value)
            case _:
                pass


def _is_test(node: ast.stmt) -> bool:
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test")


def _each(value: ast.expr) -> list[ast.expr]:
    return value.elts if isinstance(value, ast.List | ast.Tuple) else [value]


def done_without_test(cases: Sequence[Case], carried: Sequence[Carried]) -> list[str]:
    proven = {(mark.id, mark.level) for mark in carried}
    return [
        f"{case.id} is done: {level}, but no test below tests/{level}/ carries it"
        for case in cases
        for level in case.done
        if (case.id, level) not in proven
    ]


def carried_but_not_done(cases: Sequence[Case], carried: Sequence[Carried]) -> list[str]:
    done = {case.id: case.done for case in cases}
    wrong: list[str] = []
    for mark in carried:
        if mark.id not in done:
            wrong.append(f"{mark.where}: {mark.id} is not a case")
        elif mark.level not in LEVELS:
            wrong.append(f"{mark.where}: {mark.id} is carried below tests/{mark.level}/, which is no level")
        elif mark.level not in done[mark.id]:
            wrong.append(f"{mark.where}: {mark.id} is not marked done: {mark.level}")
    return wrong


def untested(cases: Sequence[Case], carried: Sequence[Carried]) -> list[str]:
    proven = {mark.id for mark in carried}
    return [case.id for case in cases if case.id not in proven]


@pytest.fixture(scope="module")
def page() -> tuple[list[Case], list[str]]:
    return read_cases(PAGE.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def suite() -> tuple[list[Carried], list[str]]:
    carried: list[Carried] = []
    wrong: list[str] = []
    for file in sorted(TESTS.rglob("*.py")):
        below = file.relative_to(TESTS)
        found, faults = read_marks(file.read_text(encoding="utf-8"), below.parts[0], f"tests/{below.as_posix()}")
        carried += found
        wrong += faults
    return carried, wrong


def lines(wrong: Sequence[str]) -> str:
    return "\n".join(["", *wrong])


def test_the_page_is_well_formed(page: tuple[list[Case], list[str]]) -> None:
    cases, wrong = page
    assert not wrong, lines(wrong)
    assert cases


def test_every_case_mark_is_literal_and_on_a_test(suite: tuple[list[Carried], list[str]]) -> None:
    _, wrong = suite
    assert not wrong, lines(wrong)


def test_every_done_case_has_its_test(
    page: tuple[list[Case], list[str]], suite: tuple[list[Carried], list[str]]
) -> None:
    missing = untested(page[0], suite[0])
    print(f"\n{len(missing)} of {len(page[0])} cases have no test at any level: {' '.join(missing)}")
    wrong = done_without_test(page[0], suite[0])
    assert not wrong, lines(wrong)


def test_every_carried_case_is_marked_done(
    page: tuple[list[Case], list[str]], suite: tuple[list[Carried], list[str]]
) -> None:
    wrong = carried_but_not_done(page[0], suite[0])
    assert not wrong, lines(wrong)


def test_the_status_of_a_case_is_read_by_level() -> None:
    cases, wrong = read_cases(
        "# Cases\n\n- any text\n\n## C. Continuity\n\n- **C01** (done: kernel; planned: store, web) One.\n"
        "- **C02** (planned: cli) Two (or so).\n- **C03** (done: store) Three.\n\n"
        "## D. Places\n\n- **D01** (done: web) Four.\n"
    )
    assert cases == [
        Case("C01", ("kernel",), ("store", "web")),
        Case("C02", (), ("cli",)),
        Case("C03", ("store",)),
        Case("D01", ("web",)),
    ]
    assert wrong == []


@pytest.mark.parametrize(
    ("planted", "named"),
    [
        ("## C. Continued\n- **C01** (done: kernel) Again.", "C01 is there twice"),
        ("- **C03** (done: kernel) A gap.", "C03 stands where C02 belongs"),
        ("- **D02** (done: kernel) Of another section.", "D02 stands where C02 belongs"),
        ("- **C02** (done: attic) Text.", "C02: attic is no level"),
        ("- **C02** (done: cli; planned: cli) Text.", "C02: cli is named twice"),
        ("- **C2** (done: kernel) Text.", "line 3 is not a case"),
        ("- **C02** () Text.", "line 3 is not a case"),
        ("- **C02** (planned: store; done: kernel) Text.", "line 3 is not a case"),
        ("- **C02** (done: kernel)", "line 3 is not a case"),
        ("## Continued", "line 3 is not a section"),
    ],
)
def test_a_fault_of_the_page_is_named(planted: str, named: str) -> None:
    _, wrong = read_cases(f"## C. Continuity\n- **C01** (done: kernel) Text.\n{planted}\n")
    assert len(wrong) == 1
    assert named in wrong[0]


@pytest.mark.parametrize(
    ("source", "ids"),
    [
        ("@pytest.mark.case('C01', 'C02')\ndef test_it(): ...", ["C01", "C02"]),
        ("@mark.case('C01')\n@mark.case('C02')\nasync def test_it(): ...", ["C01", "C02"]),
        (
            "@pytest.mark.case('C01')\nclass TestIt:\n  @pytest.mark.case('C02')\n  def test_it(self): ...",
            ["C01", "C02"],
        ),
        ("@pytest.mark.case('C01')\nclass Contract:\n  def test_it(self): ...", ["C01"]),
        ("pytestmark = pytest.mark.case('C01')", ["C01"]),
        ("pytestmark = [pytest.mark.slow, pytest.mark.case('C01')]", ["C01"]),
        ("ROWS = [pytest.param(1, marks=pytest.mark.case('C01'))]", ["C01"]),
        ("ROWS = [pytest.param(1, marks=[pytest.mark.case('C01'), pytest.mark.slow])]", ["C01"]),
        ("TestIt = pytest.mark.case('C01')(Machine.TestCase)", ["C01"]),
        ("@pytest.mark.slow\ndef test_it(): ...", []),
    ],
)
def test_a_mark_is_found_wherever_pytest_reads_it(source: str, ids: list[str]) -> None:
    carried, wrong = read_marks(source, "kernel", "tests/kernel/test_it.py")
    assert sorted(mark.id for mark in carried) == ids
    assert {mark.level for mark in carried} <= {"kernel"}
    assert wrong == []


@pytest.mark.parametrize(
    ("source", "named"),
    [
        ("@pytest.mark.case(ID)\ndef test_it(): ...", "ID is not a literal id"),
        ("@pytest.mark.case(*IDS)\ndef test_it(): ...", "*IDS is not a literal id"),
        ("@pytest.mark.case(f'C{n}')\ndef test_it(): ...", "is not a literal id"),
        ("@pytest.mark.case()\ndef test_it(): ...", "takes ids and nothing else"),
        ("@pytest.mark.case('C01', why='x')\ndef test_it(): ...", "takes ids and nothing else"),
        ("@pytest.mark.case\ndef test_it(): ...", "no test carries"),
        ("@pytest.mark.case('C01')\ndef make_lane(): ...", "no test carries"),
        ("case = pytest.mark.case", "no test carries"),
    ],
)
def test_a_mark_nobody_could_rely_on_is_named(source: str, named: str) -> None:
    _, wrong = read_marks(source, "kernel", "tests/kernel/test_it.py")
    assert len(wrong) == 1
    assert wrong[0].startswith("tests/kernel/test_it.py:")
    assert named in wrong[0]


def test_a_done_case_without_a_test_at_that_level_is_named() -> None:
    cases = [Case("C01", ("kernel", "store")), Case("C02", (), ("store",))]
    carried = [Carried("C01", "kernel", "here")]
    assert done_without_test(cases, carried) == ["C01 is done: store, but no test below tests/store/ carries it"]
    assert untested(cases, carried) == ["C02"]
    assert untested(cases, []) == ["C01", "C02"]


def test_a_test_of_an_unknown_case_or_at_an_unmarked_level_is_named() -> None:
    cases = [Case("C01", ("kernel",), ("store",))]
    levels = [Carried("C01", level, "here") for level in ("kernel", "store", "web", "house")]
    assert carried_but_not_done(cases, [*levels, Carried("C99", "kernel", "there")]) == [
        "here: C01 is not marked done: store",
        "here: C01 is not marked done: web",
        "here: C01 is carried below tests/house/, which is no level",
        "there: C99 is not a case",
    ]
