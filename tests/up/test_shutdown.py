"""Ctrl-C while an agent works: its turn finishes or is interrupted, as was chosen, and nothing is lost."""

import signal
from pathlib import Path
from typing import Any

import pytest

from clew.app.shutdown import finish_notice, interrupt_notice
from tests.up.kit import LONG, Up, until, up


def agent_that_waits(clew: Up, go: Path, name: str = "slow") -> None:
    """It says that it has begun, and ends its turn when it may."""
    script = (
        f'echo began >> "{go}.log"; while [ ! -e "{go}" ]; do sleep 0.05; done; echo ended >> "{go}.log"; echo done'
    )
    program = {"provider": "command", "mode": "full", "program": ["/bin/sh", "-c", script]}
    clew.ask("POST", "/agents", {"name": name, **program})


def began(clew: Up, go: Path) -> Any:
    wake = clew.ask("POST", "/wakes", {"agent": "slow", "text": "go"})
    until(lambda: "began" in said(go), "the turn")
    return wake


def said(go: Path) -> list[str]:
    log = Path(f"{go}.log")
    return log.read_text().split() if log.exists() else []


def test_a_turn_may_finish_first(tmp_path: Path) -> None:
    data, go = tmp_path / "data", tmp_path / "go"
    with up(data, "--on-stop", "finish") as clew:
        agent_that_waits(clew, go)
        wake = began(clew, go)
        clew.process.send_signal(signal.SIGINT)
        until(lambda: "Waiting for it to finish" in clew.out, "that it stops")
        # Until then it still answers.
        assert clew.ask("GET", f"/wakes/{wake['id']}")["state"] == "claimed"
        go.touch()
        assert clew.process.wait(LONG) == 0
    with up(data) as clew:
        assert clew.ran(wake)["state"] == "succeeded"
        assert said(go) == ["began", "ended"]
        assert clew.stop() == 0


def test_an_interrupted_turn_goes_on_with_the_next_start(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with up(data, "--grace", "0") as clew:
        clew.guide()
        clew.ask("POST", "/chats", {"agent": "guide"})
        clew.ran(clew.ask("POST", "/threads/chat-1/words", {"text": "SAY: hello"})["wake"])
        wake = clew.ask("POST", "/threads/chat-1/words", {"text": "THINK: begun\nHANG"})["wake"]
        run = until(lambda: clew.ask("GET", "/runs?state=running"), "the turn")[0]
        until(lambda: "begun" in str(clew.ask("GET", f"/runs/{run['id']}/events")), "its beginning")
        assert clew.stop() == 0
        assert "at the next start" in clew.out
    with up(data) as clew:
        again = clew.ran(wake)
        assert again["id"] != run["id"]
        assert (again["state"], again["decision"], again["claim"]) == ("succeeded", "resume", "resumed")
        assert clew.ask("GET", f"/runs/{run['id']}")["state"] == "failed"
        assert clew.stop() == 0


def test_what_cannot_go_on_says_so(tmp_path: Path) -> None:
    """A program without a memory may have done anything by then: it is not begun anew by itself."""
    data, go = tmp_path / "data", tmp_path / "go"
    with up(data, "--grace", "0") as clew:
        agent_that_waits(clew, go)
        wake = began(clew, go)
        assert clew.stop() == 0
    go.touch()
    with up(data) as clew:
        receipt = clew.ask("GET", f"/wakes/{wake['id']}")
        assert receipt["state"] == "cancelled", receipt
        assert receipt["words"]
        assert clew.stop() == 0
    assert said(go) == ["began"]


@pytest.mark.parametrize("choice", ["finish", "interrupt"])
def test_whoever_asks_twice_does_not_wait(tmp_path: Path, choice: str) -> None:
    data, go = tmp_path / "data", tmp_path / "go"
    with up(data, "--on-stop", choice, "--grace", "1000") as clew:
        agent_that_waits(clew, go)
        began(clew, go)
        clew.process.send_signal(signal.SIGINT)
        until(lambda: "Ctrl-C again" in clew.out, "that it stops")
        clew.process.send_signal(signal.SIGINT)
        assert clew.process.wait(LONG) == 0
    assert said(go) == ["began"]


def test_streams_end_with_the_server(tmp_path: Path) -> None:
    with up(tmp_path / "data") as clew:
        clew.guide()
        with clew.http() as http, http.stream("GET", "/live") as answer:
            assert answer.status_code == 200
            pieces = answer.iter_lines()
            assert next(pieces) == "retry: 1000"
            clew.process.send_signal(signal.SIGTERM)
            for _ in pieces:
                pass
        assert clew.process.wait(LONG) == 0


def test_one_run_that_goes_on_at_the_end_is_not_called_they() -> None:
    again = "Press Ctrl-C again to interrupt"
    assert finish_notice(1).message == f"Waiting for it to finish. {again} it now."
    assert finish_notice(2).message == f"Waiting for them to finish. {again} them now."
    assert finish_notice(2, 1).message == f"They have 1 second to finish. {again} them now."
    assert finish_notice(1, 10).message == f"It has 10 seconds to finish. {again} it now."
    assert finish_notice(2, 10).message == f"They have 10 seconds to finish. {again} them now."
    assert [interrupt_notice(live).message.split(";")[0] for live in (1, 2)] == ["Interrupting it", "Interrupting them"]
