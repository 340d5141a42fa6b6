"""Files of messages: uploaded, sent with a message, and read."""

import re
from dataclasses import replace

from clew.control.actor import Actor, name_of
from clew.control.faults import BadRequest, NotNow
from clew.control.services import Services
from clew.kernel import ThreadId
from clew.protocol.files import LARGEST_FILE, LARGEST_TOGETHER, MOST_FILES, SentFile, safe_name
from clew.protocol.wakes import Said
from clew.store.engine.database import Transaction
from clew.store.operations import files as store
from clew.store.operations.ids import new_id

MOST_UNSENT = 10 * LARGEST_TOGETHER
"""Bytes that a person may have uploaded and not sent."""

_MEGA = 1_000_000
_KIND = re.compile(r"[a-z0-9][a-z0-9.+-]{0,60}/[a-z0-9][a-z0-9.+-]{0,60}")
_UNKNOWN = "application/octet-stream"


async def upload_file(services: Services, actor: Actor, name: str, kind: str, content: bytes) -> SentFile:
    """Keep a file until it is sent with a message, for a day."""
    if len(content) > LARGEST_FILE:
        raise too_large(name)
    id_, owner, shown = new_id("fl"), name_of(actor), safe_name(name)
    known = kind.partition(";")[0].strip().lower()

    def write(tx: Transaction) -> SentFile:
        kept = store.keep_file(tx, id_, owner, shown, known if _KIND.fullmatch(known) else _UNKNOWN, content)
        if store.unsent_bytes(tx, owner) > MOST_UNSENT:
            words = f"More than {MOST_UNSENT // _MEGA} MB were uploaded and not sent."
            raise NotNow(words, "Send what you uploaded; what is not sent goes after a day.")
        return kept

    return await services.write(write)


async def read_file(services: Services, actor: Actor, file: str) -> tuple[SentFile, bytes]:
    found, content, _ = await services.read(lambda tx: store.read_content(tx, file))
    return found, content


def too_large(name: str) -> BadRequest:
    return BadRequest(
        f"{safe_name(name)} is larger than {LARGEST_FILE // _MEGA} MB.",
        "Put it into a directory of the project, and say where it is.",
    )


def check_files(files: tuple[str, ...]) -> None:
    if len(files) > MOST_FILES:
        raise BadRequest(
            f"{len(files)} files are too many: a message has up to {MOST_FILES}.",
            "Send the others with another message.",
        )


def with_files(tx: Transaction, thread: ThreadId, actor: Actor, said: Said, files: tuple[str, ...]) -> Said:
    """The message with its files. Without a text, their names are its text."""
    if not files:
        return said
    found = store.files_to_send(tx, thread, name_of(actor), files)
    size = sum(each.size for each in found)
    if size > LARGEST_TOGETHER:
        raise BadRequest(
            f"The files have {size / _MEGA:.1f} MB; a message has up to {LARGEST_TOGETHER // _MEGA} MB.",
            "Send some of them with another message.",
        )
    body = said.body if said.body.strip() else ", ".join(each.name for each in found)
    return replace(said, body=body, files=found)
