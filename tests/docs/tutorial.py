"""docs/provider-tutorial.md as steps: files to write, and commands to run with what they print."""

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "provider-tutorial.md").read_text(encoding="utf-8")

BLOCK = re.compile(
    r"(?:^`(?P<file>[\w.]+)`(?:, continued)?:\n\n)?^```(?P<kind>toml|python|console)\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True)
class Step:
    """A piece of a file; or, without a file, commands."""

    file: str | None
    text: str

    @property
    def commands(self) -> list[tuple[str, str]]:
        """Each with what it prints; `…` stands for anything."""
        pieces = re.split(r"^\$ ", self.text, flags=re.MULTILINE)[1:]
        return [(command, printed) for command, _, printed in (each.partition("\n") for each in pieces)]


STEPS = [Step(found["file"], found["text"]) for found in BLOCK.finditer(PAGE)]


def files() -> dict[str, str]:
    """Each file as a reader has it in the end. Between two pieces there are two empty lines."""
    written: dict[str, str] = {}
    for step in STEPS:
        if step.file is not None:
            before = f"{written[step.file]}\n\n" if step.file in written else ""
            written[step.file] = before + step.text
    return written
