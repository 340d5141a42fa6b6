"""Forms with files, as browsers send them without JavaScript (multipart/form-data)."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from starlette.requests import Request

from clew.control.faults import BadRequest

_BOUNDARY = re.compile(r'multipart/form-data;.*boundary="?([^";]{1,70})"?', re.IGNORECASE)
_NAMED = re.compile(
    rb'^content-disposition: form-data; name="([^"]*)"(?:; filename="([^"]*)")?', re.IGNORECASE | re.MULTILINE
)
_KIND = re.compile(rb"(?im)^content-type: *([^\r\n]*)")
_MOST_PARTS = 100


@dataclass(frozen=True, slots=True)
class FormFile:
    name: str
    kind: str
    content: bytes


@dataclass(frozen=True, slots=True)
class Form:
    """The text fields, the last of each name; and the files that were chosen."""

    fields: dict[str, str]
    files: tuple[FormFile, ...]


async def read_form(request: Request) -> Form:
    """The server limits the size of the body."""
    boundary = _BOUNDARY.match(request.headers.get("content-type", ""))
    if boundary is None:
        raise BadRequest("This is not a form with files.", "Send it from the page itself.")
    body = b"".join([part async for part in request.stream()])
    fields, files = dict[str, str](), list[FormFile]()
    for head, content in _parts(body, b"--" + boundary[1].encode("latin-1")):
        named = _NAMED.search(head)
        if named is None:
            raise BadRequest("A part of the form has no name.", "Send it from the page itself.")
        name, chosen = (None if each is None else _unescaped(each) for each in named.groups())
        if chosen:
            kind = _KIND.search(head)
            files.append(FormFile(chosen, "" if kind is None else kind[1].decode("latin-1").strip(), content))
        elif chosen is None and name is not None:
            # A browser ends the lines of a text with CRLF.
            fields[name] = content.decode("utf-8", "replace").replace("\r\n", "\n")
    return Form(fields, tuple(files))


def _parts(body: bytes, mark: bytes) -> Iterator[tuple[bytes, bytes]]:
    """The headers and the content of each part."""
    first, *parts = (b"\r\n" + body).split(b"\r\n" + mark, _MOST_PARTS)
    if first or not parts or not parts[-1].startswith(b"--"):
        raise BadRequest("The form did not arrive whole.", "Send it again.")
    for part in parts[:-1]:
        head, found, content = part.removeprefix(b"\r\n").partition(b"\r\n\r\n")
        if not found:
            raise BadRequest("A part of the form did not arrive whole.", "Send it again.")
        yield head, content


def _unescaped(name: bytes) -> str:
    """Browsers write a quote and the ends of lines as %22, %0D and %0A, and nothing else."""
    text = name.decode("utf-8", "replace")
    return text.replace("%22", '"').replace("%0D", "\r").replace("%0A", "\n")
