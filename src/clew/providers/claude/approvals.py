"""Requests of Claude Code to a person: permission to use a tool, or answers to its questions."""

from collections.abc import Iterator, Mapping
from typing import Any

from clew.kernel import Answer, ApprovalId
from clew.ports.events import ApprovalAsked, Event, QuestionAsked
from clew.programs.rpc import Message
from clew.programs.secrets import Redactor
from clew.programs.session import OpenRequests, Request

_QUESTION = "AskUserQuestion"
_DENIED = "The user does not allow this."


class Approvals(OpenRequests[Mapping[str, Any]]):
    """The open requests of one session."""

    def __init__(self, redactor: Redactor) -> None:
        super().__init__()
        self._redactor = redactor

    def ask(self, number: str, request: Message) -> Iterator[Event]:
        given = request.get("input") or {}
        questions = given.get("questions") if request.get("tool_name") == _QUESTION else None
        if isinstance(questions, list) and questions and all(isinstance(each, dict) for each in questions):
            yield from self._questions(number, given, questions)
            return
        self.add(Request(number, given, {ApprovalId(number): ""}))
        raw = self._redactor.value(dict(request))
        shown = raw.get("input") or {}
        command, file = shown.get("command"), shown.get("file_path") or raw.get("blocked_path")
        tool = str(raw.get("tool_name"))
        words = raw.get("description") or command or file or tool
        yield ApprovalAsked(ApprovalId(number), tool, f"{tool}: {words}", command, file, raw=raw)

    def _questions(self, number: str, given: Mapping[str, Any], questions: list[dict[str, Any]]) -> Iterator[Event]:
        shown = self._redactor.text
        ids = [ApprovalId(number if at == 0 else f"{number}:{at}") for at in range(len(questions))]
        texts = [str(each.get("question", "")) for each in questions]
        self.add(Request(number, given, dict(zip(ids, texts, strict=True))))
        for id_, question, text in zip(ids, questions, texts, strict=True):
            choices = tuple(shown(str(option.get("label", ""))) for option in question.get("options") or ())
            yield QuestionAsked(id_, shown(text), choices, raw=self._redactor.value(question))

    def answer(self, approval: ApprovalId, given: Answer, words: str) -> tuple[bool, tuple[str, Message] | None]:
        """Whether the request was still open, and the reply to send once all its questions are answered."""
        request = self.record(approval, words)
        if request is None:
            return False, None
        number = str(request.number)
        if given is Answer.DENY:
            self.withdraw(number)
            return True, (number, {"behavior": "deny", "message": words or _DENIED})
        if not request.is_answered:
            return True, None
        answers = {text: request.answers[id_] for id_, text in request.parts.items() if text}
        updated = {**request.about, "answers": answers} if answers else request.about
        return True, (number, {"behavior": "allow", "updatedInput": updated})
