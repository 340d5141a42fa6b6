"""The routes of files: uploaded before they are sent with a message, and downloaded."""

from typing import Annotated, Any
from urllib.parse import quote

from fastapi import Query, Request
from fastapi.responses import Response

from clew.control.files import read_file, upload_file
from clew.control.services import Services
from clew.protocol.files import IMAGES, SentFile
from clew.server.router import By, Name, Routes

_BYTES = "application/octet-stream"
_BINARY: dict[str, Any] = {_BYTES: {"schema": {"type": "string", "format": "binary"}}}

FileName = Annotated[str, Query(min_length=1, max_length=500)]


def add_file_routes(routes: Routes, services: Services) -> None:
    routes = routes.below("/files", "files")

    @routes.post("", status_code=201, openapi_extra={"requestBody": {"required": True, "content": _BINARY}})
    async def upload(by: By, request: Request, name: FileName) -> SentFile:
        """Upload a file of up to 10 MB: the body has its bytes, and Content-Type says what it is. Then send its id with
        a message, as one of `files`. What is not sent within a day is removed."""
        content = b"".join([part async for part in request.stream()])
        return await upload_file(services, by, name, request.headers.get("content-type", ""), content)

    @routes.get("/{file}", response_class=Response, responses={200: {"content": _BINARY, "description": "Its bytes."}})
    async def download(by: By, file: Name) -> Response:
        """The bytes of a file. Browsers download it and show nothing of it, except images within a page."""
        found, content = await read_file(services, by, file)
        headers = {
            "content-disposition": f"attachment; filename*=UTF-8''{quote(found.name, safe='')}",
            "content-security-policy": "default-src 'none'; frame-ancestors 'none'; sandbox",
            "x-content-type-options": "nosniff",
            "cache-control": "private, max-age=31536000, immutable",
        }
        return Response(content, headers=headers, media_type=found.kind if found.kind in IMAGES else _BYTES)
