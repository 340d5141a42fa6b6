"""Names that people give: short, and fit for a path, a branch and an address."""

import re

from clew.control.faults import BadName

_SHAPE = re.compile(r"[a-z0-9][a-z0-9_-]{0,39}")


def check_name(name: str, what: str) -> str:
    if _SHAPE.fullmatch(name) is None:
        raise BadName(
            f"{name[:60]!r} cannot be the name of {what}.",
            "Use up to 40 small letters, digits, - and _, beginning with a letter or digit.",
        )
    return name
