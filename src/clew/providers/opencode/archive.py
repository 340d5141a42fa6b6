"""Archives: a session and those of its subagents, as the server returns them, without their permissions.

Messages change in place, so each is a file of its own; a later archive holds only those that changed.
"""

import asyncio
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clew.ports.provider import ArchiveFile
from clew.programs.archive import not_restorable, pack, unpack
from clew.programs.faults import Refused, SessionBusy
from clew.programs.json_lines import dumps, loads
from clew.providers.opencode.api import Api
from clew.providers.opencode.home import CURSORS
from clew.providers.opencode.messages import Json, turns_in

FORMAT = "opencode-2"
PROVIDER = "opencode"
_INFO = "session.json"
_TODO = "todo.json"
_MESSAGES = "messages"

# A home decides itself what a session may do; the others refer to things that only this home has.
_LEFT_OUT = frozenset({"permission", "share", "workspaceID"})


@dataclass(frozen=True, slots=True)
class ArchivedSession:
    """A session from an archive. `documents` are the files that OpenCode imports, the session itself first."""

    id: str
    documents: tuple[Json, ...]


async def write_archive(api: Api, id_: str, into: Path, since: Path | None, seconds: float) -> ArchiveFile:
    session = await _idle_session(api, id_)
    if (parent := session.get("parentID")) is not None:
        raise Refused(f"Session {id_} is a subagent's, and belongs to {parent}.", "Archive that one.")
    documents = [await _document(api, each, seconds) for each in (session, *await _descendants(api, id_))]
    files = {name: data for document in documents for name, data in _files(document)}
    # It is never restored, as OpenCode has no call for it; the tools that wrote it are in the history.
    files[_TODO] = dumps(await api.todo(id_))
    if (await _idle_session(api, id_))["time"]["updated"] != session["time"]["updated"]:
        raise _in_a_turn(id_)
    facts = {"version": str(session.get("version", ""))}
    turns = turns_in(documents[0]["messages"])
    return await asyncio.to_thread(pack, into, PROVIDER, FORMAT, id_, files, facts, since, turns)


async def _idle_session(api: Api, id_: str) -> Json:
    session = await api.session(id_)
    if await api.busy(id_, str(session["directory"])):
        raise _in_a_turn(id_)
    return session


def _in_a_turn(id_: str) -> SessionBusy:
    return SessionBusy(f"A turn of session {id_} is running.", "Archive it when the turn has ended.")


async def _document(api: Api, session: Json, seconds: float) -> dict[str, Any]:
    return {"info": _without_permissions(session), "messages": await api.messages(str(session["id"]), seconds)}


def _without_permissions(info: Json) -> dict[str, Any]:
    return {name: value for name, value in info.items() if name not in _LEFT_OUT}


async def _descendants(api: Api, id_: str) -> list[Json]:
    found: list[Json] = []
    for child in await api.children(id_):
        found += [child, *await _descendants(api, str(child["id"]))]
    return found


def _files(document: Json) -> Iterator[tuple[str, bytes]]:
    """A session is a directory: its description, and its messages in order."""
    own = document["info"]["id"]
    yield f"{own}/{_INFO}", dumps(document["info"])
    for message in document["messages"]:
        yield f"{own}/{_MESSAGES}/{message['info']['id']}.json", dumps(message)


def read_archive(path: Path) -> ArchivedSession:
    """Read an archive. Raises `BadArchive` unless everything in it belongs to one session."""
    contents, files = unpack(path, PROVIDER, frozenset({FORMAT}))
    files.pop(_TODO, None)
    sessions: dict[str, list[str]] = {}
    for name in files:
        sessions.setdefault(name.partition("/")[0], []).append(name)
    if contents.native_id not in sessions:
        raise not_restorable(path, "its manifest names another session")
    main = _parsed(path, files, contents.native_id, sessions.pop(contents.native_id))
    if (parent := main["info"].get("parentID")) is not None:
        # Without its parent it would be a conversation on its own; with it, it cannot be opened.
        raise not_restorable(path, f"its session is a subagent's, and belongs to {parent}")
    beneath = [_parsed(path, files, id_, names) for id_, names in sessions.items()]
    known = {contents.native_id}
    documents = [main]
    # Parents before their children, in whatever order the archive lists them.
    while beneath:
        ready = [each for each in beneath if each["info"].get("parentID") in known]
        if not ready:
            raise not_restorable(path, "it holds a session whose parent is not in it")
        documents += ready
        known |= {each["info"]["id"] for each in ready}
        beneath = [each for each in beneath if each not in ready]
    return ArchivedSession(contents.native_id, tuple(documents))


def _parsed(path: Path, files: Mapping[str, bytes], id_: str, names: Sequence[str]) -> Json:
    """The session with that id, from the files in its directory."""
    try:
        # Again here: no archive, whatever made it, may grant permissions.
        info = _without_permissions(loads(files[f"{id_}/{_INFO}"]))
        messages = [loads(files[name]) for name in names if name != f"{id_}/{_INFO}"]
        document = {"info": info, "messages": messages}
        strange = next(_misplaced(id_, messages), None)
        if strange is None and (info["id"] != id_ or [name for name, _ in _files(document)] != list(names)):
            strange = "the names of its files do not fit their contents"
    except (ValueError, KeyError, TypeError, AttributeError) as fault:
        raise not_restorable(path, f"{id_} is no session ({str(fault) or type(fault).__name__})") from fault
    if strange is not None:
        raise not_restorable(path, f"{id_}: {strange}")
    if re.fullmatch(CURSORS.shape, id_) is None:
        raise not_restorable(path, "a session in it has no proper id")
    return document


def _misplaced(id_: str, messages: Sequence[Json]) -> Iterator[str]:
    """Messages and parts that an import would put elsewhere, or silently leave out."""
    seen: set[str] = set()
    for message in messages:
        own = message["info"]["id"]
        if message["info"]["sessionID"] != id_ or own in seen:
            yield f"message {own} belongs to another session, or is there twice"
        seen.add(own)
        for part in message["parts"]:
            if (part["messageID"], part["sessionID"]) != (own, id_) or part["id"] in seen:
                yield f"part {part['id']} belongs to another message, or is there twice"
            seen.add(part["id"])
