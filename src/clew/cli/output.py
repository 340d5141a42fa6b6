"""Output of commands: results, tables and JSON on stdout; errors, notes and progress on stderr."""

import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from enum import IntEnum

from clew.cli.safe_text import one_line, safe, width
from clew.ports.fault import Fault


class ExitStatus(IntEnum):
    DONE = 0
    FAILED = 1
    MISUSED = 2
    BUG = 70
    STOPPED = 130


def tell(line: str) -> None:
    sys.stdout.write(f"{safe(line)}\n")


def tell_json(answer: object) -> None:
    """The API's answer as it came, as bytes; anything else as JSON, with dataclasses as objects."""
    text = answer.decode() if isinstance(answer, bytes) else json.dumps(answer, ensure_ascii=False, default=asdict)
    sys.stdout.write(f"{text}\n")


def tell_answer(answer: object, show: Callable[[], object], *, as_json: bool) -> None:
    """The result of a command, in its one form: as JSON, or as the text that `show` prints."""
    tell_json(answer) if as_json else show()


def warn(line: str) -> None:
    sys.stderr.write(f"clew: {safe(line)}\n")


def note(line: str) -> None:
    """A note between results: on stderr, dim on a terminal."""
    sys.stdout.flush()
    plain = not sys.stderr.isatty() or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    line = safe(line)
    sys.stderr.write(f"{line}\n" if plain else f"\x1b[2m{line}\x1b[0m\n")
    sys.stderr.flush()


def counted(count: int, what: str) -> str:
    """A number with its noun: 1 row, 2,000 rows."""
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"


@contextmanager
def progress(title: str) -> Iterator[Callable[[int, int, str], None]]:
    """A progress bar on a terminal. Call the yielded function with (done, total, unit)."""
    if not sys.stderr.isatty():
        yield lambda _done, _total, _unit: None
        return
    # Rich takes longer to load than most commands take to run.
    from rich.console import Console  # noqa: PLC0415
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn  # noqa: PLC0415

    columns = TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn()
    with Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        bar = shown.add_task(title, total=None)

        def watch(done: int, total: int, unit: str) -> None:
            shown.update(bar, description=f"{title}: {done:,} of {total:,} {unit}", completed=done, total=total)

        yield watch


_CELL = 60
_FOLDS = 24
"""A column wider than this may be folded."""
_ID = re.compile(r"(?:ap|rn|ss|wk)_[0-9a-f]{16,}")
_PREFIX = 18


def table(rows: Sequence[Mapping[str, str]], nothing: str) -> None:
    """Rows of texts by their headings: drawn on a terminal, aligned plain text elsewhere. Without rows, prints
    `nothing`."""
    lines = [[one_line(cell) for cell in row.values()] for row in rows]
    if not lines:
        tell(nothing)
    elif sys.stdout.isatty():
        _drawn(list(rows[0]), lines)
    else:
        _aligned([[heading.upper() for heading in rows[0]], *lines])


def facts(pairs: Iterable[tuple[str, str]]) -> None:
    """Name and value pairs, one per line. Empty values are left out."""
    kept = [(name, safe(text)) for name, text in pairs if text]
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
        # Too narrow to fold readably: print long lines instead.
        _aligned([[heading.upper() for heading in headings], *map(list, zip(*columns, strict=True))])
        return
    drawn = Table(box=SIMPLE_HEAD, header_style="bold", show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    for heading, most in zip(headings, wide, strict=True):
        drawn.add_column(heading, overflow="fold", no_wrap=most <= _FOLDS, max_width=_CELL)
    for line in zip(*columns, strict=True):
        drawn.add_row(*(Text(cell, _STYLES.get(cell, "")) for cell in line))
    console.print(drawn)


def _shortened(column: list[str]) -> list[str]:
    """Shortens ids to a prefix, if the prefixes are unique. Commands accept prefixes."""
    short = [cell[:_PREFIX] if _ID.fullmatch(cell) else cell for cell in column]
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


def tell_problem(code: str, words: str, remedy: str = "", *, as_json: bool = False) -> None:
    """An error: one line for people, or an object with the field names of the API."""
    if not as_json:
        warn(f"{words} {remedy}".strip() + f" [{code}]")
        return
    problem = {"type": f"urn:clew:problem:{code}", "code": code, "detail": words, "remedy": remedy}
    # ASCII escapes: a lone surrogate that was typed must not break the output.
    sys.stderr.write(f"{json.dumps(problem)}\n")


def tell_fault(fault: Fault, *, as_json: bool = False) -> None:
    tell_problem(fault.code, fault.words, fault.remedy, as_json=as_json)
