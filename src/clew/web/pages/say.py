"""A message with files, sent by the form of a thread in a browser without JavaScript. With it, the API is called."""

import re
from typing import cast
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from clew.control.files import check_files, upload_file
from clew.control.threads import show_thread
from clew.control.wakes import say
from clew.protocol.requests import Overlapping, Words
from clew.web.multipart import read_form
from clew.web.site import Site, actor_of

_NOTE = re.compile(r"/note\s+")


def add(site: Site) -> None:
    @site.action("/threads/{ref}/say")
    async def send(request: Request) -> Response:
        """The form has a key of its own: loaded and sent again, it is one message."""
        actor, ref, form = actor_of(request), request.path_params["ref"], await read_form(request)
        check_files(tuple(each.name for each in form.files))
        kept = [await upload_file(site.services, actor, each.name, each.kind, each.content) for each in form.files]
        text, files = form.fields.get("text", ""), tuple(each.id for each in kept)
        note = _NOTE.match(text)
        if note is not None:
            words = Words(text[note.end() :], wakes=False, files=files)
        else:
            agent = form.fields.get("agent") or None
            thread = (await show_thread(site.services, actor, ref, limit=1)).thread
            words = Words(
                text,
                agent=agent,
                # A key names a wake, and where nobody is assigned there is none.
                key=(form.fields.get("key") or None) if agent or thread.assignee else None,
                fresh="fresh" in form.fields,
                overlap=cast("Overlapping | None", form.fields.get("overlap") or None),
                files=files,
            )
        spoken = await say(site.services, actor, ref, words)
        return RedirectResponse(site.address(f"/threads/{quote(ref, safe='')}#e-{spoken.entry}"), 303)
