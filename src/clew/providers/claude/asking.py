"""What Claude Code asks of a person: leave to use a tool, or the answers to its questions."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from clew.kernel import Answer, ApprovalId
from clew.ports.events import ApprovalAsked, Event, QuestionAsked
from clew.programs.secrets import Redactor
from clew.providers.claude.wire import Message

_QUESTION = "AskUserQuestion"
_DENIED = "The user does not allow this."


@dataclass(slots=True)
class _Open:
    """What was asked in one request. `left` are its parts without an answer, by their ids; a question is one each."""

    number: str
    given: Mapping[str, Any]
    left: dict[ApprovalId, str]
    answers: dict[str, str] = field(default_factory=dict)


class Asking:
    """What is asked and not yet answered."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._open: dict[str, _Open] = {}

    def __bool__(self) -> bool:
        return bool(self._open)

    def ask(self, number: str, request: Message) -> Iterator[Event]:
        given = request.get("input") or {}
        questions = given.get("questions") if request.get("tool_name") == _QUESTION else None
        if isinstance(questions, list) and questions and all(isinstance(each, dict) for each in questions):
            yield from self._questions(number, given, questions)
            return
        self._open[number] = _Open(number, given, {ApprovalId(number): ""})
        raw = self._redactor.value(dict(request))
        shown = raw.get("input") or {}
        command, file = shown.get("command"), shown.get("file_path") or raw.get("blocked_path")
        tool = str(raw.get("tool_name"))
        words = raw.get("description") or command or file or tool
        yield ApprovalAsked(ApprovalId(number), tool, f"{tool}: {words}", command, file, raw=raw)

    def _questions(self, number: str, given: Mapping[str, Any], questions: list[dict[str, Any]]) -> Iterator[Event]:
        ids = [ApprovalId(number if at == 0 else f"{number}:{at}") for at in range(len(questions))]
        words = [str(each.get("question", "")) for each in questions]
        self._open[number] = _Open(number, given, dict(zip(ids, words, strict=True)))
        for each, asked, text in zip(ids, questions, words, strict=True):
            shown = self._redactor.text
            choices = tuple(shown(str(option.get("label", ""))) for option in asked.get("options") or ())
            yield QuestionAsked(each, shown(text), choices, raw=self._redactor.value(asked))

    def answer(self, approval: ApprovalId, given: Answer, words: str) -> tuple[bool, tuple[str, Message] | None]:
        """Whether it was still asked; and what the program is told, once all that it asked together is answered."""
        asked = next((each for each in self._open.values() if approval in each.left), None)
        if asked is None:
            return False, None
        question = asked.left.pop(approval)
        if given is Answer.DENY:
            del self._open[asked.number]
            return True, (asked.number, {"behavior": "deny", "message": words or _DENIED})
        if question:
            asked.answers[question] = words
        if asked.left:
            return True, None
        del self._open[asked.number]
        answers = {"answers": asked.answers} if asked.answers else {}
        return True, (asked.number, {"behavior": "allow", "updatedInput": {**asked.given, **answers}})

    def forget(self, number: str) -> None:
        """It asks this no more."""
        self._open.pop(number, None)

    def forget_all(self) -> None:
        self._open.clear()
