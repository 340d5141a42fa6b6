"""The text in the lines of a run's log that is searched: what the agent said, its commands and their output."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from clew.kernel import Instant
from clew.store.operations.rows import read_object

HALF = 8_000
"""Of a longer text, so many characters at its beginning and at its end are searched: errors come last."""

_TEXT, _THOUGHT, _DONE = "text", "thought", "done"

_FIELDS: Mapping[str, tuple[str, ...]] = {
    "tool-started": ("name", "command", "file"),
    "tool-finished": ("output",),
    "approval": ("words", "command", "file"),
    "question": ("words",),
    "failed": ("words",),
    "retrying": ("words",),
}
"""Which fields of a line are searched. Messages to the agent, and its reply at the end, are in the journal."""


@dataclass(frozen=True, slots=True)
class LogLine:
    seq: int
    kind: str
    body: str
    at: Instant


@dataclass(frozen=True, slots=True)
class Piece:
    """A text of the log: one line, or several in which an agent's message arrived in parts."""

    first: int
    last: int
    text: str
    at: Instant


@dataclass(frozen=True, slots=True)
class Read:
    """What was read of a log: its pieces, and the last line that needs no second look."""

    pieces: tuple[Piece, ...]
    through: int


@dataclass(slots=True)
class _Message:
    """A message or a thought of which more parts may follow."""

    kind: str
    first: int
    last: int
    parts: list[str]
    at: Instant
    whole: bool

    @property
    def piece(self) -> Piece:
        return Piece(self.first, self.last, bounded("".join(self.parts)), self.at)

    def is_within(self, text: str) -> bool:
        """Whether that text has all of this message."""
        return self.kind == _TEXT and "".join(self.parts).strip() in text


def read_lines(lines: Sequence[LogLine], ended: bool) -> Read:
    """The pieces of these lines. Unless the log has ended, a message at its end waits for what follows it.

    A message is left out that the next one repeats as a whole, or that is the run's reply: the journal has that one.
    """
    pieces: list[Piece] = []
    message: _Message | None = None
    for line in lines:
        said = read_object(line.body) or {_TEXT: line.body}
        if line.kind in (_TEXT, _THOUGHT):
            text, whole = _word(said, _TEXT), line.kind == _TEXT and said.get("final") is not False
            if message is not None and message.kind == line.kind and not message.whole and not whole:
                message.last = line.seq
                message.parts.append(text)
                continue
            if message is not None and not (whole and message.is_within(text)):
                pieces.append(message.piece)
            message = _Message(line.kind, line.seq, line.seq, [text], line.at, whole)
        elif line.kind == _DONE:
            if message is not None and not message.is_within(_word(said, "reply")):
                pieces.append(message.piece)
            message = None
        elif text := _text_of(line.kind, said):
            if message is not None:
                pieces.append(message.piece)
            message = None
            pieces.append(Piece(line.seq, line.seq, bounded(text), line.at))
    if message is not None and ended:
        pieces.append(message.piece)
        message = None
    through = lines[-1].seq if lines and message is None else 0 if message is None else message.first - 1
    return Read(tuple(piece for piece in pieces if piece.text.strip()), through)


def bounded(text: str) -> str:
    return text if len(text) <= 2 * HALF else f"{text[:HALF]}\n…\n{text[-HALF:]}"


def _text_of(kind: str, said: Mapping[str, Any]) -> str:
    if kind == "plan":
        steps = said.get("steps")
        lists = [step for step in steps if isinstance(step, list) and step] if isinstance(steps, list) else []
        return "\n".join(str(step[0]) for step in lists)
    return "\n".join(filter(None, (_word(said, name) for name in _FIELDS.get(kind, ()))))


def _word(said: Mapping[str, Any], name: str) -> str:
    value = said.get(name)
    return value if isinstance(value, str) else ""
