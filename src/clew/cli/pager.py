"""Long output: through a pager on a terminal, plain elsewhere."""

import io
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager


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
