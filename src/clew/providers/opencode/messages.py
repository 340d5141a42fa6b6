"""What a session's messages tell: its turns, and what was cut off."""

from collections.abc import Iterator, Sequence
from uuid import UUID

from clew.kernel import PromptId
from clew.ports.events import ToolFinished
from clew.providers.opencode.http import Json


def turns_in(messages: Sequence[Json]) -> int:
    """The prompts; not what OpenCode puts in their place when it makes a history shorter."""
    return sum(each["info"].get("role") == "user" and any(map(_asked, each["parts"])) for each in messages)


def _asked(part: Json) -> bool:
    return part.get("type") != "compaction" and not part.get("synthetic")


def left_running(messages: Sequence[Json]) -> Iterator[Json]:
    """The tools that a server which was killed left behind. They stay so for ever, and nothing of them runs."""
    for message in messages:
        for part in message["parts"]:
            if part.get("type") == "tool" and (part.get("state") or {}).get("status") in ("pending", "running"):
                yield part


def cut_off(part: Json) -> ToolFinished:
    words = f"{part.get('tool')} was cut off when OpenCode ended; nothing of it runs any more."
    return ToolFinished(str(part.get("callID") or part.get("id")), ok=False, output=words)


_LETTERS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_LENGTH = 14
_COUNTER_BITS, _TIME_BITS = 12, 48


def message_id(prompt: PromptId) -> str:
    """The message that holds the prompt. Ids of later prompts sort behind. Raises `ValueError` for what is no UUID."""
    return f"msg_{_id(prompt)}"


def part_id(prompt: PromptId) -> str:
    """The message's text. With an id of its own, a prompt that is posted twice is kept once."""
    return f"prt_{_id(prompt)}"


def _id(prompt: PromptId) -> str:
    value = UUID(prompt).int
    milliseconds, random = value >> 80, (value >> 64 & 0xFFF) << 62 | value & (1 << 62) - 1
    # OpenCode's own lose the upper bits of the time as well.
    time = (milliseconds << _COUNTER_BITS) % (1 << _TIME_BITS)
    letters = ""
    for _ in range(_LENGTH):
        random, digit = divmod(random, len(_LETTERS))
        letters = _LETTERS[digit] + letters
    return f"{time:012x}{letters}"
