"""Forms with files, read as browsers write them."""

import asyncio
from typing import Any

import pytest
from starlette.requests import Request

from clew.control.faults import BadRequest
from clew.web.multipart import Form, FormFile, read_form

KIND = "multipart/form-data; boundary=----WebKitFormBoundaryAbc"
MARK = b"------WebKitFormBoundaryAbc"


def part(head: str, content: bytes) -> bytes:
    return MARK + b"\r\nContent-Disposition: form-data; " + head.encode() + b"\r\n\r\n" + content + b"\r\n"


def read(body: bytes, kind: str = KIND, size: int = 7) -> Form:
    pieces = [body[at : at + size] for at in range(0, len(body), size)] or [b""]

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": pieces.pop(0), "more_body": bool(pieces)}

    scope = {"type": "http", "method": "POST", "path": "/", "headers": [(b"content-type", kind.encode())]}
    return asyncio.run(read_form(Request(scope, receive)))


def test_fields_and_files_are_read_byte_for_byte() -> None:
    content = b"\r\n--\0\xff\r\n------WebKit\r\n\r\n" + bytes(range(256))
    body = part('name="text"', "a\r\nb ü".encode()) + part(
        'name="files"; filename="a %22b%22 ü.bin"\r\nContent-Type: image/png', content
    )
    body += part('name="files"; filename=""\r\nContent-Type: application/octet-stream', b"")
    assert read(body + MARK + b"--\r\n") == Form({"text": "a\nb ü"}, (FormFile('a "b" ü.bin', "image/png", content),))


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b"", KIND),
        (MARK + b"--", "application/x-www-form-urlencoded"),
        (MARK + b"--", "multipart/form-data"),
        (part('name="text"', b"cut off")[:-9], KIND),
        (part('name="text"', b"cut off"), KIND),
        (MARK + b"\r\nno end of the headers\r\n" + MARK + b"--", KIND),
        (MARK + b"\r\nContent-Type: x\r\n\r\nnameless\r\n" + MARK + b"--", KIND),
        (b"before\r\n" + part('name="text"', b"x") + MARK + b"--", KIND),
    ],
)
def test_what_is_no_whole_form_is_refused(body: bytes, kind: str) -> None:
    with pytest.raises(BadRequest):
        read(body, kind)
