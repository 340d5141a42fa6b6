"""How far a prompt came, by what OpenCode's database holds of it. Nothing here reads or asks."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from clew.kernel import Attestation, Evidence, Sent, digest_of
from clew.programs.secrets import Redactor
from clew.providers.opencode.following import GOES_ON
from clew.providers.opencode.http import Json
from clew.providers.opencode.keeping import Kept, Message

_SAID = ("text", "reasoning", "tool", "file")
"""The parts that are something of a turn. The others say that a step was begun, ended or tried again."""


def attestation(kept: Kept | None, sent: Sent, redactor: Redactor) -> Attestation:
    """As of a session in which nothing is going on any more."""
    if kept is None:
        return Attestation(Evidence.UNSENT, "OpenCode has no such session.")
    if kept.undone:
        return Attestation(Evidence.UNKNOWN, "It was in the session, and was taken back there (undo).")
    if not kept.holds_it:
        return Attestation(
            Evidence.UNSENT, f"The session does not hold it{', only an empty message' * bool(kept.messages)}."
        )
    turn = _turn(kept.messages, sent.digest)
    if turn.answers and (turn.said[-1] is turn.answers[-1] or turn.answers[0].info.get("parentID") == turn.prompt):
        return Attestation(Evidence.FINISHED, "The session holds it and its answer.", redactor.text(turn.reply))
    if any(part.get("type") in _SAID for message in turn.said for part in message.parts):
        return Attestation(Evidence.CUT_OFF, f"The session holds it and part of a turn{turn.error}.")
    return Attestation(Evidence.TAKEN, f"The session holds it, and nothing follows{turn.error}.")


@dataclass
class _Turn:
    """`said` are the agent's messages from the prompt to the end of its turn. `steered`: it was told more meanwhile."""

    prompt: str
    said: list[Message] = field(default_factory=list)
    steered: bool = False

    @property
    def answers(self) -> Sequence[Message]:
        return [message for message in self.said if _is_final(message)]

    @property
    def reply(self) -> str:
        """Of one that has an answer, as `Following.reply` tells it: what was said last; where it was told something
        after an answer, that answer as well."""
        answers = [text for text in map(_text, self.answers) if text]
        if self.steered and len(answers) > 1:
            return "\n\n".join(answers)
        whole = self.said[: self.said.index(self.answers[-1]) + 1]
        return next((text for text in map(_text, reversed(whole)) if text), "")

    @property
    def error(self) -> str:
        error = self.said[-1].info.get("error") if self.said else None
        return f" ({error.get('name')})" if isinstance(error, dict) else ""


def _turn(messages: Sequence[Message], digest: str) -> _Turn:
    turn, last = _Turn(messages[0].id), None
    for message in messages[1:]:
        if message.info.get("role") == "assistant":
            last = message
            if not message.info.get("summary"):
                turn.said.append(message)
        elif message.is_prompt:
            if last is None or not (_came_within(last, message) or _is_put_again(last, message, digest)):
                break
            turn.steered = turn.steered or not last.info.get("summary")
    return turn


def _came_within(last: Message, prompt: Message) -> bool:
    completed, created = _time(last, "completed"), _time(prompt, "created")
    return completed is not None and created is not None and created <= completed


def _is_put_again(last: Message, prompt: Message, digest: str) -> bool:
    """A history that is too long OpenCode makes shorter in the turn, and then puts the same prompt once more."""
    return bool(last.info.get("summary")) and digest_of(_text(prompt)) == digest


def _is_final(message: Message) -> bool:
    """By the rule by which OpenCode itself ends a turn."""
    info = message.info
    if info.get("error") or _time(message, "completed") is None or info.get("finish") in (None, *GOES_ON):
        return False
    return not any(part.get("type") == "tool" and not _is_the_models(part) for part in message.parts)


def _is_the_models(tool: Json) -> bool:
    """One that the model's own provider ran, or that was called off: no answer to it is sent to the model."""
    state, own = tool.get("state") or {}, tool.get("metadata") or {}
    called_off = state.get("status") == "error" and (state.get("metadata") or {}).get("interrupted") is True
    return bool(own.get("providerExecuted")) or called_off


def _text(message: Message) -> str:
    return "\n".join(str(part["text"]) for part in message.parts if part.get("type") == "text" and part.get("text"))


def _time(message: Message, of: str) -> int | None:
    value = (message.info.get("time") or {}).get(of)
    return value if isinstance(value, int) else None
