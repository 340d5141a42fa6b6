"""Permission modes as people name them."""

from clew.control.faults import BadRequest
from clew.kernel import PermissionMode


def check_mode(mode: str) -> str:
    try:
        known: str = PermissionMode(mode).value
    except ValueError as fault:
        raise BadRequest(
            f"There is no mode {mode!r}.", f"Name one of {', '.join(each.value for each in PermissionMode)}."
        ) from fault
    return known
