"""Programs that come and go while the server runs: runs wait for them, say so, and go on by themselves."""

from pathlib import Path

from tests.up.kit import Up, until, up


def _program(path: Path) -> None:
    path.write_text("#!/bin/sh\ncat > /dev/null\necho done\n", encoding="utf-8")
    path.chmod(0o755)


def _waits(clew: Up, thread: str) -> str:
    """What the newest run of the thread waits for: its view and its thread say the same."""
    (run,) = clew.ask("GET", f"/runs?thread={thread}&limit=1")
    page = clew.ask("GET", f"/threads/{thread}")
    if run["state"] != "queued" or page["thread"]["words"] != run["words"]:
        return ""
    return f"{run['code']} {run['words']}"


def test_a_program_that_was_missing_at_the_start_is_found_when_it_is_installed(tmp_path: Path) -> None:
    data, program = tmp_path / "data", tmp_path / "worker"
    _program(program)
    with up(data) as clew:
        clew.guide()
        clew.ask("POST", "/agents", {"name": "ada", "provider": "command", "mode": "full", "program": [str(program)]})
        assert clew.stop() == 0
    program.unlink()
    with up(data) as clew:
        chat = clew.ask("POST", "/chats", {"agent": "ada"})["ref"]
        wake = clew.ask("POST", f"/threads/{chat}/words", {"text": "go"})["wake"]
        until(lambda: _waits(clew, chat).startswith("waits:program-gone"), "a word about it")
        assert str(program) in _waits(clew, chat)
        _program(program)
        assert clew.ran(wake)["state"] == "succeeded"


def test_a_program_that_goes_while_the_server_runs_is_waited_for(tmp_path: Path) -> None:
    program = tmp_path / "worker"
    _program(program)
    with up(tmp_path / "data") as clew:
        clew.guide()
        clew.ask("POST", "/agents", {"name": "ada", "provider": "command", "mode": "full", "program": [str(program)]})
        chat = clew.ask("POST", "/chats", {"agent": "ada"})["ref"]
        program.unlink()
        wake = clew.ask("POST", f"/threads/{chat}/words", {"text": "go"})["wake"]
        until(lambda: _waits(clew, chat).startswith("waits:program-gone"), "a word about it")
        _program(program)
        # Who asks the doctor does not have to wait.
        checks = {each["name"]: each["state"] for each in clew.ask("GET", "/doctor")}
        assert checks["agent ada"] == "ok"
        assert clew.ran(wake)["state"] == "succeeded"
