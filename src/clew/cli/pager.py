"""Long output: through a pager on a terminal, plain elsewhere."""

import io
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from clew.cli.safe_text import safe


@contextmanager
def paged() -> Iterator[None]:
    """Collects what is printed within, and pages it on a terminal. A chat, which has the screen to itself, is not
    paged."""
    screen, real = sys.stdout, sys.__stdout__
    if real is None or screen is not real or not real.isatty():
        yield
        return
    collected = _Collected()
    sys.stdout = collected
    try:
        yield
    finally:
        sys.stdout = screen
        _page(collected.getvalue().removesuffix("\n").split("\n"))


class _Collected(io.StringIO):
    """Text that will be shown on a terminal: times and colours are chosen for one."""

    def isatty(self) -> bool:
        return True


_COLOURS = (("+++", "1"), ("---", "1"), ("diff ", "1"), ("@@", "36"), ("+", "32"), ("-", "31"))
"""The first that a line of a diff begins with, and its colour."""


def show_diff_text(text: str) -> None:
    lines = [safe(line) for line in text.splitlines()]
    if sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb":
        lines = [_coloured(line) for line in lines]
    _page(lines)


def _coloured(line: str) -> str:
    colour = next((colour for start, colour in _COLOURS if line.startswith(start)), None)
    return line if colour is None else f"\x1b[{colour}m{line}\x1b[0m"


def _page(lines: Sequence[str]) -> None:
    """Through $PAGER, or less, where the lines do not fit on the screen."""
    command = shlex.split(os.environ.get("PAGER", "")) or ["less", "-FRX"]
    fits = len(lines) < shutil.get_terminal_size().lines
    if not sys.stdout.isatty() or fits or shutil.which(command[0]) is None:
        for line in lines:
            sys.stdout.write(f"{line}\n")
        return
    sys.stdout.flush()
    pager = subprocess.Popen(command, stdin=subprocess.PIPE, text=True, errors="replace")
    try:
        pager.communicate("\n".join(lines) + "\n")
    except BrokenPipeError:
        pager.wait()
