"""The extra `clew[push]`: whether it is installed, and what to do where it is not."""

from clew.control.faults import Unavailable

REMEDY = "Install it with `pip install 'clew[push]'`, then restart the server."


class NoPush(Unavailable):
    code = "control:no-push"


def is_installed() -> bool:
    try:
        import cryptography  # noqa: F401, PLC0415 - only where somebody asks for push
    except ImportError:
        return False
    return True


def check_installed() -> None:
    if not is_installed():
        raise NoPush("Notifications while no page is open need the extra `push`, which is not installed.", REMEDY)
