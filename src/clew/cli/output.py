"""Output of commands: results, tables and JSON on stdout; errors, notes and progress on stderr."""

import json
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from enum import IntEnum
from typing import TextIO

from clew.cli.columns import GAP, Column, fitted
from clew.cli.safe_text import one_line, safe, width
from clew.ports.fault import Fault


class ExitStatus(IntEnum):
    DONE = 0
    FAILED = 1
    MISUSED = 2
    BUG = 70
    STOPPED = 130


def tell(text: str) -> None:
    """Lines of a result; on a terminal they are broken between words."""
    sys.stdout.write(f"{_wrapped(safe(text), sys.stdout)}\n")


def tell_json(answer: object) -> None:
    """The API's answer as it came, as bytes; anything else as JSON, with dataclasses as objects."""
    text = answer.decode() if isinstance(answer, bytes) else json.dumps(answer, ensure_ascii=False, default=asdict)
    sys.stdout.write(f"{text}\n")


def tell_answer(answer: object, show: Callable[[], object], *, as_json: bool) -> None:
    """The result of a command, in its one form: as JSON, or as the text that `show` prints."""
    tell_json(answer) if as_json else show()


def warn(line: str) -> None:
    sys.stderr.write(f"{_wrapped(f'clew: {safe(line)}', sys.stderr)}\n")


def note(line: str, *, loud: bool = False) -> None:
    """A note between results: on stderr, dim on a terminal unless it is `loud`."""
    sys.stdout.flush()
    line = _wrapped(safe(line), sys.stderr)
    sys.stderr.write(f"\x1b[{_DIM}m{line}\x1b[0m\n" if has_colours(sys.stderr) and not loud else f"{line}\n")
    sys.stderr.flush()


def short_ids(text: str) -> str:
    """Clew's own text, in which a terminal shows ids as their beginnings. Commands accept those."""
    if not sys.stdout.isatty():
        return text
    found = sorted(set(_ID.findall(text)))
    short = dict(zip(found, _shortened(found), strict=True))
    return _ID.sub(lambda id_: short[id_[0]], text)


_PIECE = re.compile(r"(?:`[^`\n]*`|[^\s`]|`(?![^`\n]*`))+")
_GAP = re.compile(r" {2,}")
_COMMANDS = ("$ ", "clew ", "git ")


def _wrapped(text: str, stream: TextIO) -> str:
    """On a terminal, broken between words. A command stays whole, so that it can be copied: in backticks, or on a line
    of its own."""
    if not stream.isatty():
        return text
    room = shutil.get_terminal_size().columns
    return "\n".join(part for line in text.split("\n") for part in _parts(line, room))


def _parts(line: str, room: int) -> list[str]:
    """What goes on below begins where the last column of the line does."""
    if width(line) <= room or (line.startswith(" ") and line.lstrip().startswith(_COMMANDS)):
        return [line]
    hang = max((gap.end() for gap in _GAP.finditer(line) if gap.end() <= room // 2), default=0)
    lines, end = [""], 0
    for piece in _PIECE.finditer(line):
        longer = lines[-1] + line[end : piece.start()] + piece.group()
        end = piece.end()
        if lines[-1].strip() and width(longer) > room:
            lines.append(" " * hang + piece.group())
        else:
            lines[-1] = longer
    return lines


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


_ID = re.compile(r"\b(?:ap|rn|ss|wk)_[0-9a-f]{16,}\b")
_PREFIX = 18


def table(rows: Sequence[Mapping[str, str]], nothing: str, first_to_go: Sequence[str] = ()) -> None:
    """Rows of texts by their headings. On a terminal they are cut to its width, and the columns `first_to_go` are left
    out where it is narrow; elsewhere nothing is cut. Without rows, prints `nothing`."""
    lines = [[one_line(cell) for cell in row.values()] for row in rows]
    if not lines:
        tell(nothing)
    elif sys.stdout.isatty():
        _drawn(list(rows[0]), lines, first_to_go)
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
        padded = (_padded(cell, most) for cell, most in zip(line, wide, strict=True))
        tell("  ".join(padded).rstrip())


def _drawn(headings: Sequence[str], lines: list[list[str]], first_to_go: Sequence[str]) -> None:
    columns = [
        Column(heading, _shortened(list(cells)))
        for heading, cells in zip(headings, zip(*lines, strict=True), strict=True)
    ]
    kept = fitted(columns, shutil.get_terminal_size().columns, first_to_go)
    gap = " " * GAP
    _write(gap.join(_styled(_padded(one_line(each.heading, each.width), each.width), _BOLD) for each in kept))
    _write("─" * (sum(each.width for each in kept) + GAP * (len(kept) - 1)))
    for cells in zip(*(column.cut() for column in kept), strict=True):
        padded = [_padded(cell, column.width) for cell, column in zip(cells, kept, strict=True)]
        padded[-1] = padded[-1].rstrip()
        _write(gap.join(_styled(text, _STYLES.get(text.rstrip(), "")) for text in padded))


def tell_marked(parts: Iterable[tuple[str, bool]], indent: int = 0) -> None:
    """One line in parts, of which some are marked: a terminal shows those in colour, and the line is cut to its
    width."""
    room = shutil.get_terminal_size().columns - indent if sys.stdout.isatty() else 0
    line = ""
    for text, marked in parts:
        shown = _SPACES.sub(" ", safe(text))
        if sys.stdout.isatty() and width(shown) > room:
            shown = one_line(shown, room)
        room -= width(shown)
        line += _styled(shown, _MATCH if marked else "")
        if sys.stdout.isatty() and room <= 0:
            break
    _write(" " * indent + line.rstrip())


_SPACES = re.compile(r"\s+")


def _write(line: str) -> None:
    """Cells are safe already; the line has Clew's own colours."""
    sys.stdout.write(f"{line}\n")


def _padded(cell: str, most: int) -> str:
    return cell + " " * (most - width(cell))


def _styled(text: str, style: str) -> str:
    return f"\x1b[{style}m{text}\x1b[0m" if style and has_colours(sys.stdout) else text


def has_colours(stream: TextIO) -> bool:
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def _shortened(column: list[str]) -> list[str]:
    """Shortens ids to a prefix, if the prefixes are unique. Commands accept prefixes."""
    short = [cell[:_PREFIX] if _ID.fullmatch(cell) else cell for cell in column]
    return short if len(set(short)) == len(set(column)) else column


_BOLD, _DIM, _RED, _GREEN, _YELLOW, _CYAN = "1", "2", "31", "32", "33", "36"
_MATCH = "1;33"
_STYLES = {
    "running": _CYAN,
    "succeeded": _GREEN,
    "served": _GREEN,
    "ok": _GREEN,
    "online": _GREEN,
    "waiting": _YELLOW,
    "held": _YELLOW,
    "pending": _YELLOW,
    "paused": _YELLOW,
    "warning": _YELLOW,
    "missing": _YELLOW,
    "failed": _RED,
    "damaged": _RED,
    "lost": _RED,
    "cancelled": _DIM,
    "closed": _DIM,
    "idle": _DIM,
    "offline": _DIM,
}


_SENTENCE = re.compile(r"(?<=[.!?]) (?=[A-Z`])")


def with_remedy(words: str) -> tuple[str, str]:
    """What is wrong, and the sentences from the first one with a command: what to type about it."""
    sentences = _SENTENCE.split(words)
    first = next((at for at, each in enumerate(sentences) if at and "`" in each), len(sentences))
    return " ".join(sentences[:first]), " ".join(sentences[first:])


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
