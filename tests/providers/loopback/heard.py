"""What one request to a model carried, in words common to all wire formats."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple

Json = dict[str, Any]


class Format(StrEnum):
    ANTHROPIC = "anthropic"
    RESPONSES = "openai-responses"
    CHAT = "openai-chat"


class Role(StrEnum):
    USER = "user"
    ASSISTANT = "assistant"


class Turn(NamedTuple):
    """`text` of a user is what a person asked; what the agent itself put around it is left out."""

    role: Role
    text: str


class ToolResult(NamedTuple):
    call: str
    text: str


@dataclass(frozen=True, kw_only=True)
class Heard:
    """`pending` are the results that came after the last prompt; `results` are all of them."""

    model: str
    stream: bool
    system: str
    turns: tuple[Turn, ...]
    results: tuple[ToolResult, ...]
    pending: tuple[ToolResult, ...]
    tools: tuple[str, ...]

    @property
    def prompts(self) -> tuple[str, ...]:
        return tuple(turn.text for turn in self.turns if turn.role is Role.USER)

    @property
    def side(self) -> bool:
        """Not the work itself but something about it: a title, a summary."""
        return not self.tools


@dataclass(frozen=True, kw_only=True)
class Request(Heard):
    """`headers` have lower-case names and no secrets; `answered` says in a word what the model did. `at` is when it
    came, by the monotonic clock, which is the same for every process of this machine."""

    format: Format
    path: str
    headers: Mapping[str, str]
    answered: str
    body: Json = field(repr=False)
    at: float = 0.0


@dataclass
class Hearing:
    """Reads a history from its beginning to its end."""

    turns: list[Turn] = field(default_factory=list)
    results: list[ToolResult] = field(default_factory=list)
    pending: list[ToolResult] = field(default_factory=list)
    system: list[str] = field(default_factory=list)

    def user(self, text: str) -> None:
        prompt = asked(text)
        if prompt:
            self.turns.append(Turn(Role.USER, prompt))
            self.pending.clear()

    def assistant(self, text: str) -> None:
        if text:
            self.turns.append(Turn(Role.ASSISTANT, text))

    def result(self, call: str, text: str) -> None:
        self.results.append(ToolResult(call, text))
        self.pending.append(self.results[-1])

    def told(self, model: str, stream: bool, tools: tuple[str, ...]) -> Heard:
        return Heard(
            model=model,
            stream=stream,
            system="\n".join(self.system),
            turns=tuple(self.turns),
            results=tuple(self.results),
            pending=tuple(self.pending),
            tools=tools,
        )


# Claude Code puts reminders into the prompt's own message; Codex and OpenCode send whole messages in one tag.
REMINDER = re.compile(r"<system-reminder>.*?</system-reminder>", re.DOTALL)
WRAPPED = re.compile(r"<(?P<tag>[A-Za-z][\w-]*)(?: [^>]*)?>.*</(?P=tag)(?: [^>]*)?>", re.DOTALL)
FILLERS = ("# AGENTS.md instructions", "Continue from where you left off.", "[Request interrupted by user")


def asked(text: str) -> str:
    """What a person asked in this text; empty when the agent made all of it."""
    bare = REMINDER.sub("", text).strip()
    return "" if WRAPPED.fullmatch(bare) or bare.startswith(FILLERS) else bare


def texts(content: object) -> list[str]:
    """The texts of a content field, which is a text or a list of typed blocks."""
    if isinstance(content, str):
        return [content]
    if not isinstance(content, list):
        return []
    return [str(block["text"]) for block in content if isinstance(block, dict) and "text" in block]
