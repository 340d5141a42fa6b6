"""Restore archived sessions with `opencode import`, the only way to add a session or to bind it to a directory.

An archive is checked completely first. It is added to what is there and never overwrites it, and a restore that fails
is rolled back.
"""

import asyncio
import contextlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from clew.programs.checks import directory_at
from clew.programs.faults import (
    BadArchive,
    NotUnderstood,
    ProgramFault,
    Refused,
    SessionDiverged,
    SessionMissing,
    TooSlow,
)
from clew.programs.locks import lock_session
from clew.providers.opencode.api import Api
from clew.providers.opencode.archive import ArchivedSession
from clew.providers.opencode.launch import OpenCodeLaunch
from clew.providers.opencode.messages import Json
from clew.providers.opencode.server import Server, SharedServer


async def run_import(launch: OpenCodeLaunch, document: Json, directory: str) -> None:
    """Import a session, with a directory to which it is bound: the working directory of the import.

    An import adds what is missing. Of what is there it changes only the directory.
    """
    with launch.scratch.temporary() as beside:
        file = beside / "session.json"
        file.write_bytes(orjson.dumps(document))
        seconds = launch.deadlines.start
        try:
            result = await launch.run("import", str(file), directory=Path(directory), seconds=seconds)
        except TooSlow as fault:
            words = f"OpenCode's import of session {document['info']['id']} did not end within {seconds:g} s."
            raise TooSlow(words, "Give it more time.") from fault
    said = b"\n".join(result.lines).decode(errors="replace")
    if result.status != 0 or f"Imported session: {document['info']['id']}" not in said:
        words = f"OpenCode did not import the session: {result.words or said or 'it said nothing'}"
        raise Refused(words, "Look at its own log.")


async def move_to(api: Api, launch: OpenCodeLaunch, session: Json, directory: str) -> Json:
    """Bind the session to that directory and return it. An import without messages leaves its history alone."""
    await run_import(launch, {"info": dict(session), "messages": []}, directory)
    moved = await api.session(str(session["id"]))
    if directory_at(str(moved["directory"])) != directory_at(directory):
        raise Refused(
            f"The session was to move to {directory}, but OpenCode has it in {moved['directory']}.",
            "It stays where it was; start a new session there.",
        )
    return moved


# ---------------------------------------------------------------- check

_TYPES: Mapping[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "number": (int, float),
    "integer": (int,),
    "boolean": (bool,),
    "null": (type(None),),
}
_REFERENCE = "#/components/schemas/"


class Checker:
    """Checks values against the JSON schemas in OpenCode's own API description: OpenCode does not undo a failed import.

    Only the part of JSON Schema that this description uses. Unnamed properties are accepted, as an import does.
    """

    def __init__(self, schemas: Json) -> None:
        self._schemas = schemas

    def knows(self, *names: str) -> bool:
        return all(name in self._schemas for name in names)

    def problem(self, value: Any, name: str) -> str | None:
        """The first thing that is wrong with the value, by the schema of that name."""
        return next(self._problems(value, self._schemas[name], name), None)

    def _problems(self, value: Any, schema: Json, at: str) -> Iterator[str]:
        if "$ref" in schema:
            yield from self._problems(value, self._schemas[schema["$ref"].removeprefix(_REFERENCE)], at)
            return
        for choices in (schema[key] for key in ("anyOf", "oneOf") if key in schema):
            if all(next(self._problems(value, each, at), None) for each in choices):
                yield f"{at} fits none of its schemas"
        for each in schema.get("allOf", ()):
            yield from self._problems(value, each, at)
        kind = schema.get("type")
        if isinstance(kind, str) and not _is(value, kind):
            yield f"{at} is no {kind}"
            return
        if "enum" in schema and value not in schema["enum"]:
            yield f"{at} is {value!r}"
        yield from self._inside(value, schema, at)

    def _inside(self, value: Any, schema: Json, at: str) -> Iterator[str]:
        match value:
            case str() if "pattern" in schema and not re.search(schema["pattern"], value):
                yield f"{at} has the wrong form"
            case dict():
                yield from (f"{at} lacks {name}" for name in schema.get("required", ()) if name not in value)
                for name, inner in schema.get("properties", {}).items():
                    if name in value:
                        yield from self._problems(value[name], inner, f"{at}.{name}")
            case list() if "items" in schema:
                for number, each in enumerate(value):
                    yield from self._problems(each, schema["items"], f"{at}[{number}]")


def _is(value: Any, kind: str) -> bool:
    if isinstance(value, bool):
        return kind == "boolean"
    whole = kind == "integer" and isinstance(value, float) and value.is_integer()
    return whole or isinstance(value, _TYPES.get(kind, (object,)))


# ---------------------------------------------------------------- restore

_NOTHING = "Nothing was changed; use another copy."
_ROLLED_BACK = "The import was rolled back; look at OpenCode's own log."


