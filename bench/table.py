"""Tables as they are printed and as docs/performance.md keeps them: the same text."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bench.timing import Spread

PAGE = Path(__file__).resolve().parents[1] / "docs" / "performance.md"


@dataclass(slots=True)
class Table:
    """What one part measured. `missed` names the rows that do not reach what is wanted, with what they reached."""

    part: str
    head: tuple[str, ...]
    rows: list[tuple[str, ...]] = field(default_factory=list)
    missed: list[str] = field(default_factory=list)
    note: str = ""

    def add(self, *cells: str) -> None:
        self.rows.append(cells)

    def judge(self, name: str, met: bool, wanted: str, reached: str = "") -> str:
        """The cell that says what is wanted; a row that misses it stands out."""
        if met:
            return wanted
        self.missed.append(f"{name}: wanted {wanted}" + (f", reached {reached}" if reached else ""))
        return f"**{wanted}: missed**"

    def text(self) -> str:
        lines = [self.head, *self.rows]
        widths = [max(len(line[at]) for line in lines) for at in range(len(self.head))]
        rule = "|" + "|".join("-" * (width + 2) for width in widths) + "|"
        shown = [_line(line, widths) for line in lines]
        return "\n".join([shown[0], rule, *shown[1:], *(("", self.note) if self.note else ())])


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    return "| " + " | ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)) + " |"


def ratio(value: Spread) -> tuple[str, str]:
    """The cells of a ratio: its median, and how far its rounds lie apart."""
    return f"{value.median:.2f}", f"{value.low:.2f} to {value.high:.2f}"


def keep(texts: Iterable[tuple[str, str]], page: Path = PAGE) -> None:
    """Replace the text between the marks of each part in the page."""
    kept = page.read_text(encoding="utf-8")
    for part, text in texts:
        marked = re.compile(f"(<!-- {part} -->\n).*?(<!-- end -->)", re.DOTALL)
        kept, found = marked.subn(lambda marks, text=text: f"{marks[1]}{text}\n{marks[2]}", kept)  # type: ignore[misc]
        if found != 1:
            raise SystemExit(f"{page.name} has no place for {part}: it needs <!-- {part} --> and <!-- end -->.")
    page.write_text(kept, encoding="utf-8")
