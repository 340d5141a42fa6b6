"""Requests of Codex to a person before it acts, and how an answer is sent. Each is answered once."""

from collections.abc import Mapping
from enum import StrEnum

from clew.kernel import Answer, ApprovalId
from clew.ports.events import ApprovalAsked, Event, QuestionAsked
from clew.programs.session import OpenRequests, Request
from clew.providers.codex.server import Json


class Kind(StrEnum):
    COMMAND = "item/commandExecution/requestApproval"
    FILES = "item/fileChange/requestApproval"
    PERMISSIONS = "item/permissions/requestApproval"
    SERVER = "mcpServer/elicitation/request"
    QUESTION = "item/tool/requestUserInput"


_SHOWN: Mapping[Kind, tuple[str, str]] = {
    Kind.COMMAND: ("commandExecution", "May this command run?"),
    Kind.FILES: ("fileChange", "May these files be changed?"),
    Kind.PERMISSIONS: ("permissions", "May the turn have more permissions?"),
    Kind.SERVER: ("mcpToolCall", "May the tool server go on?"),
}
"""The tool that asks, and the question where Codex gives none."""


class Approvals(OpenRequests[tuple[Kind, Json]]):
    """The open requests of one session. `prefix` makes their ids unique among all openings."""

    def __init__(self, prefix: str) -> None:
        super().__init__()
        self._prefix, self._count = prefix, 0

    def ask(self, number: int | str, method: str, arguments: Json, file: str, raw: Json) -> list[Event] | None:
        """The events for a request; None if it is nothing that a person could answer."""
        try:
            kind = Kind(method)
        except ValueError:
            return None
        if kind is Kind.QUESTION:
            return self._ask_questions(number, arguments, raw)
        id_ = self._new_id()
        self.add(Request(number, (kind, arguments), {id_: ""}))
        tool, question = _SHOWN[kind]
        words = str(arguments.get("reason") or arguments.get("message") or question)
        return [ApprovalAsked(id_, tool, words, arguments.get("command"), file or None, raw=raw)]

    def _ask_questions(self, number: int | str, arguments: Json, raw: Json) -> list[Event] | None:
        questions = {self._new_id(): question for question in arguments.get("questions") or ()}
        names = {id_: str(question.get("id")) for id_, question in questions.items()}
        self.add(Request(number, (Kind.QUESTION, arguments), names))
        events: list[Event] = []
        for id_, question in questions.items():
            choices = tuple(str(option.get("label")) for option in question.get("options") or ())
            events.append(
                QuestionAsked(id_, str(question.get("question", "The agent has a question.")), choices, raw=raw)
            )
        return events or None

    def answer(self, id_: ApprovalId, given: Answer, words: str) -> tuple[int | str, Json | None] | None:
        """The request to reply to, and the reply; no reply while other questions of it are open. None if not open."""
        request = self.record(id_, words if given is Answer.APPROVE else None)
        if request is None:
            return None
        kind, arguments = request.about
        if kind is not Kind.QUESTION:
            return request.number, _decision(kind, arguments, given)
        if not request.is_answered:
            return request.number, None
        answers = {request.parts[part]: said for part, said in request.answers.items()}
        replies = {name: {"answers": [] if said is None else [said]} for name, said in answers.items()}
        return request.number, {"answers": replies}

    def _new_id(self) -> ApprovalId:
        self._count += 1
        return ApprovalId(f"{self._prefix}/{self._count}")


def _decision(kind: Kind, arguments: Json, given: Answer) -> Json:
    """A yes is for this once: a lasting one would widen the mode for later turns."""
    yes = given is Answer.APPROVE
    match kind:
        case Kind.COMMAND | Kind.FILES:
            return {"decision": "accept" if yes else "decline"}
        case Kind.PERMISSIONS:
            return {"permissions": arguments.get("permissions") or {} if yes else {}, "scope": "turn"}
        case Kind.SERVER:
            return {"action": "accept", "content": {}} if yes else {"action": "decline", "content": None}
        case Kind.QUESTION:
            raise AssertionError("a question is answered in words")
