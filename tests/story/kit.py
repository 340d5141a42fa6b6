"""A person's whole set-up: `clew up` in a process of its own, a git repository, a real agent on the loopback model."""

import json
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tests.providers.agents import installed
from tests.providers.rig import Rig, rigs
from tests.story.postgres import new_database

PATIENCE = 120.0
OVER = frozenset({"idle", "held"})


class House:
    """One data directory and the server on it, which may be killed and started again."""

    def __init__(self, root: Path, *options: str, port: int = 0, environment: Mapping[str, str] | None = None) -> None:
        self.root = root
        self.data = root / "data"
        self._options = ("--port", str(port), *new_database(), *options)
        self._environment = environment
        self._process: subprocess.Popen[bytes] | None = None

    def up(self) -> None:
        with (self.root / "up.log").open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "clew", "up", "--data", str(self.data), *self._options],
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.until(self._is_ready, "the server is ready")

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def down(self) -> None:
        """As Ctrl-C does it."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """The server and its daemon alone: what agents they had going is nobody's then."""
        self._end(signal.SIGKILL)
        # The next one writes its own.
        (self.data / "address").unlink(missing_ok=True)

    def _end(self, how: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(PATIENCE)
            self._process = None

    def _is_ready(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, (self.root / "up.log").read_text(encoding="utf-8")
        try:
            address = (self.data / "address").read_text(encoding="utf-8").strip()
            with urllib.request.urlopen(f"{address}/health", timeout=PATIENCE) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    # ---------------------------------------------------------------- what a person asks

    def get(self, path: str) -> Any:
        return self._call("GET", path, None)

    def post(self, path: str, body: object = None) -> Any:
        return self._call("POST", path, body or {})

    def change(self, path: str, body: object) -> Any:
        return self._call("PATCH", path, body)

    def _call(self, method: str, path: str, body: object) -> Any:
        address = (self.data / "address").read_text(encoding="utf-8").strip()
        token = (self.data / "token").read_text(encoding="utf-8").strip()
        request = urllib.request.Request(
            f"{address}/api/v1{path}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {token}", "Content-Type": "application/json"},
        )
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as refusal:
            # Otherwise a test that fails here shows the status and not the reason.
            with refusal:
                refusal.add_note(f"{method} {path}: {refusal.read().decode()}")
            raise

    # ---------------------------------------------------------------- what a person waits for

    def until(self, is_so: Callable[[], Any], what: str) -> Any:
        deadline = time.monotonic() + PATIENCE
        while not (found := is_so()):
            assert time.monotonic() < deadline, f"{what}: not within {PATIENCE:g} s"
            time.sleep(0.05)
        return found

    def quiet(self, ref: str) -> Any:
        """The thread's page once nothing goes on in it. Whatever the agent asks for, this person allows."""

        def over() -> Any:
            page = self.allow(ref)
            return page if page["thread"]["status"] in OVER else None

        return self.until(over, f"{ref} is quiet")

    def allow(self, ref: str) -> Any:
        page = self.get(f"/threads/{ref}")
        for asked in page["approvals"]:
            if asked["state"] == "pending":
                self.post(f"/approvals/{asked['id']}", {"allow": True})
        return page

    def say(self, ref: str, text: str) -> Any:
        self.post(f"/threads/{ref}/words", {"text": text})
        return self.quiet(ref)

    def events(self, ref: str, kind: str) -> list[Any]:
        """Of the newest run of a thread."""
        runs = self.get(f"/threads/{ref}")["runs"]
        events = self.get(f"/runs/{runs[0]['id']}/events") if runs else []
        return [event["body"] for event in events if event["kind"] == kind]


@contextmanager
def house(root: Path) -> Iterator[House]:
    made = House(root)
    made.up()
    try:
        yield made
    finally:
        with suppress(subprocess.TimeoutExpired):
            made.down()


def rig_of(name: str, root: Path) -> Rig:
    (made,) = (rig for rig in rigs() if rig.name == name)
    return made(root, installed())


def repository(path: Path) -> Path:
    path.mkdir()
    (path / "README").write_text("A maze.\n", encoding="utf-8")
    for arguments in (["init", "-q", "-b", "main"], ["add", "."], ["commit", "-q", "-m", "A maze"]):
        named = ["-c", "user.name=a person", "-c", "user.email=person@example.org"]
        subprocess.run(["git", "-C", path, *named, *arguments], check=True, capture_output=True)
    return path


def hire(house: House, rig: Rig, mode: str, name: str = "ada") -> None:
    settings = rig.settings("a")
    asked = {
        "name": name,
        "provider": rig.name,
        "program": list(settings.program),
        "home": dict(settings.home),
        "environment": dict(settings.environment),
        "options": dict(settings.options),
        "mode": mode,
    }
    house.post("/agents", asked)


def programs(home: House, rig: Rig) -> list[int]:
    """The agent's programs that the server has started; not what those have."""
    return [pid for pid in rig.processes("a") if _parent(pid) == home.pid]


def _parent(pid: int) -> int | None:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[1])
    except OSError:
        return None