@dataclass(frozen=True, slots=True)
class Before:
    session: Json
    messages: Sequence[Json]


@dataclass
class Restore:
    server: Server
    shared: SharedServer
    launch: OpenCodeLaunch
    locks: Path
    archived: ArchivedSession
    place: str
    # Each session as it was before; None if it was not there.
    _before: dict[str, Before | None] = field(default_factory=dict)

    @property
    def api(self) -> Api:
        return Api(self.server)

    async def run(self) -> None:
        await self._check()
        with contextlib.ExitStack() as stack:
            for document in self.archived.documents:
                stack.callback(lock_session(self.locks, document["info"]["id"]).release)
            for document in self.archived.documents:
                await self._check_existing(document)
            try:
                for document in self.archived.documents:
                    await self._add(document)
            except BaseException:
                await asyncio.shield(asyncio.ensure_future(self._roll_back()))
                raise

    async def _check(self) -> None:
        checker = Checker(await self.api.schemas())
        if not checker.knows("Message", "Part"):
            raise NotUnderstood("OpenCode's API description has no schema of a message.", "Update OpenCode or Clew.")
        for document in self.archived.documents:
            problem = await asyncio.to_thread(_problem, checker, document)
            if problem is not None:
                raise BadArchive(f"The archive holds a value that OpenCode does not accept: {problem}.", _NOTHING)

    async def _check_existing(self, document: Json) -> None:
        """A session that is there already must be the same, or an earlier state of it. Otherwise work would be lost."""
        id_ = str(document["info"]["id"])
        try:
            session = await self.api.session(id_)
        except SessionMissing:
            self._before[id_] = None
            return
        before = self._before[id_] = Before(session, await self.api.messages(id_, self.launch.deadlines.start))
        restored = {each["info"]["id"]: each for each in document["messages"]}
        for message in before.messages:
            if not _continues(message, restored.get(message["info"]["id"])):
                raise SessionDiverged(
                    f"Session {id_} is here already, and its message {message['info']['id']} is not the archive's.",
                    "Nothing was changed. Use the session that is here, or delete it in OpenCode first.",
                )

    async def _add(self, document: Json) -> None:
        id_ = str(document["info"]["id"])
        before = self._before[id_]
        if before is not None and _shape(before.messages) == _shape(document["messages"]):
            await self._move(before.session, self.place)
            return
        await run_import(self.launch, document, self.place)
        session = await self.api.session(id_)
        there = await self.api.messages(id_, self.launch.deadlines.start)
        if _shape(there) != _shape(document["messages"]):
            raise Refused(f"OpenCode imported only a part of session {id_}.", _ROLLED_BACK)
        if directory_at(str(session["directory"])) != directory_at(self.place):
            raise Refused(f"OpenCode has session {id_} in {session['directory']}.", _ROLLED_BACK)
        if before is None and session.get("permission"):
            raise Refused(f"Session {id_} was imported with permissions.", _ROLLED_BACK)

    async def _move(self, session: Json, directory: str) -> None:
        if directory_at(str(session["directory"])) != directory_at(directory):
            await move_to(self.api, self.launch, session, directory)

    async def _roll_back(self) -> None:
        """With the current server: the one that imported may have ended."""
        with contextlib.suppress(ProgramFault):
            self.server = await self.shared.running()
        for id_, before in reversed(self._before.items()):
            with contextlib.suppress(ProgramFault):
                if before is None:
                    await self.api.delete(id_)
                else:
                    await self._revert(id_, before)

    async def _revert(self, id_: str, before: Before) -> None:
        kept = {each["info"]["id"] for each in before.messages}
        for message in await self.api.messages(id_, self.launch.deadlines.start):
            if message["info"]["id"] not in kept:
                await self.api.delete_message(id_, message["info"]["id"])
        await self._move(await self.api.session(id_), str(before.session["directory"]))


def _problem(checker: Checker, document: Json) -> str | None:
    for message in document["messages"]:
        for value, name in ((message["info"], "Message"), *((part, "Part") for part in message["parts"])):
            if (problem := checker.problem(value, name)) is not None:
                return f"{value['id']}: {problem}"
    return None


def _continues(here: Json, restored: Json | None) -> bool:
    if restored is None or _without_summary(here["info"]) != _without_summary(restored["info"]):
        return False
    parts = {part["id"]: part for part in restored["parts"]}
    return all(parts.get(part["id"]) == part for part in here["parts"])


def _without_summary(info: Json) -> dict[str, Any]:
    """Without `summary`: OpenCode adds to a prompt later which files changed because of it."""
    return {name: value for name, value in info.items() if name != "summary"}


def _shape(messages: Sequence[Json]) -> list[tuple[str, list[str]]]:
    return [(each["info"]["id"], [part["id"] for part in each["parts"]]) for each in messages]
