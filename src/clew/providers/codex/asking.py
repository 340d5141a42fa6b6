"""What Codex asks before it acts, and how a person's answer is put. Each is answered once."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from clew.kernel import Answer, ApprovalId
from clew.ports.events import ApprovalAsked, Event, QuestionAsked

Json = Mapping[str, Any]


class Kind(StrEnum):
    COMMAND = "item/commandExecution/requestApproval"
    FILES = "item/fileChange/requestApproval"
    PERMISSIONS = "item/permissions/requestApproval"
    SERVER = "mcpServer/elicitation/request"
    QUESTION = "item/tool/requestUserInput"


_TOOLS: Mapping[Kind, str] = {
    Kind.COMMAND: "commandExecution",
    Kind.FILES: "fileChange",
    Kind.PERMISSIONS: "permissions",
    Kind.SERVER: "mcpToolCall",
    Kind.QUESTION: "requestUserInput",
}
_WORDS: Mapping[Kind, str] = {
    Kind.COMMAND: "May this command run?",
    Kind.FILES: "May these files be changed?",
    Kind.PERMISSIONS: "May the turn have more permissions?",
    Kind.SERVER: "May the tool server go on?",
    Kind.QUESTION: "The agent has a question.",
}


@dataclass
class _Asked:
    """One request. `parts` are its questions, each with what was answered to it."""

    number: int | str
    kind: Kind
    arguments: Json
    parts: dict[ApprovalId, str] = field(default_factory=dict)
    answers: dict[str, list[str]] = field(default_factory=dict)


class Questions:
    """The open questions of one session; `prefix` keeps their ids apart from every other opening's."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._open: dict[ApprovalId, _Asked] = {}
        self._count = 0

    def __len__(self) -> int:
        return len(self._open)

    def ask(self, number: int | str, method: str, arguments: Json, file: str, raw: Json) -> list[Event] | None:
        """The events that tell it; None where it is nothing that a person could answer."""
        try:
            kind = Kind(method)
        except ValueError:
            return None
        asked = _Asked(number, kind, arguments)
        if kind is Kind.QUESTION:
            return list(self._parts(asked, raw)) or None
        id_ = self._enter(asked, "")
        words = arguments.get("reason") or arguments.get("message") or _WORDS[kind]
        command = arguments.get("command")
        return [ApprovalAsked(id_, _TOOLS[kind], str(words), command, file or None, raw=raw)]

    def answer(self, id_: ApprovalId, given: Answer, words: str) -> tuple[int | str, Json | None] | None:
        """Which request to answer, and how; no how while other questions of it are open. None when it is not open."""
        asked = self._open.pop(id_, None)
        if asked is None:
            return None
        if asked.kind is not Kind.QUESTION:
            return asked.number, _decision(asked, given)
        asked.answers[asked.parts[id_]] = [words] if given is Answer.APPROVE else []
        if any(other is asked for other in self._open.values()):
            return asked.number, None
        return asked.number, {"answers": {name: {"answers": said} for name, said in asked.answers.items()}}

    def resolved(self, number: Any) -> None:
        """The program asks no more, whoever answered."""
        self._open = {id_: asked for id_, asked in self._open.items() if asked.number != number}

    def drop(self) -> None:
        self._open.clear()

    def _parts(self, asked: _Asked, raw: Json) -> Iterator[Event]:
        for question in asked.arguments.get("questions") or ():
            id_ = self._enter(asked, str(question.get("id")))
            choices = tuple(str(option.get("label")) for option in question.get("options") or ())
            yield QuestionAsked(id_, str(question.get("question", _WORDS[asked.kind])), choices, raw=raw)

    def _enter(self, asked: _Asked, part: str) -> ApprovalId:
        self._count += 1
        id_ = ApprovalId(f"{self._prefix}/{self._count}")
        asked.parts[id_] = part
        self._open[id_] = asked
        return id_


def _decision(asked: _Asked, given: Answer) -> Json:
    """A yes is for this once: one that stands would widen the mode for later turns."""
    yes = given is Answer.APPROVE
    match asked.kind:
        case Kind.COMMAND | Kind.FILES:
            return {"decision": "accept" if yes else "decline"}
        case Kind.PERMISSIONS:
            return {"permissions": asked.arguments.get("permissions") or {} if yes else {}, "scope": "turn"}
        case Kind.SERVER:
            return {"action": "accept", "content": {}} if yes else {"action": "decline", "content": None}
        case Kind.QUESTION:
            raise AssertionError("a question is answered in words")
