"""docs/provider-tutorial.md ends with examples/parrot. tests/up/test_provider_tutorial.py follows it."""

import re

from tests.docs.tutorial import PAGE, ROOT, STEPS, files


def test_who_follows_the_page_has_the_example() -> None:
    example = ROOT / "examples" / "parrot"
    assert files() == {file.name: file.read_text(encoding="utf-8") for file in example.iterdir() if file.is_file()}


def test_every_block_of_the_page_is_a_step() -> None:
    assert len(STEPS) == len(re.findall(r"^```\w+$", PAGE, re.MULTILINE))
    assert all(step.commands for step in STEPS if step.file is None)
