"""OpenCode's own import: the only way to put a session into its store, or to bind it to another directory."""

import asyncio
import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from clew.programs.faults import BadArchive, NotUnderstood, ProgramFault, Refused, TooSlow
from clew.programs.locks import lock_session
from clew.providers.opencode.api import Api
from clew.providers.opencode.archive import Copy
from clew.providers.opencode.faults import SessionDiverged, SessionMissing
from clew.providers.opencode.home import directory_at
from clew.providers.opencode.http import Json
from clew.providers.opencode.launch import Launch
from clew.providers.opencode.schema import Checker
from clew.providers.opencode.server import Server, Shared


async def imported(launch: Launch, document: Json, directory: str) -> None:
    """Run it where the session is to be: it binds what it imports to its own working directory.

    It adds what is missing, and changes nothing that is there but where the session belongs.
    """
    with launch.scratch.temporary() as beside:
        file = beside / "session.json"
        file.write_bytes(orjson.dumps(document))
        program = await launch.start("import", str(file), directory=Path(directory))
        try:
            async with asyncio.timeout(launch.deadlines.start):
                said = b"\n".join([line async for line in program.lines()]).decode(errors="replace")
                status = await program.wait(launch.deadlines.close)
                words = launch.redactor().text(await program.final_words(1.0))
        except TimeoutError as fault:
            raise TooSlow("OpenCode's import did not end in time.", "Give it more time.") from fault
        finally:
            await asyncio.shield(asyncio.ensure_future(program.end(launch.deadlines.close)))
    if status != 0 or f"Imported session: {document['info']['id']}" not in said:
        raise Refused(
            f"OpenCode did not import the session: {words or said or 'it said nothing'}", "Look at its own log."
        )


async def bring_into(api: Api, launch: Launch, session: Json, directory: str) -> Json:
    """The session, bound to that directory. Its history is not touched: an import without messages adds none."""
    await imported(launch, {"info": dict(session), "messages": []}, directory)
    moved = await api.session(str(session["id"]))
    if directory_at(str(moved["directory"])) != directory_at(directory):
        raise Refused(
            f"The session was to be moved to {directory}, and OpenCode has it in {moved['directory']}.",
            "It stays where it was; start a new session there.",
        )
    return moved


_NOTHING = "Nothing was changed; use another copy."


@dataclass(frozen=True, slots=True)
class Before:
    session: Json
    messages: Sequence[Json]


@dataclass
class Restoring:
    server: Server
    shared: Shared
    launch: Launch
    locks: Path
    copy: Copy
    place: str
    # Each session as it was; None where it was not there.
    _before: dict[str, Before | None] = field(default_factory=dict)

    @property
    def api(self) -> Api:
        return Api(self.server)

    async def restore(self) -> None:
        await self._check()
        with contextlib.ExitStack() as stack:
            for document in self.copy.documents:
                stack.callback(lock_session(self.locks, document["info"]["id"]).release)
            for document in self.copy.documents:
                await self._look(document)
            try:
                for document in self.copy.documents:
                    await self._add(document)
            except BaseException:
                await asyncio.shield(asyncio.ensure_future(self._take_back()))
                raise

    async def _check(self) -> None:
        checker = Checker(await self.api.schemas())
        if not checker.knows("Message", "Part"):
            raise NotUnderstood("This OpenCode does not say what a message is.", "Update OpenCode or Clew.")
        for document in self.copy.documents:
            problem = await asyncio.to_thread(_problem, checker, document)
            if problem is not None:
                raise BadArchive(f"The archive holds what OpenCode does not take: {problem}.", _NOTHING)

    async def _look(self, document: Json) -> None:
        """What is there already may be the same, or an earlier state of it. Anything else is somebody's work."""
        id_ = str(document["info"]["id"])
        try:
            session = await self.api.session(id_)
        except SessionMissing:
            self._before[id_] = None
            return
        before = self._before[id_] = Before(session, await self.api.messages(id_, self.launch.deadlines.start))
        restored = {each["info"]["id"]: each for each in document["messages"]}
        for message in before.messages:
            if not _goes_on(message, restored.get(message["info"]["id"])):
                raise SessionDiverged(
                    f"Session {id_} is here already, and its message {message['info']['id']} is not the archive's.",
                    "Nothing was changed. Go on with the session that is here, or delete it in OpenCode first.",
                )

    async def _add(self, document: Json) -> None:
        id_ = str(document["info"]["id"])
        before = self._before[id_]
        if before is not None and _shape(before.messages) == _shape(document["messages"]):
            await self._bring(before.session, self.place)
            return
        await imported(self.launch, document, self.place)
        session = await self.api.session(id_)
        there = await self.api.messages(id_, self.launch.deadlines.start)
        if _shape(there) != _shape(document["messages"]):
            raise Refused(f"OpenCode did not take all of session {id_}.", "What it took was taken back.")
        if directory_at(str(session["directory"])) != directory_at(self.place):
            raise Refused(f"OpenCode has session {id_} in {session['directory']}.", "What it took was taken back.")
        if before is None and session.get("permission"):
            raise Refused(f"Session {id_} came with leave to do things.", "What OpenCode took was taken back.")

    async def _bring(self, session: Json, directory: str) -> None:
        if directory_at(str(session["directory"])) != directory_at(directory):
            await bring_into(self.api, self.launch, session, directory)

    async def _take_back(self) -> None:
        """By whatever server there is: the one that took it may be gone by now."""
        with contextlib.suppress(ProgramFault):
            self.server = await self.shared.running()
        for id_, before in reversed(self._before.items()):
            with contextlib.suppress(ProgramFault):
                if before is None:
                    await self.api.delete(id_)
                else:
                    await self._put_back(id_, before)

    async def _put_back(self, id_: str, before: Before) -> None:
        kept = {each["info"]["id"] for each in before.messages}
        for message in await self.api.messages(id_, self.launch.deadlines.start):
            if message["info"]["id"] not in kept:
                await self.api.delete_message(id_, message["info"]["id"])
        await self._bring(await self.api.session(id_), str(before.session["directory"]))


def _problem(checker: Checker, document: Json) -> str | None:
    for message in document["messages"]:
        for value, name in ((message["info"], "Message"), *((part, "Part") for part in message["parts"])):
            if (problem := checker.problem(value, name)) is not None:
                return f"{value['id']}: {problem}"
    return None


def _goes_on(here: Json, restored: Json | None) -> bool:
    if restored is None or _lasting(here["info"]) != _lasting(restored["info"]):
        return False
    parts = {part["id"]: part for part in restored["parts"]}
    return all(parts.get(part["id"]) == part for part in here["parts"])


def _lasting(info: Json) -> dict[str, Any]:
    """Of a prompt OpenCode writes down later which files changed because of it."""
    return {name: value for name, value in info.items() if name != "summary"}


def _shape(messages: Sequence[Json]) -> list[tuple[str, list[str]]]:
    return [(each["info"]["id"], [part["id"] for part in each["parts"]]) for each in messages]
