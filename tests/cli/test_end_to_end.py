"""The whole of it: `clew up` in a process of its own, a person's commands, and the guide agent.

The commands of one conversation are processes too; the others run in this one, which is faster.
"""

import json
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli.kit import PROGRAM, Said, clew, environment, within
from tests.cli.terminal import PATIENCE, terminal

pytestmark = pytest.mark.xdist_group("end-to-end")


@contextmanager
def up(data: Path) -> Iterator["subprocess.Popen[bytes]"]:
    data.mkdir(exist_ok=True)
    with (data / "up.log").open("ab") as log:
        process = subprocess.Popen(
            [*PROGRAM, "up", "--data", str(data), "--port", "0", "--grace", "0"],
            env=environment(),
            stdout=log,
            stderr=log,
        )
    try:
        limit = time.monotonic() + PATIENCE
        # The first agent is made when the server answers already.
        while "guide" not in asked(data, "agent", "list").out:
            assert process.poll() is None, (data / "up.log").read_text()
            assert time.monotonic() < limit, (data / "up.log").read_text()
            time.sleep(0.1)
        yield process
    finally:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(PATIENCE)
        finally:
            process.kill()
            process.wait()


def asked(data: Path, *words: object) -> Said:
    return within(*words, CLEW_DATA=str(data))


def done(data: Path, *words: object) -> str:
    said = asked(data, *words)
    assert said.status == 0, said
    return said.out


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    place = tmp_path_factory.mktemp("clew") / "data"
    with up(place):
        done(
            place,
            "agent",
            "add",
            "ada",
            "--provider",
            "guide",
            "--mode",
            "full",
            "--home",
            f"GUIDE_HOME={place}/ada",
            "--create-home",
        )
        done(
            place,
            "agent",
            "add",
            "eve",
            "--provider",
            "guide",
            "--mode",
            "ask",
            "--home",
            f"GUIDE_HOME={place}/eve",
            "--create-home",
        )
        yield place


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("repository")
    author = ("-c", "user.name=me", "-c", "user.email=me@example.org")
    subprocess.run(["git", "init", "-q", "-b", "main", place], check=True, timeout=60)
    subprocess.run(
        ["git", "-C", place, *author, "commit", "-q", "--allow-empty", "-m", "Begin"], check=True, timeout=60
    )
    return place


def latest(data: Path, thread: str) -> str:
    return str(json.loads(done(data, "runs", "--thread", thread, "--limit", "1", "--json"))[0]["id"])


@pytest.mark.case("C02", "C32")
def test_a_chat_goes_on_in_the_same_conversation_and_says_why(data: Path) -> None:
    assert "prompt 1 of our conversation" in clew("chat", "ada", "--once", "hello", CLEW_DATA=str(data)).out
    said = clew("chat", "ada", "--continue", "--once", "and again", CLEW_DATA=str(data))
    assert "prompt 2 of our conversation" in said.out
    assert "· Continuing (run-" in said.err
    ref = json.loads(done(data, "threads", "--kind", "chat", "--agent", "ada", "--json"))[0]["ref"]
    why = clew("why", latest(data, ref), CLEW_DATA=str(data)).out
    assert why.startswith("resume: Continuing the same conversation (session 1). [session:fits]\n")
    assert "can be resumed" in why
    confirmed = why[why.index("Confirmed by the agent") :]
    assert re.search(r"native_id +guide_\w+", confirmed)
    assert "says: I am the guide" in done(data, "logs", latest(data, ref))


@pytest.mark.case("C28")
def test_after_a_restart_of_everything_the_next_message_continues_the_same_session(tmp_path: Path) -> None:
    place = tmp_path / "data"
    with up(place):
        done(place, "chat", "guide", "--once", "remember me")
    stopped = asked(place, "threads")
    assert stopped.err == "clew: Clew is not running. Start it with `clew up`. [cli:not-running]\n"
    with up(place):
        said = asked(place, "chat", "--in", "chat-1", "--once", "who am I?")
        assert "prompt 2 of our conversation" in said.out
        assert 'Prompts that I remember: 2, from "remember me"' in said.out
        assert "· Continuing (run-" in said.err


