"""What a session's messages tell: its turns, and what was cut off."""

from collections.abc import Iterator, Sequence

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
