"""Ids of sessions: one that cannot be the provider's own reaches no program."""

import re

from clew.kernel import Cursor
from clew.programs.faults import Refused

MALFORMED = "malformed-id"
"""By this a probe says it: such an id leads nowhere, now or later."""


class MalformedId(Refused):
    code = "program:malformed-id"


def check_id(cursor: Cursor, version: int, shape: str, whose: str) -> None:
    if cursor.version != version:
        raise Refused(f"Cursors of {whose} have version {version}, not {cursor.version}.", "Use a newer Clew.")
    if re.fullmatch(shape, cursor.native_id) is None:
        raise MalformedId(f"{cursor.native_id[:80]!r} is no session id of {whose}.", "Start a new session.")
