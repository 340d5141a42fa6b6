"""Tables that fit a terminal: columns are left out and cells are cut with `…`; a line is never broken."""

from collections.abc import Sequence
from dataclasses import dataclass

from clew.cli.safe_text import end_of, one_line, width

GAP = 2
_READABLE = 24
"""A cell is cut to this at the least; where that is still too wide, a column is left out."""


@dataclass(slots=True)
class Column:
    heading: str
    cells: list[str]
    width: int = 0

    def __post_init__(self) -> None:
        self.width = max(map(width, (self.heading, *self.cells)))

    @property
    def empty(self) -> bool:
        return not any(self.cells)

    def cut(self) -> list[str]:
        """A path is cut at its beginning: its end tells which it is."""
        return [(end_of if cell.startswith("/") else one_line)(cell, self.width) for cell in self.cells]


def fitted(columns: Sequence[Column], room: int, first_to_go: Sequence[str] = ()) -> list[Column]:
    """The columns that fit into `room`, with the width of each. The first column names the row: it is never left out,
    and cut only where it does not fit alone. Empty columns go first, then those in `first_to_go`, then the last."""
    kept = list(columns)
    while len(kept) > 1 and _total([_least(column, at) for at, column in enumerate(kept)]) > room:
        kept.remove(_expendable(kept, first_to_go))
    while (over := _total([column.width for column in kept]) - room) > 0:
        widest = max(kept[1:] or kept, key=lambda column: column.width)
        second = max((column.width for column in kept[1:] if column is not widest), default=0)
        # Down to the second widest at once; then both are cut by turns.
        widest.width -= min(over, max(1, widest.width - max(second, _READABLE)))
    return kept


def _least(column: Column, at: int) -> int:
    return column.width if at == 0 else min(column.width, _READABLE)


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + GAP * (len(widths) - 1)


def _expendable(kept: Sequence[Column], first_to_go: Sequence[str]) -> Column:
    for column in kept[1:]:
        if column.empty:
            return column
    by_heading = {column.heading: column for column in kept[1:]}
    return next((by_heading[name] for name in first_to_go if name in by_heading), kept[-1])
