"""The ids that Clew chooses for what it puts into a session, in the shape and order of OpenCode's own.

OpenCode makes an id of the millisecond, a counter that begins at 1 in each, and 14 random letters; it orders messages
by the time at which it took them, and by their ids where that is the same. A prompt's id has the counter 0: it stands
before whatever OpenCode makes in that millisecond, and the plugin knows by it that it is one of ours (gate.js).
"""

from uuid import UUID

from clew.kernel import PromptId

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
