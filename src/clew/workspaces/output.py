"""What a setup writes, kept in a file that does not grow for ever: its beginning and its end."""

from collections import deque
from pathlib import Path
from types import TracebackType
from typing import Self

HEAD = 1024 * 1024
TAIL = 64 * 1024
_LAST_LINES = 8
_LAST_WORDS = 1000


class Output:
    def __init__(self, path: Path) -> None:
        self.path = path
        self._room = HEAD
        self._tail: deque[bytes] = deque()
        self._tail_size = 0
        self._left_out = 0
        self._last: deque[str] = deque(maxlen=_LAST_LINES)

    def __enter__(self) -> Self:
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._file = self.path.open("wb")
        return self

    def __exit__(self, kind: type[BaseException] | None, fault: BaseException | None, at: TracebackType | None) -> None:
        with self._file:
            if self._left_out:
                self._file.write(f"[{self._left_out} bytes are left out]\n".encode())
            for line in self._tail:
                self._file.write(line)

    @property
    def last_words(self) -> str:
        return "\n".join(self._last)[-_LAST_WORDS:]

    def take(self, text: str) -> None:
        if text.strip():
            self._last.append(text)
        line = text.encode(errors="replace") + b"\n"
        if len(line) <= self._room:
            self._room -= len(line)
            self._file.write(line)
            self._file.flush()
            return
        self._room = 0
        self._tail.append(line[-TAIL:])
        self._left_out += len(line) - len(self._tail[-1])
        self._tail_size += len(self._tail[-1])
        while self._tail_size > TAIL:
            gone = len(self._tail.popleft())
            self._tail_size -= gone
            self._left_out += gone
