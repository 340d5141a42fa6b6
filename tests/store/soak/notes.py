"""What a process wrote down before it was killed: a line is there whole, or does not count."""

import os
from pathlib import Path


class Notes:
    """A file that is only appended to. `safe` lines are on the disk before the writer goes on."""

    def __init__(self, path: Path, safe: bool = False) -> None:
        self._handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._safe = safe

    def write(self, *words: str) -> None:
        os.write(self._handle, (" ".join(words) + "\n").encode())
        if self._safe:
            os.fsync(self._handle)


def read_notes(directory: Path, kind: str) -> list[list[str]]:
    found = []
    for path in sorted(directory.glob(f"{kind}-*")):
        whole = path.read_text(encoding="utf-8").split("\n")[:-1]
        found += [line.split(" ") for line in whole]
    return found
