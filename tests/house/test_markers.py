"""No file is committed with the markers of a merge that nobody finished."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# ======= alone underlines a heading, so it does not count by itself.
MARKER = re.compile(rb"^(<{7}|>{7}|\|{7})( .*)?$", re.MULTILINE)


def marked(root: Path) -> list[str]:
    """Tracked files that have a marker, with the line."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=root, capture_output=True, check=True, timeout=60).stdout
    found = []
    for name in listed.decode().split("\0"):
        file = root / name
        if name and file.is_file():
            text = file.read_bytes()
            lines = [text.count(b"\n", 0, each.start()) + 1 for each in MARKER.finditer(text)]
            found += [f"{name}:{line}" for line in lines]
    return found


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="the source is no git repository, so nothing is tracked")
def test_no_tracked_file_has_a_marker_of_a_merge() -> None:
    assert not marked(ROOT)


@pytest.mark.parametrize("marker", ["<" * 7 + " HEAD", ">" * 7 + " main", "|" * 7 + " base", "<" * 7])
def test_a_marker_is_found(tmp_path: Path, marker: str) -> None:
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True, timeout=60)
    (tmp_path / "fine.md").write_text("A heading\n=======\n a <<<<<<< in a line\n")
    (tmp_path / "notes.md").write_text(f"one\n{marker}\ntwo\n")
    subprocess.run(["git", "add", "."], cwd=tmp_path, check=True, timeout=60)
    assert marked(tmp_path) == ["notes.md:2"]
