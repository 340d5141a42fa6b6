"""Clew in the background: started, shown, stopped; and as a service."""

import json
import os
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.up.kit import LONG, environment, until


def clew(data: Path, *words: str, **settings: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "clew", *words],
        env=environment(CLEW_DATA=str(data), **settings),
        capture_output=True,
        text=True,
        timeout=LONG,
        check=False,
    )


@contextmanager
def ended_whatever_happens(data: Path) -> Iterator[None]:
    try:
        yield
    finally:
        with suppress(OSError, ValueError, KeyError):
            os.kill(json.loads((data / "holder").read_bytes())["pid"], signal.SIGKILL)


def test_a_server_in_the_background_is_started_shown_and_stopped(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with ended_whatever_happens(data):
        before = clew(data)
        assert (before.returncode, before.stderr) == (1, "")
        assert before.stdout == (
            f"Clew is not running ({data}).\nStart it with `clew up -d`; or with `clew up`, in a terminal of its own.\n"
        )
        assert not data.exists(), "looking makes nothing"
        started = clew(data, "up", "-d", "--port", "0")
        assert started.returncode == 0, started
        address = (data / "address").read_text().strip()
        assert started.stdout.startswith(f"Clew is ready at {address} (process ")
        assert "  stop    clew stop\n" in started.stdout
        output = data / "logs" / "up.log"
        assert stat.S_IMODE(output.stat().st_mode) == 0o600, "it has a login link"
        again = clew(data, "up", "-d", "--port", "0")
        assert (again.returncode, again.stdout.partition(" (")[0]) == (0, f"Clew is running already at {address}")
        assert "prompt 1 of our conversation" in clew(data, "chat", "guide", "--once", "hello").stdout
        shown = clew(data, "status")
        assert shown.returncode == 0
        assert shown.stdout.startswith(f"Clew is running at {address} (process ")
        assert "Nothing needs you, and nothing runs.\n\nNext: `clew chat guide` to try it" in shown.stdout
        assert clew(data).stdout == shown.stdout, "`clew` alone says the same"
        found = json.loads(clew(data, "status", "--json").stdout)
        assert (found["running"], found["ready"], found["address"]) == (True, True, address)
        assert found["overview"]["agents"] == ["guide"]
        stopped = clew(data, "stop")
        assert (stopped.returncode, stopped.stdout) == (0, f"Stopped (process {found['pid']}).\n")
        assert clew(data, "status").returncode == 1
        assert clew(data, "stop").stdout == "Clew is not running.\n"


def test_a_live_turn_is_interrupted_at_once_when_asked_and_goes_on_at_the_next_start(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with ended_whatever_happens(data):
        assert clew(data, "up", "--detach", "--port", "0", "--grace", "600").returncode == 0
        clew(data, "chat", "guide", "--once", "hello")
        clew(data, "say", "chat-1", "SLOW: 300")
        until(lambda: "run-2 chat-1 guide running" in clew(data).stdout, "the turn")
        shown = clew(data).stdout
        assert "Running\n  run-2 chat-1 guide running for " in shown
        assert "Next: `clew logs chat-1 -f` follows it." in shown
        stopped = clew(data, "stop", "--now")
        assert "Stopping; 1 run still live.\nStopped (process " in stopped.stdout


def test_a_start_that_fails_says_why_and_leaves_nothing_running(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with ended_whatever_happens(data), socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        said = clew(data, "up", "-d", "--port", str(port))
        assert (said.returncode, said.stdout) == (1, "")
        assert str(port) in said.stderr
        assert f"See {data}/logs/up.log. [cli:cannot-start]\n" in said.stderr
        assert clew(data, "status").returncode == 1


STAND_IN = """#!/bin/sh
echo "$@" >> "$SAID"
exit 0
"""


@pytest.fixture
def systemctl(tmp_path: Path) -> Path:
    """Something that is called as systemctl is, and keeps what it was asked."""
    place = tmp_path / "bin"
    place.mkdir()
    script = place / "systemctl"
    script.write_text(STAND_IN)
    script.chmod(0o700)
    return script


def test_a_service_is_a_unit_of_the_user_that_runs_up(tmp_path: Path, systemctl: Path) -> None:
    said, config = tmp_path / "said", tmp_path / "config"
    path = f"{systemctl.parent}:/usr/bin:/bin"
    settings = {"PATH": path, "SAID": str(said), "XDG_CONFIG_HOME": str(config)}
    data = tmp_path / "a 100% data"
    installed = clew(data, "service", "install", "--database", "postgresql://me:$1@db/clew", **settings)
    file = config / "systemd" / "user" / "clew.service"
    assert (installed.returncode, installed.stderr) == (0, "")
    assert f"Installed {file} and started it." in installed.stdout
    unit = file.read_text()
    quoted = str(data).replace("%", "%%")
    assert f'ExecStart="{sys.executable}" "-m" "clew" "up" "--data" "{quoted}"\n' in unit
    assert f'Environment="PATH={path}"\nEnvironment="CLEW_DATABASE=postgresql://me:$1@db/clew"\n' in unit
    assert stat.S_IMODE(file.stat().st_mode) == 0o600, "it has a password"
    assert said.read_text().splitlines() == [
        "--user show-environment",
        "--user daemon-reload",
        "--user enable clew.service",
        "--user restart clew.service",
    ]
    removed = clew(data, "service", "remove", **settings)
    assert removed.stdout == f"Stopped the service and removed {file}.\n"
    assert not file.exists()
    assert said.read_text().splitlines()[4:] == ["--user disable --now clew.service", "--user daemon-reload"]
    assert clew(data, "service", "remove", **settings).stdout == f"There is no service: {file} does not exist.\n"


def test_without_systemd_one_is_told_what_to_do_instead(tmp_path: Path, systemctl: Path) -> None:
    config = tmp_path / "config"
    for words, script in (
        ("No medium found", "#!/bin/sh\necho 'No medium found' >&2\nexit 1\n"),
        ("not on the PATH", ""),
    ):
        systemctl.write_text(script)
        if not script:
            systemctl.unlink()
        said = clew(
            tmp_path, "service", "install", PATH=str(systemctl.parent), XDG_CONFIG_HOME=str(config), SAID="/dev/null"
        )
        assert (said.returncode, said.stdout) == (1, "")
        assert words in said.stderr
        assert "Start Clew with `clew up -d`, or have your own service manager run `clew up`." in said.stderr
        assert not config.exists()
