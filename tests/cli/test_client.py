"""How a command finds the running server, and what it says when that goes wrong."""

import http.server
import socket
import threading
from dataclasses import asdict
from pathlib import Path

import pytest

from clew.cli.client import Server
from tests.cli import samples
from tests.cli.kit import Said, here
from tests.cli.stub import BREAK, Problem, Stub

Cap = pytest.CaptureFixture[str]


def failed(said: Said, code: str, status: int = 1) -> str:
    assert (said.status, said.out) == (status, ""), said
    assert said.err.startswith("clew: ")
    assert said.err.endswith(f" [{code}]\n")
    assert said.err.count("\n") == 1
    return said.err


def test_without_a_server_it_says_how_to_start_one(tmp_path: Path, capfd: Cap) -> None:
    told = "clew: Clew is not running. Start it with `clew up`. [cli:not-running]\n"
    assert failed(here(capfd, "agent", "list", "--data", tmp_path), "cli:not-running") == told
    file = tmp_path / "file"
    file.touch()
    for wrong in (tmp_path / "none", file):
        said = failed(here(capfd, "agent", "list", "--data", wrong), "cli:not-running")
        assert f"there is no data directory {wrong}. Correct --data or CLEW_DATA" in said


def test_a_server_that_was_killed_is_not_running_either(stub: Stub, capfd: Cap) -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        (stub.data / "address").write_text(f"http://127.0.0.1:{nobody.getsockname()[1]}\n")
        failed(here(capfd, "runs"), "cli:not-running")


@pytest.mark.parametrize("held", [b"", b"nonsense", b"http://", b"http://host:99999", b"\xff\xfe"])
def test_an_address_that_is_none_is_told(stub: Stub, capfd: Cap, held: bytes) -> None:
    (stub.data / "address").write_bytes(held)
    assert "does not contain an address" in failed(here(capfd, "runs"), "cli:unreadable")


def test_a_token_that_others_can_read_is_not_used(stub: Stub, capfd: Cap) -> None:
    (stub.data / "token").chmod(0o644)
    assert "is readable by other users" in failed(here(capfd, "runs"), "server:token")
    assert stub.asked == []


def test_what_the_server_says_is_told_in_its_words(stub: Stub, capfd: Cap) -> None:
    stub.on("GET", "/agents/bob", Problem(404, "ask:no-such-agent", "There is no agent bob.", "See `clew agent list`."))
    told = failed(here(capfd, "agent", "show", "bob"), "ask:no-such-agent")
    assert told == "clew: There is no agent bob. See `clew agent list`. [ask:no-such-agent]\n"


def test_names_cannot_lead_to_other_places_of_the_api(stub: Stub, capfd: Cap) -> None:
    here(capfd, "agent", "show", "..?x=1#y")
    assert stub.asked[-1].path == "/agents/..%3Fx%3D1%23y"
    for name in ("", ".", "..", "../runs"):
        failed(here(capfd, "agent", "show", name), "cli:bad-text", status=2)


def test_a_look_is_taken_again_when_the_connection_breaks(stub: Stub, capfd: Cap) -> None:
    answers = iter([BREAK, [samples.AGENT]])
    stub.on("GET", "/agents", lambda _: next(answers))
    assert here(capfd, "agent", "list").status == 0


def test_a_message_is_sent_again_under_the_same_key(stub: Stub, capfd: Cap) -> None:
    answers = iter([BREAK, samples.WAKE])
    stub.on("POST", "/wakes", lambda _: next(answers))
    assert here(capfd, "wake", "ada", "hello").status == 0
    first, second = stub.bodies("POST", "/wakes")
    assert first == second


def test_what_cannot_be_asked_twice_is_asked_once(stub: Stub, capfd: Cap) -> None:
    stub.on("POST", "/issues", BREAK)
    told = failed(here(capfd, "issue", "new", "Blank"), "cli:no-answer")
    assert "check before you try again" in told
    assert len(stub.bodies("POST", "/issues")) == 1


def test_a_server_that_does_not_answer_is_not_waited_for_forever(
    stub: Stub, capfd: Cap, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Something accepts the connection, and then says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        (stub.data / "address").write_text(f"http://127.0.0.1:{silent.getsockname()[1]}\n")
        monkeypatch.setattr(Server.get, "__defaults__", (None, 0.2))
        assert "did not answer within 0.2 seconds" in failed(here(capfd, "runs"), "cli:no-answer")


@pytest.mark.parametrize("said", [b"<html>", b'{"name": "ada"}', b"[1]", b'[{"name": "ada"}]', b"\xff"])
def test_an_answer_that_is_not_understood_is_told(stub: Stub, capfd: Cap, said: bytes) -> None:
    stub.on("GET", "/agents", said)
    assert "same version" in failed(here(capfd, "agent", "list"), "cli:not-understood")


def test_another_program_at_the_address_is_not_taken_for_clew(stub: Stub, capfd: Cap) -> None:
    class Other(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_error(404)

        def log_message(self, *_: object) -> None:
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Other) as other:
        thread = threading.Thread(target=other.handle_request)
        thread.start()
        (stub.data / "address").write_text(f"http://127.0.0.1:{other.server_port}\n")
        assert "Another program answers at Clew's address (status 404)" in failed(
            here(capfd, "runs"), "cli:not-understood"
        )
        thread.join()


def test_what_a_newer_server_adds_is_left_out(stub: Stub, capfd: Cap) -> None:
    stub.on("GET", "/agents", [{**asdict(samples.AGENT), "colour": "red"}])
    assert here(capfd, "agent", "list").status == 0


def test_a_proxy_of_the_environment_is_not_asked(stub: Stub, capfd: Cap, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    stub.on("GET", "/runs", [])
    assert here(capfd, "runs").status == 0


def test_what_is_wrong_with_a_field_is_said_once(stub: Stub, capfd: Cap) -> None:
    wrong = [{"field": "query.thread", "words": "String should have at most 200 characters"}]
    stub.on("GET", "/runs", Problem(422, "ask:invalid", f"thread: {wrong[0]['words']}.", errors=wrong))
    said = here(capfd, "runs", "--thread", "x" * 201)
    assert said.err == f"clew: thread: {wrong[0]['words']}. Do something else. [ask:invalid]\n"
