"""Messages of a session: how they count as turns, and the ids that Clew chooses for its own.

OpenCode makes an id of the millisecond, a counter that begins at 1 in each, and 14 random letters. It orders messages
by the time at which it took them, and by id where that is the same. Ids of Clew have the counter 0: such a message
comes before all that OpenCode makes in that millisecond, and the plugin recognises it by that (gate.js).
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from uuid import UUID

from clew.kernel import PromptId
from clew.ports.events import ToolFinished

Json = Mapping[str, Any]

_LETTERS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_LENGTH = 14
_COUNTER_BITS, _TIME_BITS = 12, 48


def turns_in(messages: Sequence[Json]) -> int:
    """The number of prompts, without those that OpenCode writes itself when it compacts a history."""
    return sum(each["info"].get("role") == "user" and any(map(_is_prompt, each["parts"])) for each in messages)


def _is_prompt(part: Json) -> bool:
    return part.get("type") != "compaction" and not part.get("synthetic")


def unfinished_tools(messages: Sequence[Json]) -> Iterator[Json]:
    """Tools that a killed server left as running. They keep that state for ever, although nothing of them runs."""
    for message in messages:
        for part in message["parts"]:
            if part.get("type") == "tool" and (part.get("state") or {}).get("status") in ("pending", "running"):
                yield part


def cut_off(tool: Json) -> ToolFinished:
    words = f"{tool.get('tool')} was cut off when OpenCode ended; nothing of it runs any more."
    return ToolFinished(str(tool.get("callID") or tool.get("id")), ok=False, output=words)


def message_id(prompt: PromptId) -> str:
    """The id of the message for a prompt. Later prompts get higher ids. Raises `ValueError` if it is no UUID."""
    return f"msg_{_id(prompt)}"


def part_id(prompt: PromptId) -> str:
    """The id of the message's text. Without one, a prompt that is posted twice would have two texts."""
    return f"prt_{_id(prompt)}"


def _id(prompt: PromptId) -> str:
    value = UUID(prompt).int
    milliseconds, random = value >> 80, (value >> 64 & 0xFFF) << 62 | value & (1 << 62) - 1
    # OpenCode's own ids lose the upper bits of the time as well.
    time = (milliseconds << _COUNTER_BITS) % (1 << _TIME_BITS)
    letters = ""
    for _ in range(_LENGTH):
        random, digit = divmod(random, len(_LETTERS))
        letters = _LETTERS[digit] + letters
    return f"{time:012x}{letters}"
