"""Archives: a session with those of its subagents as OpenCode tells them, without what it was allowed to do.

Rows of a session change in place, so an archive always holds all of it.
"""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from clew.kernel import NativeId
from clew.ports.provider import ArchiveFile
from clew.programs.archive import pack, unpack
from clew.programs.faults import BadArchive, Refused
from clew.providers.opencode.api import Api
from clew.providers.opencode.faults import SessionBusy
from clew.providers.opencode.history import turns_in
from clew.providers.opencode.home import cursor_of, id_of
from clew.providers.opencode.http import Json

FORMAT = "opencode-1"
PROVIDER = "opencode"
_MAIN = "session.json"
_CHILDREN = "subagents"
_TODO = "todo.json"

# What a session may do is this home's to say; the rest points to places that only this home has.
_LEFT_OUT = frozenset({"permission", "share", "workspaceID"})


@dataclass(frozen=True, slots=True)
class Copy:
    """A session out of an archive. `documents` are what OpenCode imports, the session itself first."""

    id: str
    documents: tuple[Json, ...]


async def archive(api: Api, id_: str, into: Path, seconds: float) -> ArchiveFile:
    session = await _at_rest(api, id_)
    main = await _document(api, session, seconds)
    files = {_MAIN: orjson.dumps(main)}
    for child in await _descendants(api, id_):
        files[f"{_CHILDREN}/{child['id']}.json"] = orjson.dumps(await _document(api, child, seconds))
    # There is no way to put it back; the tools that wrote it are in the history.
    files[_TODO] = orjson.dumps(await api.todo(id_))
    if (await _at_rest(api, id_))["time"]["updated"] != session["time"]["updated"]:
        raise _in_a_turn(id_)
    facts = {
        "version": str(session.get("version", "")),
        "messages": [each["info"]["id"] for each in main["messages"]],
    }
    digest = await asyncio.to_thread(pack, into, PROVIDER, FORMAT, id_, files, facts)
    return ArchiveFile(into, FORMAT, NativeId(id_), digest, turns_in(main["messages"]))


async def _at_rest(api: Api, id_: str) -> Json:
    session = await api.session(id_)
    if await api.busy(id_, str(session["directory"])):
        raise _in_a_turn(id_)
    return session


def _in_a_turn(id_: str) -> SessionBusy:
    return SessionBusy(f"A turn of session {id_} is going on.", "Archive it when the turn has ended.")


async def _document(api: Api, session: Json, seconds: float) -> dict[str, Any]:
    info = {name: value for name, value in session.items() if name not in _LEFT_OUT}
    return {"info": info, "messages": await api.messages(str(session["id"]), seconds)}


async def _descendants(api: Api, id_: str) -> list[Json]:
    found: list[Json] = []
    for child in await api.children(id_):
        found += [child, *await _descendants(api, str(child["id"]))]
    return found


def read(path: Path) -> Copy:
    """What an archive holds, if all of it belongs together."""
    contents, files = unpack(path, PROVIDER, frozenset({FORMAT}))
    main = _parsed(path, files, _MAIN)
    beneath = [_parsed(path, files, name) for name in sorted(files) if name.startswith(f"{_CHILDREN}/")]
    if _own_id(path, main) != contents.native_id:
        raise _spoiled(path, "it holds another session than it says")
    listed = [each["info"]["id"] for each in main["messages"]]
    if listed != contents.facts.get("messages"):
        raise _spoiled(path, "its messages are not those that it lists")
    known = {contents.native_id}
    documents = [main]
    # A parent comes before its children, whatever their files are called.
    while beneath:
        ready = [each for each in beneath if each["info"].get("parentID") in known]
        if not ready:
            raise _spoiled(path, "it holds a session that belongs to none of its others")
        documents += ready
        known |= {_own_id(path, each) for each in ready}
        beneath = [each for each in beneath if each not in ready]
    return Copy(contents.native_id, tuple(documents))


def _parsed(path: Path, files: Mapping[str, bytes], name: str) -> Json:
    try:
        document = orjson.loads(files[name])
        messages = document["messages"]
        # Once more: what it may do is not taken from any archive, whoever made it.
        info = {name: value for name, value in document["info"].items() if name not in _LEFT_OUT}
        for problem in _strangers(str(info["id"]), messages):
            raise _spoiled(path, f"{name}: {problem}")
        return {"info": info, "messages": messages}
    except (KeyError, TypeError, AttributeError, orjson.JSONDecodeError) as fault:
        raise _spoiled(path, f"{name} is no session ({fault!r})") from fault


def _strangers(id_: str, messages: Sequence[Json]) -> Iterator[str]:
    """What OpenCode would put somewhere else, or leave out without a word."""
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


def _own_id(path: Path, document: Json) -> str:
    try:
        return id_of(cursor_of(str(document["info"]["id"])))
    except Refused as fault:
        raise _spoiled(path, "a session in it has no proper id") from fault


def _spoiled(path: Path, why: str) -> BadArchive:
    return BadArchive(f"{path.name} cannot be restored: {why}.", "Nothing was changed; use another copy.")
