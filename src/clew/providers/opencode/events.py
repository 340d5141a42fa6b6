"""The server's events during a turn, turned into events of the port. Does no I/O."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from clew.ports.events import Event, PlanChanged, Retrying, Text, Thought, ToolFinished, ToolStarted, Used
from clew.programs.secrets import Redaction, Redactor
from clew.providers.opencode.approvals import Approvals
from clew.providers.opencode.messages import Json

_ENDED = ("completed", "error")
GOES_ON = ("tool-calls", "unknown")
"""A message that finishes for one of these reasons does not end the turn."""


@dataclass(frozen=True, slots=True)
class Retry:
    """The model failed, and OpenCode retries at `next` (seconds since 1970)."""

    words: str
    next: float
    attempt: int = 1

    def reset(self, now: float) -> float | None:
        """When a usage limit ends, if the model said so. OpenCode's own pause is 2 s, doubled with every attempt."""
        own = 2.0**self.attempt
        return self.next if self.next - now > 2 * own else None


class TurnFollower:
    """Follows one turn of a session. Of its subagents, only what they ask and use counts."""

    def __init__(self, id_: str, redactor: Redactor, approvals: Approvals, known: set[str]) -> None:
        """`known` holds the messages of earlier turns, whose late events are ignored. This turn adds its own."""
        self._id, self._redactor, self._approvals, self._known = id_, redactor, approvals, known
        self._family = {id_}
        self._said: dict[str, dict[str, str]] = {}
        self._completed: dict[str, bool] = {}
        self._thinking: set[str] = set()
        self._streams: dict[str, Redaction] = {}
        self._tools: dict[str, bool] = {}
        self._used = Used()
        self._prompts: dict[str, bool] = {}
        self._answers: list[str] = []
        self.owed = 0
        """How many prompts were added during the turn (steering)."""
        self.forgiven = False
        """Set when the turn is interrupted: it answers none of them."""
        self.begun = False
        self.idle = False
        self.error: Json | None = None
        self.retry: Retry | None = None
        self.progress = 0
        """Grows with every event that brings the turn nearer to its end."""

    @property
    def is_over(self) -> bool:
        """Idle alone is not enough: the last events of an interrupted message come after it."""
        return self.idle and all(self._completed.values()) and not self.owes

    @property
    def owes(self) -> bool:
        """Whether a prompt that was added during the turn has no answer yet."""
        if self.forgiven or self.owed < 1:
            return False
        return len(self._prompts) <= self.owed or not list(self._prompts.values())[-1]

    @property
    def asks(self) -> bool:
        """Whether the turn waits for a person's answer."""
        return bool(self._approvals)

    @property
    def reply(self) -> str:
        """The last text; if a prompt was added after an answer, all answers in order."""
        joined = {id_: "\n".join(filter(None, parts.values())) for id_, parts in self._said.items()}
        texts = {id_: text for id_, text in joined.items() if text}
        answers = [texts[id_] for id_ in self._answers if id_ in texts]
        if self.owed and len(answers) > 1:
            return "\n\n".join(answers)
        return list(texts.values())[-1] if texts else ""

    def unfinished(self) -> Iterator[Event]:
        """Ends for the tools that have started and not ended."""
        for id_ in [id_ for id_, ended in self._tools.items() if not ended]:
            self._tools[id_] = True
            yield ToolFinished(id_, ok=False, output="It was cut off with the turn.")

    def follow(self, event: Json) -> Iterator[Event]:
        properties = event.get("properties")
        if not isinstance(properties, dict):
            return
        kind, session = event.get("type"), properties.get("sessionID")
        if kind == "session.created":
            self._add_subagent(properties.get("info"))
        elif session == self._id:
            yield from self._own(str(kind), properties)
        elif session in self._family:
            yield from self._of_subagent(str(kind), properties)

    # ---------------------------------------------------------------- by kind

    def _add_subagent(self, info: Any) -> None:
        if isinstance(info, dict) and info.get("parentID") in self._family:
            self._family.add(str(info["id"]))

    def _own(self, kind: str, properties: Json) -> Iterator[Event]:
        match kind:
            case "session.status":
                yield from self._status(properties)
            case "session.idle":
                self.idle = self.begun
            case "session.error":
                self.error = self.error or properties.get("error")
            case "message.updated":
                self._message(properties.get("info") or {})
            case "message.part.updated":
                yield from self._part(properties.get("part") or {})
            case "message.part.delta":
                yield from self._delta(properties)
            case "todo.updated":
                steps = (
                    (str(each.get("content", "")), str(each.get("status", "")))
                    for each in properties.get("todos") or ()
                )
                shown = self._redactor.text
                yield PlanChanged(tuple((shown(step), state) for step, state in steps), raw=self._raw(properties))
            case _:
                yield from self._asked(kind, properties)

    def _of_subagent(self, kind: str, properties: Json) -> Iterator[Event]:
        part = properties.get("part") or {}
        if kind == "message.part.updated":
            self._advance()
            if part.get("type") == "step-finish":
                yield self._count(part)
        else:
            yield from self._asked(kind, properties)

    def _asked(self, kind: str, properties: Json) -> Iterator[Event]:
        match kind:
            case "permission.asked":
                self._advance()
                yield self._approvals.permission(properties)
            case "question.asked":
                self._advance()
                yield from self._approvals.questions(properties)
            case "permission.replied" | "question.replied" | "question.rejected":
                self._advance()
                # A denial makes OpenCode withdraw all requests of its session.
                self._approvals.withdraw(properties.get("requestID"))
            case _:
                pass

    def _status(self, properties: Json) -> Iterator[Event]:
        status = properties.get("status") or {}
        match status.get("type"):
            case "busy":
                self.idle = False
            case "retry":
                next_, attempt = float(status.get("next", 0)) / 1000, _number(status.get("attempt"))
                self.retry = Retry(str(status.get("message", "")), next_, attempt)
                yield Retrying(self._redactor.text(self.retry.words) or "The model failed.", raw=self._raw(properties))
            case "idle":
                self.idle = self.begun
            case _:
                pass

    def _message(self, info: Json) -> None:
        id_ = str(info.get("id", ""))
        if info.get("role") == "user":
            if id_ not in self._known:
                self._prompts[id_] = False
            self.begun = self.begun or id_ not in self._known
            self._known.add(id_)
        elif id_ in self._said or id_ not in self._known:
            self._known.add(id_)
            self._said.setdefault(id_, {})
            self._completed[id_] = "completed" in (info.get("time") or {}) or bool(info.get("error"))
            self._answered(id_, info)
            self.error = self.error or info.get("error")

    def _answered(self, id_: str, info: Json) -> None:
        """An answer counts for the prompt before it, and for all earlier ones."""
        if info.get("parentID") in self._prompts:
            self._prompts[str(info["parentID"])] = True
        if info.get("finish") not in (None, *GOES_ON) and id_ not in self._answers:
            self._answers.append(id_)

    # ---------------------------------------------------------------- parts of a message

    def _part(self, part: Json) -> Iterator[Event]:
        message = str(part.get("messageID", ""))
        if message not in self._said:
            return  # The prompt itself.
        match part.get("type"):
            case "text":
                yield from self._text(part, self._said[message])
            case "reasoning":
                self._thinking.add(str(part["id"]))
                if _over(part):
                    self._advance()
                    yield Thought(self._redactor.text(str(part.get("text", ""))), raw=self._raw(part))
            case "tool":
                yield from self._tool(part)
            case "step-finish":
                self._advance()
                yield self._count(part)
            case _:
                pass

    def _text(self, part: Json, said: dict[str, str]) -> Iterator[Event]:
        id_, text = str(part["id"]), self._redactor.text(str(part.get("text", "")))
        if _over(part) and text and said.get(id_) != text:
            said[id_] = text
            yield Text(text, final=True, raw=self._raw(part))

    def _delta(self, properties: Json) -> Iterator[Event]:
        part = str(properties.get("partID", ""))
        if self.retry is None:
            # While OpenCode retries, the beginning of an answer is no progress: it may be cut off each time.
            self.progress += 1
        if properties.get("field") != "text" or properties.get("messageID") not in self._said or part in self._thinking:
            return
        stream = self._streams.setdefault(part, self._redactor.stream())
        if shown := stream.feed(str(properties.get("delta", ""))):
            yield Text(shown, final=False)

    def _tool(self, part: Json) -> Iterator[Event]:
        id_, state = str(part.get("callID") or part["id"]), part.get("state") or {}
        status, given = state.get("status"), state.get("input") or {}
        self._advance()
        if status == "pending":
            return  # Its arguments are not complete yet.
        if id_ not in self._tools:
            self._tools[id_] = False
            command, file = given.get("command"), given.get("filePath") or given.get("path")
            yield ToolStarted(
                id_, str(part.get("tool", "")), self._shown(command), self._shown(file), raw=self._raw(part)
            )
        if status in _ENDED and not self._tools[id_]:
            self._tools[id_] = True
            output = state.get("output") if status == "completed" else state.get("error")
            yield ToolFinished(id_, went_well(state), self._redactor.text(str(output or "")), raw=self._raw(part))

    def _count(self, part: Json) -> Used:
        tokens, so_far = part.get("tokens") or {}, self._used
        self._used = Used(
            so_far.input + _number(tokens.get("input")),
            so_far.output + _number(tokens.get("output")) + _number(tokens.get("reasoning")),
            so_far.cached + _number((tokens.get("cache") or {}).get("read")),
            (so_far.cost or 0.0) + float(part.get("cost") or 0.0),
            raw=self._raw(part),
        )
        return self._used

    def _advance(self) -> None:
        self.progress += 1
        self.retry = None

    def _shown(self, value: Any) -> str | None:
        return self._redactor.text(value) if isinstance(value, str) else None

    def _raw(self, value: Json) -> dict[str, Any]:
        hidden: dict[str, Any] = self._redactor.value(dict(value))
        return hidden


def went_well(state: Json) -> bool:
    """A failed command counts as completed, with an exit status; an interrupted one has no status."""
    details = state.get("metadata") or {}
    return state.get("status") == "completed" and details.get("exit", 0) == 0


def _over(part: Json) -> bool:
    return "end" in (part.get("time") or {})


def _number(value: Any) -> int:
    return int(value) if isinstance(value, int | float) else 0