@pytest.mark.case("D12")
def test_an_issue_is_worked_on_in_a_worktree_that_is_listed_and_cleaned(data: Path, repository: Path) -> None:
    done(data, "project", "add", "web", repository)
    new = ("issue", "new", "Look", "--body", "RUN: pwd", "--project", "web", "--assign", "ada")
    said = done(data, *new, "-w")
    where = re.search(r"TOOL SAID: (\S+)", said)
    assert where
    assert Path(where[1]).is_relative_to(data / "workspaces")
    ref = said.removeprefix("Opened ").split(";", 1)[0]
    assert ref.startswith("issue-")
    said = asked(data, "issue", "comment", ref, "WRITE: notes.txt hello\nRUN: pwd", "-w").out
    assert f"TOOL SAID: {where[1]}" in said
    assert where[1] in done(data, "issue", "show", ref)
    (listed,) = json.loads(done(data, "workspaces", "--json"))
    assert (listed["directory"], listed["changes"]) == (where[1], 1)
    done(data, "issue", "close", ref)
    assert done(data, "workspaces", "clean") == f"{where[1]}\n  Kept: uncommitted changes (1 file).\n"
    assert Path(where[1], "notes.txt").read_text().strip() == "hello"
    assert "Removed with its merged branch, because you named it." in done(data, "workspaces", "clean", where[1])
    assert not Path(where[1]).exists()


def test_what_a_program_prints_is_shown_once(data: Path) -> None:
    done(data, "agent", "add", "echo", "--provider", "command", "--mode", "full", "--", "printf", "one\\ntwo\\n")
    assert done(data, "chat", "echo", "--once", "hello") == "one\ntwo\n"
    ref = json.loads(done(data, "threads", "--kind", "chat", "--agent", "echo", "--json"))[0]["ref"]
    assert done(data, "say", ref, "again", "--wait") == "one\ntwo\n"


def test_what_wakes_nobody_is_said_all_the_same(data: Path) -> None:
    ref = json.loads(done(data, "issue", "new", "Nobody's", "--json"))["thread"]["ref"]
    for words in (("say", ref, "one", "--silent"), ("say", ref, "two"), ("issue", "comment", ref, "three")):
        assert "No agent is woken" in done(data, *words)
    entries = json.loads(done(data, "thread", "show", ref, "--json"))["entries"]
    assert [each["text"] for each in entries][-3:] == ["one", "two", "three"]


@pytest.mark.case("A03")
def test_what_an_agent_asks_is_answered_from_another_terminal(data: Path) -> None:
    wake = json.loads(done(data, "wake", "eve", "RUN: echo yes", "--json"))
    approval = until_asked(data, wake["thread"])
    assert approval["command"] == "echo yes"
    assert ": approved." in done(data, "approvals", "allow", approval["id"][:12])
    assert "TOOL SAID: yes" in until_ended(data, wake["thread"])
    again = asked(data, "approvals", "deny", approval["id"])
    assert "approved" in again.out + again.err


@pytest.mark.case("A03")
def test_what_an_agent_asks_is_answered_where_one_talks_with_it(data: Path) -> None:
    with terminal("chat", "eve", CLEW_DATA=str(data)) as screen:
        screen.until("/help lists more.")
        screen.type("RUN: echo yes\r")
        screen.until("$ echo yes")
        screen.until("Allow?")
        screen.type("y\r")
        screen.until("TOOL SAID: yes")
        screen.type("RUN: echo no\r")
        screen.until("$ echo no")
        screen.until("Allow?")
        screen.type("n\r")
        screen.until("Denied: echo no")
        screen.type("/exit\r")
        assert screen.ended() == 0
        assert "TOOL SAID: no\n" not in screen.seen


