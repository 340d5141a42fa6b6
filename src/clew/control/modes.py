"""Permission modes as people name them."""

from clew.control.faults import BadRequest
from clew.kernel import Capabilities, PermissionMode, choose_mode


def check_mode(mode: str) -> str:
    try:
        known: str = PermissionMode(mode).value
    except ValueError as fault:
        raise BadRequest(
            f"There is no mode {mode!r}.", f"Name one of {', '.join(each.value for each in PermissionMode)}."
        ) from fault
    return known


def must_express(mode: str, provider: str, capabilities: Capabilities) -> None:
    """An agent whose mode its program cannot be given would be held with every wake; a wider one is for its owner."""
    if choose_mode(PermissionMode(mode), (), capabilities.modes).mode is None:
        known = ", ".join(each.value for each in PermissionMode if each in capabilities.modes) or "none"
        raise BadRequest(
            f"{provider} cannot keep a program to the mode {mode}, nor to a stricter one; it knows {known}.",
            f"Choose a mode that it knows, such as --mode {known.rpartition(' ')[2]}, if that is what you want.",
        )
