"""The addresses of all pages, as the pages declare them."""

import importlib
import pkgutil
import re
from collections.abc import Mapping
from typing import cast
from urllib.parse import quote

from clew.control.services import Services
from clew.web import pages
from clew.web.site import Site


def routes() -> list[str]:
    """Every path that is a page, with names in braces: /threads/{ref}."""
    # A page asks its services when it is opened, and none is opened here.
    site = Site(cast("Services", None), "", lambda _: 500)
    for module in pkgutil.iter_modules(pages.__path__):
        found = importlib.import_module(f"{pages.__name__}.{module.name}")
        if hasattr(found, "add"):
            found.add(site)
    return sorted({route.path for route in site.routes})


def address(route: str, examples: Mapping[str, str]) -> str:
    """The path with an example for each name; tests/web/scene.py has them."""
    return re.sub(r"\{(\w+)(?::\w+)?\}", lambda found: quote(examples[found[1]]), route)