@pytest.mark.case("L05")
def test_ctrl_c_interrupts_the_turn_and_the_conversation_goes_on(data: Path) -> None:
    with terminal("chat", "ada", CLEW_DATA=str(data)) as screen:
        ref = f"chat-{screen.until(' with ada.').rpartition('chat-')[2]}"
        screen.until("/help lists more.")
        screen.type("SLOW: 300\r")
        until_running(data, ref)
        screen.press("\x03", "The run was cancelled")
        screen.type("SAY: still here\r")
        screen.until("still here\n")
        screen.type("/exit\r")
        assert screen.ended() == 0
    assert json.loads(done(data, "thread", "show", ref, "--json"))["thread"]["status"] == "idle"


def test_a_run_is_followed_across_a_restart_and_stopped_by_hand(tmp_path: Path) -> None:
    place = tmp_path / "data"
    with up(place):
        wake = json.loads(done(place, "wake", "guide", "SLOW: 300", "--json"))
        until_running(place, wake["thread"])
        run = latest(place, wake["thread"])
        follow = subprocess.Popen(
            [*PROGRAM, "logs", run, "-f"], env=environment(CLEW_DATA=str(place)), stdout=subprocess.PIPE
        )
        assert follow.stdout is not None
        assert follow.stdout.readline()
    assert "1 run still live. Interrupting it; what can be continued continues" in (place / "up.log").read_text()
    try:
        with up(place):
            limit = time.monotonic() + PATIENCE
            while latest_state(place, wake["thread"]) not in ("succeeded", "failed", "cancelled", "lost"):
                assert time.monotonic() < limit
                asked(place, "cancel", latest(place, wake["thread"]))
                time.sleep(0.2)
            rest = follow.stdout.read().decode()
            assert follow.wait(PATIENCE) == 0
            assert "The run" in rest.splitlines()[-1]
    finally:
        follow.kill()
        follow.stdout.close()
        follow.wait()


def test_bad_input_is_told_with_what_to_do(data: Path, tmp_path: Path) -> None:
    for words, code in (
        (("agent", "show", "bob"), "store:no-such-agent"),
        (("issue", "new", "x", "--assign", "bob"), "store:no-such-agent"),
        (("issue", "new", "x", "--project", "nothing"), "store:no-such-project"),
        (("project", "add", "x", tmp_path / "none"), "source:missing"),
        (("project", "add", "x", tmp_path), "source:not-a-repository"),
        (("say", "chat-999", "hello"), "store:no-such-thread"),
        (("why", "nothing"), "store:no-such-run"),
        (("cancel", "nothing"), "store:no-such-run"),
        (("agent", "add", "x", "--provider", "guide", "extra", "words"), "ask:bad-request"),
        (("agent", "add", "x", "--provider", "command", "--", ""), "ask:bad-request"),
    ):
        said = asked(data, *words)
        assert (said.status, said.out) == (1, ""), said
        assert re.fullmatch(rf"clew: .+\. [A-Z].+\. \[{code}\]\n", said.err), said.err


def test_a_program_that_is_none_is_told_as_such(data: Path) -> None:
    said = asked(data, "agent", "add", "x", "--provider", "guide", "extra", "words")
    assert said.err.startswith("clew: The guide takes no program: its program is Clew itself. Leave those words out.")
    for program in (("",), (" ", "-x")):
        said = asked(data, "agent", "add", "x", "--provider", "command", "--mode", "full", "--", *program)
        assert said.err.startswith("clew: The command line names no program: its first word is empty.")


def until_asked(data: Path, thread: str) -> dict[str, str]:
    limit = time.monotonic() + PATIENCE
    while True:
        for approval in json.loads(done(data, "approvals", "--json")):
            if approval["thread"] == thread:
                return dict(approval)
        assert time.monotonic() < limit


def until_running(data: Path, thread: str) -> None:
    limit = time.monotonic() + PATIENCE
    while latest_state(data, thread) != "running":
        assert time.monotonic() < limit


def until_ended(data: Path, thread: str) -> str:
    limit = time.monotonic() + PATIENCE
    while latest_state(data, thread) not in ("succeeded", "failed", "cancelled", "lost"):
        assert time.monotonic() < limit
    return done(data, "thread", "show", thread)


def latest_state(data: Path, thread: str) -> str:
    runs = json.loads(done(data, "runs", "--thread", thread, "--limit", "1", "--json"))
    return str(runs[0]["state"]) if runs else ""
