"""OpenCode's own import: the only way to put a session into its store, or to bind it to another directory."""

import asyncio
from pathlib import Path

import orjson

from clew.programs.faults import Refused, TooSlow
from clew.providers.opencode.api import Api
from clew.providers.opencode.home import directory_at
from clew.providers.opencode.http import Json
from clew.providers.opencode.launching import Launch


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
