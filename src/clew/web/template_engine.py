"""The environment of the templates: escaping, filters, and the macros that every template can use."""

from collections.abc import Callable
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from clew.protocol.files import IMAGES
from clew.web.markdown import markdown
from clew.web.words import age, coded, counted, lasted, moment, plain, size, visible


def environment(templates: Path, address: Callable[[str], str], version: str) -> Environment:
    made = Environment(
        loader=FileSystemLoader(templates),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    made.filters.update(
        age=age, coded=coded, counted=counted, lasted=lasted, markdown=markdown, size=size, moment=moment
    )
    made.filters.update(plain=plain, visible=visible)
    made.globals.update(url=address, version=version, shown_images=IMAGES)
    # A global, because a part of a page is rendered without what its template imports.
    made.globals["ui"] = made.get_template("ui.html").module
    return made
