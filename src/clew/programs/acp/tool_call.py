"""A tool call, merged from its updates: a later one holds only what changed."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Tool:
    id: str
    said: dict[str, Any] = field(default_factory=dict)
    started: bool = False
    finished: bool = False

    def merge(self, said: Mapping[str, Any]) -> None:
        self.said.update({key: value for key, value in said.items() if value not in (None, "", [], {})})

    @property
    def kind(self) -> str:
        return str(self.said.get("kind") or "other")

    @property
    def name(self) -> str:
        return str(self.said.get("title") or self.kind)

    @property
    def known(self) -> bool:
        """Whether its arguments are known. Some agents report a tool, and where it will run, before they have them."""
        given = self.said.get("rawInput")
        has_arguments = bool(given) and (self.kind != "execute" or (isinstance(given, Mapping) and "command" in given))
        return has_arguments or self.said.get("status") == "in_progress" or self.ended

    @property
    def ended(self) -> bool:
        return self.said.get("status") in ("completed", "failed")

    @property
    def ok(self) -> bool:
        return self.said.get("status") == "completed"

    @property
    def command(self) -> str | None:
        given = self.said.get("rawInput")
        command = given.get("command") if isinstance(given, Mapping) else None
        if isinstance(command, list):
            return " ".join(map(str, command))
        if isinstance(command, str):
            return command
        return self.name if self.kind == "execute" else None

    @property
    def files(self) -> tuple[str, ...]:
        places = self.said.get("locations") or ()
        return tuple(str(place["path"]) for place in places if isinstance(place, Mapping) and "path" in place)

    @property
    def places(self) -> Iterator[str]:
        """Every path in the request, wherever it is: not all agents give them as locations."""
        yield from self.files
        for part in self.said.get("content") or ():
            if isinstance(part, Mapping) and part.get("type") == "diff":
                yield str(part.get("path") or "")
        yield from _paths_in(self.said.get("rawInput"))

    @property
    def file(self) -> str | None:
        return next(iter(self.files), None)

    @property
    def output(self) -> str:
        parts = [part for part in self.said.get("content") or () if isinstance(part, Mapping)]
        text = "\n".join(filter(None, (text_of(part.get("content")) for part in parts)))
        raw = self.said.get("rawOutput")
        if isinstance(raw, Mapping):
            raw = next((raw[name] for name in ("formatted_output", "output", "stdout") if name in raw), "")
        return text or (raw if isinstance(raw, str) else "")


def _paths_in(given: object) -> Iterator[str]:
    """Values whose name ends in path or destination, at any depth, and the keys of `changes`, which are paths."""
    if isinstance(given, list):
        for each in given:
            yield from _paths_in(each)
    if isinstance(given, Mapping):
        for name, value in given.items():
            if name == "changes" and isinstance(value, Mapping):
                yield from map(str, value)
            if isinstance(value, str):
                yield from (value,) if value and str(name).casefold().endswith(("path", "destination")) else ()
            else:
                yield from _paths_in(value)


def text_of(content: object) -> str:
    """The text of a content block; empty if it is of another kind."""
    text = content.get("text") if isinstance(content, Mapping) else None
    return text if isinstance(text, str) else ""
