"""`clew service`: Clew as a service of systemd, started when you log in."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from cyclopts import App

from clew.cli.input import DEFAULT_DATA, DatabaseAddress, DataDirectory
from clew.cli.output import tell
from clew.ports.fault import Fault

app = App(name="service", help="Have systemd start Clew when you log in.", help_format="markdown")

UNIT = "clew.service"
_DEADLINE = 60


class NoSystemd(Fault):
    code = "cli:no-systemd"

    def __init__(self, why: str) -> None:
        super().__init__(
            f"There is no systemd for your user here ({why}).",
            "Start Clew with `clew up -d`, or have your own service manager run `clew up`.",
        )


class ServiceFailed(Fault):
    code = "cli:service-failed"


@app.command
def install(*, data: DataDirectory = DEFAULT_DATA, database: DatabaseAddress = None) -> None:
    """Write a systemd user unit that runs `clew up`, and start it now and at every login.

    The unit gets today's PATH, so that the agents are found; run this again after it changed. To keep Clew running
    while you are not logged in, run `loginctl enable-linger` once.

    For example:

        clew service install
    """
    _systemctl("show-environment")
    file = unit_file()
    file.parent.mkdir(parents=True, exist_ok=True)
    # Private before it is written: it may name a database with its password.
    file.touch()
    file.chmod(0o600)
    file.write_text(unit(data.absolute(), database), encoding="utf-8")
    _systemctl("daemon-reload")
    _systemctl("enable", UNIT)
    _systemctl("restart", UNIT)
    tell(f"Installed {file} and started it. See `systemctl --user status {UNIT}` and `clew status`.")


@app.command
def remove() -> None:
    """Stop the service and remove its unit. The data directory stays.

    For example:

        clew service remove
    """
    file = unit_file()
    if not file.exists():
        tell(f"There is no service: {file} does not exist.")
        return
    _systemctl("disable", "--now", UNIT)
    file.unlink()
    _systemctl("daemon-reload")
    tell(f"Stopped the service and removed {file}.")


def unit_file() -> Path:
    configured = Path(os.environ.get("XDG_CONFIG_HOME", ""))
    home = configured if configured.is_absolute() else Path("~/.config").expanduser()
    return home / "systemd" / "user" / UNIT


def unit(data: Path, database: str | None) -> str:
    """The database is in the environment: an argument can be seen by every user of the machine."""
    command = (sys.executable, "-m", "clew", "up", "--data", str(data))
    variables = {"PATH": os.environ.get("PATH", os.defpath)} | ({} if database is None else {"CLEW_DATABASE": database})
    environment = "\n".join(f"Environment={_quoted(f'{name}={value}')}" for name, value in variables.items())
    return f"""\
[Unit]
Description=Clew, a control plane for coding agents

[Service]
# A dollar sign stands for a variable here, unless it is doubled.
ExecStart={" ".join(_quoted(word).replace("$", "$$") for word in command)}
{environment}
Restart=on-failure
# `clew up` gives live turns time to finish, then interrupts them.
TimeoutStopSec=120

[Install]
WantedBy=default.target
"""


def _quoted(word: str) -> str:
    """As systemd reads it: a percent sign stands for something else unless it is doubled."""
    escaped = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return f'"{escaped}"'


def _systemctl(*words: str) -> None:
    program = shutil.which("systemctl")
    if program is None:
        raise NoSystemd("systemctl is not on the PATH")
    done = subprocess.run([program, "--user", *words], capture_output=True, text=True, timeout=_DEADLINE, check=False)
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines()
        why = said[0].rstrip(".") if said else f"status {done.returncode}"
        if words == ("show-environment",):
            raise NoSystemd(why)
        raise ServiceFailed(f"`systemctl --user {' '.join(words)}` failed: {why}.", "Fix that, then try again.")
