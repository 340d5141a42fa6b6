"""The taps themselves: what passes is told of, what is held does not pass, and a trouble comes once."""

import asyncio
import http.client
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.story.boundary.matrix import Trouble
from tests.story.boundary.tapping import Taps

TOKEN = "word-00000000aa"
# Says where it listens, and answers each call with what it was told.
SERVER = """
import http.server, sys
class Answers(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        open(sys.argv[1], "ab").write(body)
        self.send_response(200); self.send_header("content-length", str(len(body))); self.end_headers()
        self.wfile.write(body)
    def do_GET(self):
        self.send_response(204); self.end_headers()
    def log_message(self, *_): pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answers)
print(f"server listening on http://127.0.0.1:{server.server_port}", flush=True)
server.serve_forever()
"""


@pytest.fixture
def piped(tmp_path: Path) -> Iterator[Taps]:
    made = Taps(tmp_path, over_http=False)
    yield made
    made.close()


@pytest.fixture
def wired(tmp_path: Path) -> Iterator[tuple[Taps, str]]:
    taps = Taps(tmp_path, over_http=True)
    program = taps.before((sys.executable, "-c", SERVER, str(tmp_path / "heard"), "serve"))
    tap = subprocess.Popen(program, stdout=subprocess.PIPE, env=taps.environment)
    assert tap.stdout is not None
    yield taps, tap.stdout.readline().decode().split(" ")[-1].strip()
    tap.terminate()
    tap.wait(10)
    tap.stdout.close()
    taps.close()


def ask(url: str, path: str, body: str | None = None) -> int:
    request = urllib.request.Request(url + path, None if body is None else body.encode())
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as fault:
        fault.close()
        return fault.code


def test_a_line_that_is_held_and_dropped_never_passes_and_the_next_one_does(piped: Taps) -> None:
    program = piped.before((sys.executable, "-c", "import sys; print(sys.stdin.read(), end='')"))
    tap = subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=piped.environment, text=True)
    piped.hold(TOKEN)
    assert tap.stdin is not None
    tap.stdin.write(f"one {TOKEN}\n")
    tap.stdin.flush()
    began = time.monotonic()
    assert abs((piped.wait(TOKEN, 10) or 0.0) - began) < 5
    piped.drop(TOKEN)
    out, _ = tap.communicate(f"two {TOKEN}\nthree\n", timeout=20)
    assert (out, tap.returncode) == (f"two {TOKEN}\nthree\n", 0)


def test_the_tap_ends_when_its_agent_is_killed(piped: Taps) -> None:
    program = piped.before((sys.executable, "-c", "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"))
    with subprocess.Popen(program, stdin=subprocess.PIPE, env=piped.environment) as tap:
        assert tap.wait(10) != 0


@pytest.mark.parametrize(
    ("trouble", "status", "arrives"),
    [
        (Trouble.FAILS, 500, False),
        (Trouble.FAILS_AFTER, 500, True),
        (Trouble.HTML, 404, False),
        (Trouble.CUT, None, False),
        (Trouble.CUT_AFTER, None, True),
        (Trouble.SEVER, None, True),
    ],
)
def test_a_trouble_comes_once(
    wired: tuple[Taps, str], tmp_path: Path, trouble: Trouble, status: int | None, arrives: bool
) -> None:
    taps, url = wired
    taps.disturb(TOKEN, trouble)
    if status is None:
        with pytest.raises((ConnectionError, http.client.RemoteDisconnected)):
            ask(url, "/session/ses_1/prompt_async", TOKEN)
    else:
        assert ask(url, "/session/ses_1/prompt_async", TOKEN) == status
    assert (tmp_path / "heard").exists() == arrives
    assert taps.wait(TOKEN, 10) is not None
    assert ask(url, "/session/ses_1/prompt_async", TOKEN) == 200


def test_a_look_at_a_session_is_disturbed_by_its_name(wired: tuple[Taps, str]) -> None:
    taps, url = wired
    taps.disturb("ses_1", Trouble.LOOK_FAILS)
    assert [ask(url, "/session/ses_2"), ask(url, "/session/ses_1"), ask(url, "/session/ses_1")] == [204, 500, 204]


def test_what_is_held_and_dropped_is_never_answered(wired: tuple[Taps, str], tmp_path: Path) -> None:
    taps, url = wired
    taps.hold(TOKEN)

    def drop() -> None:
        assert taps.wait(TOKEN, 10)
        taps.drop(TOKEN)

    async def both() -> None:
        asking = asyncio.to_thread(ask, url, "/session/ses_1/prompt_async", TOKEN)
        await asyncio.gather(asking, asyncio.to_thread(drop))

    with pytest.raises(http.client.RemoteDisconnected):
        asyncio.run(both())
    assert not (tmp_path / "heard").exists()
