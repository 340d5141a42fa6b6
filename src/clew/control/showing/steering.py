"""What an agent was told within its turn, as it is shown."""

import orjson

from clew.protocol.views import SteerView
from clew.store.engine.statement import Row


def show_steer(row: Row) -> SteerView:
    """A line of the log that cannot be read says nothing."""
    try:
        body = orjson.loads(row["body"])
    except ValueError:
        body = {}
    said = body if isinstance(body, dict) else {}
    return SteerView(
        tuple(map(str, said.get("wakes") or ())), str(said.get("text") or ""), said.get("taken") is True, row["at"]
    )
