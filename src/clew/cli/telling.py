"""What a command says: results to stdout, warnings and progress to stderr."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from clew.cli.harmless import harmless


def tell(line: str) -> None:
    sys.stdout.write(f"{harmless(line)}\n")


def tell_as_is(answer: bytes | str) -> None:
    """What a program is to read."""
    sys.stdout.write(f"{answer.decode() if isinstance(answer, bytes) else answer}\n")


def warn(line: str) -> None:
    sys.stderr.write(f"clew: {harmless(line)}\n")


def aside(line: str) -> None:
    """Something beside the matter, in its order between the results; dim where somebody watches."""
    sys.stdout.flush()
    plain = not sys.stderr.isatty() or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    line = harmless(line)
    sys.stderr.write(f"{line}\n" if plain else f"\x1b[2m{line}\x1b[0m\n")
    sys.stderr.flush()


def counted(count: int, what: str) -> str:
    """A number with its noun: 1 row, 2,000 rows."""
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"


@contextmanager
def progress(title: str) -> Iterator[Callable[[int, int, str], None]]:
    """A bar while somebody watches. What it yields is called with how much is done, of how much, and of what."""
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
