"""The walk in docs/design.md names functions that are in the files it names."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "design.md").read_text(encoding="utf-8")
STEP = re.compile(r"^\d+\. `(?P<file>src/clew/[\w/]+\.py)`,(?: from)? (?P<names>`.*?):", re.MULTILINE | re.DOTALL)


def test_every_step_of_the_walk_starts_at_a_function_of_its_file() -> None:
    steps = [(step["file"], re.findall(r"`([\w.]+)`", step["names"])) for step in STEP.finditer(PAGE)]
    assert len(steps) == len(re.findall(r"^\d+\. ", PAGE, re.MULTILINE))
    missing = [
        (file, name)
        for file, names in steps
        for each in names
        for name in each.split(".")
        if not re.search(
            rf"^\s*(?:async )?(?:def|class) {name}\b", (ROOT / file).read_text(encoding="utf-8"), re.MULTILINE
        )
    ]
    assert steps
    assert missing == []
