"""What the pages point at exists, every decision is listed, and no file tells where it was written."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

PAGES = [
    *(page for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md") if (page := ROOT / name).exists()),
    *sorted((ROOT / "docs").rglob("*.md")),
]

FENCE = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]]*\]\(<?([^)>\s]+)>?(?:\s+\"[^\"]*\")?\)")
# A name with <…> in it stands for many files.
NAMED = re.compile(r"`((?:src|docs|tests|examples|bench|tools)/[^`\s<]*)`")

# Put together from halves, so that this file does not match itself.
MACHINE_PATH = re.compile(r"(?<![\w.~-])/(?:" + "work" + "|" + "root" + "|" + "home/[a-z][a-z0-9_-]*" + r")/")
REGISTRY = re.compile(
    "|".join(
        re.escape(host + "." + end)
        for host, end in (
            ("pypi", "org"),
            ("registry.npmjs", "org"),
            ("files.pythonhosted", "org"),
            ("debian", "org"),
        )
    )
)


def exists(base: Path, name: str) -> bool:
    """A name may be a glob, and may carry a test id or a line after a colon."""
    plain = name.partition(":")[0].rstrip("/")
    return any(base.glob(plain)) if "*" in plain else (base / plain).exists()


def broken(page: Path, root: Path) -> list[str]:
    text = page.read_text(encoding="utf-8")
    prose = FENCE.sub("", text)
    links = [
        link.partition("#")[0] for link in LINK.findall(prose) if "://" not in link and not link.startswith("mailto:")
    ]
    missing = [link for link in links if link and not exists(page.parent, link)]
    return missing + [name for name in NAMED.findall(prose) if not exists(root, name)]


@pytest.mark.parametrize("page", [pytest.param(page, id=str(page.relative_to(ROOT))) for page in PAGES])
def test_everything_a_page_points_at_exists(page: Path) -> None:
    assert broken(page, ROOT) == []


def test_a_dead_pointer_is_found(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "there.md").touch()
    page = tmp_path / "docs" / "page.md"
    page.write_text(
        "[ok](there.md#part) [far](https://example.invalid/x) [dead](gone.md) [up](../gone.md)\n"
        "`docs/there.md` `docs/*.md` `docs/there.md::part` `docs/gone.md` `docs/gone*.md`\n"
        "```\n[fenced](gone.md) `src/gone.py`\n```\n",
        encoding="utf-8",
    )
    assert broken(page, tmp_path) == ["gone.md", "../gone.md", "docs/gone.md", "docs/gone*.md"]


def test_every_decision_is_listed() -> None:
    decisions = ROOT / "docs" / "decisions"
    index = (decisions / "README.md").read_text(encoding="utf-8")
    listed = set(LINK.findall(index))
    assert {file.name for file in decisions.glob("*.md")} - {"README.md"} <= listed


def tracked() -> list[Path]:
    """What is committed, and what would be: everything that is not ignored."""
    listing = subprocess.run(
        ["git", "-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if listing.returncode != 0:
        pytest.skip("not a git checkout, so nothing is tracked")
    return [file for name in listing.stdout.split("\0") if name and (file := ROOT / name).is_file()]


def traces(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if MACHINE_PATH.search(line) or REGISTRY.search(line)]


def test_no_tracked_file_names_a_machine_or_a_registry() -> None:
    found = []
    for file in tracked():
        try:
            text = file.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        found += [f"{file.relative_to(ROOT)}: {line}" for line in traces(text)]
    assert found == []


@pytest.mark.parametrize(
    "line", ["/" + "work/x", "at '/" + "root/x'", "/" + "home/me/x", "https://pypi." + "org/x", "deb.debian." + "org"]
)
def test_a_trace_is_found(line: str) -> None:
    assert traces(line) == [line]


@pytest.mark.parametrize("line", ["a/work/b", "docs/root/x", "/srv/work", "the agent's home"])
def test_a_harmless_line_is_left_alone(line: str) -> None:
    assert traces(line) == []
