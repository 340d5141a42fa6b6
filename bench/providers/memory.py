"""What processes hold in memory."""

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path


def resident(processes: Iterable[int]) -> int:
    """Bytes, with what several of them share counted once."""
    return sum(map(_proportional, processes))


def _proportional(process: int) -> int:
    with suppress(OSError):
        for line in Path(f"/proc/{process}/smaps_rollup").read_text(encoding="ascii").splitlines():
            name, _, rest = line.partition(":")
            if name == "Pss":
                return int(rest.split()[0]) * 1024
    return 0
