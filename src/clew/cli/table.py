"""Tables and facts: with rules and colours on a terminal, aligned plain text everywhere else."""

import re
import sys
from collections.abc import Iterable, Sequence

from clew.cli.harmless import harmless, one_line, width
from clew.cli.telling import tell

_CELL = 60
_FOLDS = 24
"""A column that needs more than this may be folded; a narrower one is never."""
_ID = re.compile(r"(?:ap|rn|ss|wk)_[0-9a-f]{16,}")
_BEGINNING = 18


def table(headings: Sequence[str], rows: Iterable[Sequence[str]], nothing: str) -> None:
    """`nothing` is said when there are no rows."""
    lines = [[one_line(cell) for cell in row] for row in rows]
    if not lines:
        tell(nothing)
    elif sys.stdout.isatty():
        _drawn(headings, lines)
    else:
        _aligned([[heading.upper() for heading in headings], *lines])


def facts(pairs: Iterable[tuple[str, str]]) -> None:
    """What is empty is left out."""
    kept = [(name, harmless(text)) for name, text in pairs if text]
    margin = max((len(name) for name, _ in kept), default=0) + 2
    for name, text in kept:
        first, *more = text.splitlines() or [""]
        tell(f"{name:<{margin}}{first}")
        for line in more:
            tell(" " * margin + line)


def _aligned(lines: list[list[str]]) -> None:
    wide = [max(width(line[at]) for line in lines) for at in range(len(lines[0]))]
    for line in lines:
        padded = (cell + " " * (most - width(cell)) for cell, most in zip(line, wide, strict=True))
        tell("  ".join(padded).rstrip())


def _drawn(headings: Sequence[str], lines: list[list[str]]) -> None:
    # Rich takes longer to load than most commands take to run.
    from rich.box import SIMPLE_HEAD  # noqa: PLC0415
    from rich.console import Console  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    columns = [_shortened(list(column)) for column in zip(*lines, strict=True)]
    wide = [max(map(width, (heading, *column))) for heading, column in zip(headings, columns, strict=True)]
    console = Console(file=sys.stdout)
    if sum(min(most, _FOLDS) + 2 for most in wide) > console.width:
        # Cells of two letters help nobody; a long line is at least whole.
        _aligned([[heading.upper() for heading in headings], *map(list, zip(*columns, strict=True))])
        return
    drawn = Table(box=SIMPLE_HEAD, header_style="bold", show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    for heading, most in zip(headings, wide, strict=True):
        drawn.add_column(heading, overflow="fold", no_wrap=most <= _FOLDS, max_width=_CELL)
    for line in zip(*columns, strict=True):
        drawn.add_row(*(Text(cell, _STYLES.get(cell, "")) for cell in line))
    console.print(drawn)


def _shortened(column: list[str]) -> list[str]:
    """Ids by a beginning, which commands take as well, where no two of them begin so."""
    short = [cell[:_BEGINNING] if _ID.fullmatch(cell) else cell for cell in column]
    return short if len(set(short)) == len(set(column)) else column


_STYLES = {
    "running": "cyan",
    "succeeded": "green",
    "served": "green",
    "ok": "green",
    "online": "green",
    "waiting": "yellow",
    "held": "yellow",
    "pending": "yellow",
    "paused": "yellow",
    "warning": "yellow",
    "missing": "yellow",
    "failed": "red",
    "lost": "red",
    "cancelled": "dim",
    "closed": "dim",
    "idle": "dim",
    "offline": "dim",
}
