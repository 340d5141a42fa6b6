"""The person's browser: whether there is one, and a page shown in it."""

import os
import shutil
import subprocess
import sys
from urllib.parse import urlsplit

from clew.cli.input import BadText

_OPENERS = ("xdg-open", "wslview")


def public_address(text: str) -> str:
    """The address under which a proxy serves Clew, checked; without a slash at its end."""
    if not text:
        return ""
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.netloc or parts.query or parts.fragment:
        raise BadText(f"{text!r} is not the address of a site.", "Write it like https://box.example/clew.")
    return text.rstrip("/")


def has_browser() -> bool:
    """On Linux a browser needs a display, and over SSH it would open on the wrong one."""
    return _opener() is not None and "SSH_CONNECTION" not in os.environ


def show_page(link: str) -> bool:
    """Whether the browser was told. It is not waited for."""
    opener = _opener()
    if opener is None:
        return False
    quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    try:
        subprocess.Popen([opener, link], start_new_session=True, **quiet)  # type: ignore[call-overload]
    except OSError:
        return False
    return True


def _opener() -> str | None:
    if sys.platform == "darwin":
        return shutil.which("open")
    if not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY") or os.environ.get("WSL_DISTRO_NAME")):
        return None
    return next((found for name in _OPENERS if (found := shutil.which(name))), None)
