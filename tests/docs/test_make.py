"""Every `make` command a page names is a target; what runs is installed without the tools, and is what is tested."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

PAGES = [
    *(page for name in ("README.md", "CONTRIBUTING.md") if (page := ROOT / name).exists()),
    *sorted((ROOT / "docs").rglob("*.md")),
]

# Commands stand in code; "make sure" in prose is not one.
CODE = re.compile(r"^```.*?^```|`[^`\n]+`", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"(?:^|[`$&;]\s*|\s)make(?:\s+[A-Z_]+=\S+)*\s+([a-z][a-z-]*)")
TARGET = re.compile(r"^([a-z][a-z-]*):(?!=)", re.MULTILINE)


def commands(text: str) -> list[str]:
    return [target for code in CODE.findall(text) for target in COMMAND.findall(code)]


def targets() -> set[str]:
    return set(TARGET.findall((ROOT / "Makefile").read_text(encoding="utf-8")))


@pytest.mark.parametrize("page", [pytest.param(page, id=str(page.relative_to(ROOT))) for page in PAGES])
def test_every_command_is_a_target(page: Path) -> None:
    assert set(commands(page.read_text(encoding="utf-8"))) <= targets()


def test_commands_are_read_from_code_only() -> None:
    text = "make sure\n`make one` and `make PYTHON=python3.12 two`\n```\n$ make three && make four\n```\n"
    assert commands(text) == ["one", "two", "three", "four"]


def test_every_target_has_a_line_of_help() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    helped = set(re.findall(r"^([a-z][a-z-]*):.*## \S", makefile, re.MULTILINE))
    assert targets() - helped == {"supported"}


def pins(lock: str) -> set[str]:
    text = (ROOT / "requirements" / lock).read_text(encoding="utf-8")
    return set(re.findall(r"^[a-z0-9._-]+==[^ ;]+", text, re.MULTILINE))


def test_what_runs_is_pinned_as_it_is_tested() -> None:
    assert pins("run.lock") < pins("dev.lock")
    assert not {each for each in pins("run.lock") if each.startswith(("pytest", "mypy", "ruff", "hypothesis"))}


def test_only_what_runs_is_installed_to_start_it() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    needs = dict(re.findall(r"^([a-z][a-z-]*): (\$\(VENV\)/\w+) ##", makefile, re.MULTILINE))
    assert needs.pop("up") == "$(VENV)/ready"
    assert {"test", "check"} <= set(needs)
    assert set(needs.values()) == {"$(VENV)/tools"}
