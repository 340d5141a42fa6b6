"""What models were handed, conversation by conversation: the only thing that the checker believes.

Of an agent with a model this is the loopback model's log of requests. The guide has no model: what it was told is what
its own store holds.
"""

import json
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from tests.providers.loopback.heard import Request, Role, Turn
from tests.providers.loopback.server import Model

# By which header each agent says in which of its sessions a request is made.
_SESSION = ("x-claude-code-session-id", "x-session-id", "session-id", "thread-id")


@dataclass(frozen=True, slots=True)
class Asked:
    """One request: the session, and all that was said in it so far. `at` is when it came; 0 where nobody knows."""

    session: str
    turns: tuple[Turn, ...]
    at: float = 0.0

    def times(self, token: str) -> int:
        """How often a person's word stands in what the model was told."""
        return sum(turn.text.count(token) for turn in self.turns if turn.role is Role.USER)

    @property
    def prompts(self) -> int:
        return sum(turn.role is Role.USER for turn in self.turns)


class Log(Protocol):
    """`mark` is how far it goes now; `since` is what came after a mark, in order. Requests beside the work, as for a
    title, are no part of it."""

    def mark(self) -> int: ...

    def since(self, mark: int) -> list[Asked]: ...

    def wait(self, token: str, mark: int, seconds: float) -> float | None:
        """When the model was first handed that word after the mark, as soon as it is; None when it is not in time."""
        ...


class OfModel:
    def __init__(self, model: Model) -> None:
        self._model = model

    def mark(self) -> int:
        return len(self._model.requests)

    def since(self, mark: int) -> list[Asked]:
        return [_asked(request) for request in self._model.requests[mark:] if not request.side]

    def wait(self, token: str, mark: int, seconds: float) -> float | None:
        request = self._model.until(lambda each: _asked(each).times(token) > 0, seconds, mark)
        return None if request is None else request.at


class OfGuide:
    """A session's file holds every prompt from when it was taken, so it is read as one request that came last."""

    def __init__(self, home: Path) -> None:
        self._sessions = home / "sessions"

    def mark(self) -> int:
        return 0

    def since(self, mark: int) -> list[Asked]:  # noqa: ARG002 - a file has no order among others
        return list(self._read())

    def wait(self, token: str, mark: int, seconds: float) -> float | None:  # noqa: ARG002 - nobody is asked
        return None

    def _read(self) -> Iterable[Asked]:
        for path in sorted(self._sessions.glob("*.json")):
            with suppress(FileNotFoundError):
                stored = json.loads(path.read_text(encoding="utf-8"))
                yield Asked(stored["id"], tuple(_turns(stored["turns"])))


def _turns(stored: Sequence[dict[str, str]]) -> Iterable[Turn]:
    for each in stored:
        yield Turn(Role.USER, "\n".join(filter(None, (each["told"], each["prompt"]))))
        if each["reply"]:
            yield Turn(Role.ASSISTANT, each["reply"])


def _asked(request: Request) -> Asked:
    session = next((request.headers[name] for name in _SESSION if name in request.headers), "")
    return Asked(session, request.turns, request.at)
