"""Files of the command line that are sent with a message: all are read before the first is uploaded."""

from collections.abc import Sequence
from pathlib import Path

from clew.cli.answers import read
from clew.cli.client import Server
from clew.ports.fault import Fault
from clew.protocol.files import LARGEST_FILE, LARGEST_TOGETHER, MOST_FILES, SentFile

_MEGA = 1_000_000


class CannotSendFile(Fault):
    code = "cli:cannot-send-file"


def upload_all(server: Server, files: Sequence[Path]) -> list[str]:
    """The ids of the files. Where one cannot be read or is too large, none is uploaded."""
    if len(files) > MOST_FILES:
        raise CannotSendFile(
            f"{len(files)} files were given; a message has up to {MOST_FILES}.", "Send the others with another one."
        )
    contents = [(file.name, _content(file)) for file in files]
    size = sum(len(content) for _, content in contents)
    if size > LARGEST_TOGETHER:
        raise CannotSendFile(
            f"The files have {size / _MEGA:.1f} MB; a message has up to {LARGEST_TOGETHER // _MEGA} MB.",
            "Send some of them with another message.",
        )
    return [read(SentFile, server.upload(name, content)).id for name, content in contents]


def _content(file: Path) -> bytes:
    try:
        with file.open("rb") as opened:
            content = opened.read(LARGEST_FILE + 1)
    except OSError as fault:
        raise CannotSendFile(f"{file} cannot be read: {fault.strerror or fault}.", "Correct its path.") from fault
    if len(content) > LARGEST_FILE:
        raise CannotSendFile(
            f"{file} is larger than {LARGEST_FILE // _MEGA} MB.",
            "Put it into a directory of the project, and say where it is.",
        )
    return content
