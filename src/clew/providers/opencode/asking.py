"""What OpenCode asks of a person: leave to use a tool, and questions of the agent itself."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from clew.kernel import Answer, ApprovalId
from clew.ports.events import ApprovalAsked, QuestionAsked
from clew.programs.secrets import Redactor
from clew.providers.opencode.api import Api
from clew.providers.opencode.http import Json

# Without any words the turn would end there; with some the agent goes on and may find another way.
_DENIED = "A person has denied this."


@dataclass(slots=True)
class _Questions:
    """Several may come as one request, and all are answered together."""

    request: str
    given: list[str | None] = field(default_factory=list)


class Asking:
    """What is open. An answer counts once, and only while the one who asked waits for it."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._permissions: set[str] = set()
        self._questions: dict[ApprovalId, tuple[_Questions, int]] = {}

    def __bool__(self) -> bool:
        return bool(self._permissions or self._questions)

    def permission(self, asked: Json) -> ApprovalAsked:
        id_ = str(asked["id"])
        self._permissions.add(id_)
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
        each_asked = asked.get("questions") or ()
        request = _Questions(str(asked["id"]), [None] * len(each_asked))
        for number, question in enumerate(each_asked):
            id_ = ApprovalId(f"{request.request}/{number}")
            self._questions[id_] = (request, number)
            choices = tuple(self._redactor.text(str(each.get("label", ""))) for each in question.get("options") or ())
            words = self._redactor.text(str(question.get("question", "")))
            yield QuestionAsked(id_, words, choices, raw=self._redactor.value(dict(question)))

    def settled(self, request: str) -> None:
        """It was answered, or taken back: a denial takes back all that its session asks."""
        self._permissions.discard(request)
        self._questions = {id_: at for id_, at in self._questions.items() if at[0].request != request}

    def drop(self) -> None:
        self._permissions.clear()
        self._questions.clear()

    async def answer(self, api: Api, directory: str, id_: ApprovalId, given: Answer, words: str) -> bool:
        if id_ in self._permissions:
            self._permissions.discard(id_)
            once = {"reply": "once"}
            reply = once if given is Answer.APPROVE else {"reply": "reject", "message": words or _DENIED}
            return await api.permit(id_, directory, reply)
        if id_ not in self._questions:
            return False
        request, number = self._questions.pop(id_)
        if given is Answer.DENY:
            self.settled(request.request)
            return await api.reject(request.request, directory)
        request.given[number] = words
        if None in request.given:
            return True
        return await api.reply(request.request, directory, [[each] if each else [] for each in request.given])
