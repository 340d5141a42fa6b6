"""What OpenCode asks a person: permission to use a tool, and the agent's own questions."""

from collections.abc import Iterator
from enum import Enum

from clew.kernel import Answer, ApprovalId
from clew.ports.events import ApprovalAsked, QuestionAsked
from clew.programs.secrets import Redactor
from clew.programs.session import OpenRequests, Request
from clew.providers.opencode.api import Api
from clew.providers.opencode.messages import Json

# A denial without a message would end the turn; with one the agent goes on and may find another way.
_DENIED = "A person has denied this."


class Kind(Enum):
    PERMISSION = "permission"
    QUESTIONS = "questions"
    """One request may hold several, which are answered together."""


class Approvals(OpenRequests[Kind]):
    """The open requests of one session."""

    def __init__(self, redactor: Redactor) -> None:
        super().__init__()
        self._redactor = redactor

    def permission(self, asked: Json) -> ApprovalAsked:
        id_ = str(asked["id"])
        self.add(Request(id_, Kind.PERMISSION, {ApprovalId(id_): ""}))
        details, shown = asked.get("metadata") or {}, self._redactor.text
        command, file = details.get("command"), details.get("filepath") or details.get("filePath")
        patterns = ", ".join(str(each) for each in asked.get("patterns") or ())
        tool = str(asked.get("permission", ""))
        return ApprovalAsked(
            ApprovalId(id_),
            tool,
            shown(f"{tool}: {patterns}" if patterns else tool),
            shown(command) if isinstance(command, str) else None,
            shown(file) if isinstance(file, str) else None,
            raw=self._redactor.value(dict(asked)),
        )

    def questions(self, asked: Json) -> Iterator[QuestionAsked]:
        request, questions = str(asked["id"]), asked.get("questions") or ()
        ids = [ApprovalId(f"{request}/{number}") for number in range(len(questions))]
        self.add(Request(request, Kind.QUESTIONS, dict.fromkeys(ids, "")))
        for id_, question in zip(ids, questions, strict=True):
            choices = tuple(self._redactor.text(str(each.get("label", ""))) for each in question.get("options") or ())
            words = self._redactor.text(str(question.get("question", "")))
            yield QuestionAsked(id_, words, choices, raw=self._redactor.value(dict(question)))

    async def answer(self, api: Api, directory: str, id_: ApprovalId, given: Answer, words: str) -> bool:
        """False if OpenCode no longer waits for it. Several questions are sent when the last has its answer."""
        request = self.record(id_, words)
        if request is None:
            return False
        number = str(request.number)
        if request.about is Kind.PERMISSION:
            once = {"reply": "once"}
            reply = once if given is Answer.APPROVE else {"reply": "reject", "message": words or _DENIED}
            return await api.permit(id_, directory, reply)
        if given is Answer.DENY:
            self.withdraw(number)
            return await api.reject(number, directory)
        if not request.is_answered:
            return True
        said = [request.answers[part] for part in request.parts]
        return await api.reply(number, directory, [[each] if each else [] for each in said])
