"""Items: the pieces of a turn as Codex tells them, in the words of the port."""

from collections.abc import Iterator, Mapping
from typing import Any

from clew.ports.events import Event, Text, Thought, ToolFinished, ToolStarted

Json = Mapping[str, Any]

# What is no tool: said, thought, or about the conversation itself.
_NO_TOOLS = frozenset(
    {
        "userMessage",
        "hookPrompt",
        "agentMessage",
        "functionCallOutput",
        "plan",
        "reasoning",
        "enteredReviewMode",
        "exitedReviewMode",
        "contextCompaction",
        "subAgentActivity",
    }
)
_WELL = frozenset({"completed", None})


def begun(item: Json, raw: Json) -> Iterator[Event]:
    kind = item.get("type")
    if kind not in _NO_TOOLS:
        command = item.get("command") if kind == "commandExecution" else None
        yield ToolStarted(str(item.get("id")), _name(item), command, files(item) or None, raw=raw)


def ended(item: Json, raw: Json) -> Iterator[Event]:
    kind = item.get("type")
    if kind == "agentMessage":
        yield Text(str(item.get("text", "")), final=True, raw=raw)
    elif kind == "reasoning":
        thought = "\n".join((*item.get("summary", ()), *item.get("content", ())))
        if thought:
            yield Thought(thought, raw=raw)
    elif kind not in _NO_TOOLS:
        yield ToolFinished(str(item.get("id")), item.get("status") in _WELL, _output(item), raw=raw)


def files(item: Json) -> str:
    """The files that a change touches, one on each line."""
    if item.get("type") == "imageView":
        return str(item.get("path", ""))
    changes = item.get("changes") or ()
    return "\n".join(str(change.get("path")) for change in changes if isinstance(change, Mapping))


def _name(item: Json) -> str:
    tool = item.get("tool")
    if tool is None:
        return str(item.get("type"))
    return ".".join(str(part) for part in (item.get("server") or item.get("namespace"), tool) if part)


def _output(item: Json) -> str:
    for name in ("aggregatedOutput", "error", "result", "contentItems", "results"):
        found = item.get(name)
        if found:
            return found if isinstance(found, str) else str(found)
    return "\n".join(str(change.get("diff", "")) for change in item.get("changes") or () if isinstance(change, Mapping))
