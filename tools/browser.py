"""Find the Chromium that the tests of pages drive, and install it where that is possible.

    python -m tools.browser                  say where it is; install Debian's `chromium` if there is none
    python -m tools.browser --if-possible    the same, but a machine that cannot is told so and it is no failure

$CLEW_CHROMIUM names one; otherwise the first of chromium, chromium-browser and google-chrome on the PATH is taken.
apt-get installs it, and only for root: nothing here asks for a password.
"""

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

VARIABLE = "CLEW_CHROMIUM"
NAMES = ("chromium", "chromium-browser", "google-chrome")
DEADLINE = 900.0
"""Seconds for each of the two calls of apt-get."""
EVERY = 10.0
APT = ("-o", "DPkg::Lock::Timeout=300", "-o", "Acquire::Retries=2", "--yes", "--quiet=2")
REMEDY = f"Install Chromium, as with `apt-get install chromium`, or set {VARIABLE} to one."

Tell = Callable[[str], None]


class NoBrowser(Exception):
    """There is no Chromium here. The text says why and what to do."""


def chromium() -> str | None:
    """The program, or None. Raises `NoBrowser` if $CLEW_CHROMIUM names something that cannot be run."""
    named = os.environ.get(VARIABLE)
    if named:
        found = shutil.which(named)
        if found is None:
            raise NoBrowser(f"{VARIABLE} is {named!r}, which cannot be run: set it to a Chromium, or unset it.")
        return found
    return next((found for name in NAMES if (found := shutil.which(name))), None)


def install(tell: Tell = print) -> str:
    """The program, installed now if there was none."""
    if (there := chromium()) is not None:
        return there
    apt = shutil.which("apt-get")
    if apt is None:
        raise NoBrowser(f"None of {', '.join(NAMES)} is on the PATH, and apt-get is not here. {REMEDY}")
    if os.geteuid() != 0:
        raise NoBrowser(f"None of {', '.join(NAMES)} is on the PATH, and only root can install one. {REMEDY}")
    tell("Installing Debian's chromium with apt-get, about 400 MB, once for this machine")
    _run((apt, *APT, "update"), tell)
    _run((apt, *APT, "install", "--no-install-recommends", "chromium", "fonts-dejavu-core"), tell)
    if (there := chromium()) is None:
        raise NoBrowser(f"apt-get has installed chromium, and it is not on the PATH. {REMEDY}")
    return there


def _run(command: Sequence[str], tell: Tell) -> None:
    """Run apt-get to its end, telling how long it takes; past its deadline nothing of it runs on."""
    began = time.monotonic()
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    with (
        tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as said,
        subprocess.Popen(
            command, env=environment, stdin=subprocess.DEVNULL, stdout=said, stderr=said, start_new_session=True
        ) as program,
    ):
        try:
            while program.poll() is None:
                try:
                    program.wait(EVERY)
                except subprocess.TimeoutExpired:
                    passed = time.monotonic() - began
                    if passed > DEADLINE:
                        raise NoBrowser(f"`{_short(command)}` was not done after {DEADLINE:.0f} s. {REMEDY}") from None
                    tell(f"  {_short(command)}: {passed:.0f} s")
        finally:
            if program.poll() is None:
                os.killpg(program.pid, signal.SIGKILL)
        said.seek(0)
        text = said.read()
    if program.returncode:
        errors = [line for line in text.splitlines() if line.startswith("E: ")]
        raise NoBrowser(f"`{_short(command)}` failed: {' / '.join(errors[:3]) or text.strip()[-300:]} {REMEDY}")


def _short(command: Sequence[str]) -> str:
    return " ".join([Path(command[0]).name, *(word for word in command[1:] if word in ("update", "install"))])


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.browser", description="Find or install Chromium.")
    parser.add_argument("--if-possible", action="store_true", help="end well where there is none")
    asked = parser.parse_args(arguments)
    try:
        print(f"Browser: {install(lambda line: print(line, flush=True))}")
    except NoBrowser as fault:
        print(f"THE PAGES WILL NOT BE TESTED IN A BROWSER. {fault}", file=sys.stderr)
        print("Every test that opens a page in one will be skipped.", file=sys.stderr)
        return 0 if asked.if_possible else 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
