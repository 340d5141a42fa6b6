"""What cannot be done is said clearly, and nothing is half done: the server is not even asked."""

import io
import json
import re
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from tests.cli import samples
from tests.cli.kit import PROGRAM, environment, here
from tests.cli.stub import Stub

Cap = pytest.CaptureFixture[str]

ADD = ("agent", "add", "ada", "--provider", "guide")
# Should it start after all, it ends at once.
UP = ("up", "--database", "ftp://nowhere")

BAD: list[tuple[tuple[str, ...], str, str]] = [
    (("say", "chat-1", ""), "cli:bad-text", "The text is empty."),
    (("say", "chat-1", " \n"), "cli:bad-text", "The text is empty."),
    (("say", "chat-1", "x" * 160_001), "ask:bad-request", "160,001 bytes; the limit is 160,000"),
    (("chat", "ada", "--once", "é" * 80_001), "ask:bad-request", "160,002 bytes"),
    (("say", "chat-1", "half \udcff"), "cli:bad-text", "not valid UTF-8"),
    (("say", "", "hello"), "cli:bad-text", "'' is not a name"),
    (("issue", "new", ""), "cli:bad-text", "The title is empty."),
    (("wake", ""), "cli:bad-text", "The name is empty."),
    (("wake", "ada", ""), "cli:bad-text", "The text is empty."),
    ((*ADD, "--every", "soon"), "cli:bad-duration", "'soon' is not a duration."),
    ((*ADD, "--every", "30"), "cli:bad-duration", "Write it like 45s"),
    ((*ADD, "--every", "0m"), "cli:bad-duration", "more than 0 and at most 100 years (got 0m)."),
    ((*ADD, "--every=-5m"), "cli:bad-duration", "'-5m' is not a duration."),
    ((*ADD, "--every", "9" * 400 + "d"), "cli:bad-duration", "at most 100 years"),
    ((*ADD, "--env", "CLEW_TEST_UNSET"), "cli:bad-text", "CLEW_TEST_UNSET is not set in this shell."),
    ((*ADD, "--option", "x"), "cli:bad-text", "--option takes NAME=VALUE"),
    ((*ADD, "--option", "=x"), "cli:bad-text", "--option takes NAME=VALUE"),
    (("issue", "list", "--state", "bogus"), "usage", "Use one of: open, closed, all."),
    (("threads", "--state", ""), "usage", "Use one of: open, closed, all."),
    (("project", "add", "web", ""), "cli:bad-text", "The path is empty. Name a directory."),
    (("replay", "--policy", "/nowhere/policy.json"), "cli:bad-policy", "cannot be read: No such file"),
    (("replay", "--policy", "/"), "cli:bad-policy", "cannot be read: Is a directory"),
    (("chat", "ada", "--once", ""), "cli:bad-text", "The text is empty."),
    (("approvals", "answer", "ap_1", ""), "cli:bad-text", "The text is empty."),
    (("runs", "--limit", "0"), "cli:bad-number", "--limit cannot be 0. Give a number from 1 to 500."),
    (("threads", "--limit", "501"), "cli:bad-number", "from 1 to 500"),
    (("sessions", "--limit", "-3"), "cli:bad-number", "--limit cannot be -3."),
    (("issue", "list", "--limit", "0"), "cli:bad-number", "from 1 to 500"),
    (("issue", "show", "3", "--last", "0"), "cli:bad-number", "from 1 to 500"),
    (("thread", "show", "chat-1", "--last", "501"), "cli:bad-number", "from 1 to 500"),
    ((*UP, "--grace", "-1"), "cli:bad-number", "--grace must be 0 seconds or more (got -1)."),
    ((*UP, "--grace", "nan"), "cli:bad-number", "(got nan)"),
    ((*UP, "--grace", "inf"), "cli:bad-number", "use `--on-stop finish`"),
]


CONFLICTS: list[tuple[tuple[str, ...], str]] = [
    (("issue", "assign", "3"), "Name either an agent or --nobody."),
    (("issue", "assign", "3", "ada", "--nobody"), "Name either an agent or --nobody."),
    ((*ADD, "--every", "1h", "--cron", "* * * * *"), "--every and --cron cannot be combined"),
    ((*ADD, "--shared"), "need a heartbeat"),
    (("chat", "--in", "chat-1", "--continue", "--once", "x"), "--in and --continue cannot be combined"),
    (("chat", "--in", "chat-1", "--project", "web", "--once", "x"), "--project is for a new chat"),
    (("chat", "--in", "chat-1", "--title", "T", "--once", "x"), "--title is for a new chat"),
    (("chat", "ada", "-c", "--project", "web", "--once", "x"), "--project is for a new chat"),
    (("say", "chat-1", "x", "--fresh", "--resume", "run-0"), "--fresh and --resume cannot be combined."),
    (("say", "chat-1", "x", "--steer", "--fresh"), "--steer and --fresh cannot be combined."),
    (("say", "chat-1", "x", "--silent", "--wait"), "no agent is woken, so there is nothing to wait for"),
    (("issue", "comment", "3", "x", "--silent", "--wait"), "no agent is woken, so there is nothing to wait for"),
    (("say", "chat-1", "x", "--silent", "--to", "ada"), "--silent and --to cannot be combined: it wakes no agent."),
    (("say", "chat-1", "x", "--silent", "--key", "mine"), "--silent and --key cannot be combined"),
    (("retry", "run-1", "--taken", "--not-taken"), "the agent received the prompt, or it did not"),
    (("sessions", "--found", "--thread", "chat-1"), "what an agent has itself is in no thread"),
    (("chat", "ada", "--project", "web", "--no-project", "--once", "x"), "--project and --no-project cannot be"),
    (("wake", "ada", "x", "--fresh", "--resume", "run-0"), "--fresh and --resume cannot be combined."),
    (("wake", "ada", "x", "--thread", "chat-1", "--subject", "a:b"), "a subject has its own thread"),
    (("wake", "ada", "x", "--project", "web"), "--project needs --subject"),
    (("agent", "edit", "ada", "--every", "1h", "--no-heartbeat"), "--no-heartbeat and --every cannot be combined."),
    (("agent", "edit", "ada", "--env", "A=b", "--add-env", "C=d"), "--env replaces all of them"),
    (("agent", "edit", "ada", "--env", "", "--remove-env", "C"), "--env replaces all of them"),
]


@pytest.mark.parametrize(("words", "shown"), CONFLICTS, ids=lambda value: str(value)[:50])
def test_options_that_do_not_fit_together_are_a_usage_error(
    stub: Stub, capfd: Cap, words: tuple[str, ...], shown: str
) -> None:
    said = here(capfd, *words)
    assert (said.status, said.out) == (2, "")
    assert re.fullmatch(r"clew: .+\. [A-Z].+\. \[cli:options\]\n", said.err, re.DOTALL), said.err[:300]
    assert shown in said.err
    assert stub.asked == []


@pytest.mark.parametrize("option", ["--mode", "--max-parallel", "--across-accounts"])
@pytest.mark.parametrize("word", ["none", "NULL"])
def test_none_is_not_taken_for_an_option_that_was_left_out(stub: Stub, capfd: Cap, option: str, word: str) -> None:
    said = here(capfd, "agent", "edit", "ada", option, word)
    assert said.status == 2
    assert f"'{word}'" in said.err
    assert option in said.err
    assert stub.asked == []


@pytest.mark.parametrize("words", [("agent", "show"), ("agent", "pause"), ("project", "show"), ("why",), ("cancel",)])
def test_a_name_with_a_slash_is_called_wrong(stub: Stub, capfd: Cap, words: tuple[str, ...]) -> None:
    said = here(capfd, *words, "a/b")
    assert (said.status, said.out) == (2, "")
    assert "'a/b' is not a name or an id. Names have no slash." in said.err
    assert stub.asked == []


@pytest.mark.parametrize(("words", "code", "shown"), BAD, ids=lambda value: str(value)[:50])
def test_bad_input_is_told(stub: Stub, capfd: Cap, words: tuple[str, ...], code: str, shown: str) -> None:
    said = here(capfd, *words)
    # What the file of a policy contains, and how long a text is, is not a matter of the line.
    assert (said.status, said.out) == (1 if code in ("cli:bad-policy", "ask:bad-request") else 2, "")
    assert re.fullmatch(rf"clew: .+\. [A-Z].+[.`] \[{code}\]\n", said.err, re.DOTALL), said.err[:300]
    assert shown in said.err
    assert stub.asked == []


@pytest.mark.parametrize("words", [("up",), ("up", "--link"), ("threads",), ("doctor",), ("db", "upgrade")])
@pytest.mark.parametrize("empty", ["", "  "])
def test_an_empty_data_directory_is_not_the_one_where_the_command_is_typed(
    tmp_path: Path, capfd: Cap, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], empty: str
) -> None:
    monkeypatch.chdir(tmp_path)
    tmp_path.chmod(0o755)
    monkeypatch.delenv("CLEW_DATA", raising=False)
    typed = here(capfd, *words, "--data", empty)
    monkeypatch.setenv("CLEW_DATA", empty)
    for said in (typed, here(capfd, *words)):
        assert (said.status, said.out) == (2, "")
        assert said.err.startswith("clew: --data or CLEW_DATA is empty. Name a directory")
    assert list(tmp_path.iterdir()) == []
    assert tmp_path.stat().st_mode & 0o777 == 0o755


def test_a_data_directory_of_a_user_who_is_not_here_is_told(capfd: Cap) -> None:
    said = here(capfd, "threads", "--data", "~nobody-is-called-so/clew")
    assert (said.status, said.out) == (2, "")
    assert "there is no such user" in said.err


@pytest.mark.parametrize(
    ("held", "shown"), [("{", "is not JSON"), ("[]", "does not contain a policy"), ("\0", "not JSON")]
)
def test_a_policy_that_is_none_is_told(stub: Stub, capfd: Cap, tmp_path: Path, held: str, shown: str) -> None:
    file = tmp_path / "policy.json"
    file.write_text(held)
    said = here(capfd, "replay", "--policy", file)
    assert said.status == 1
    assert shown in said.err
    file.write_bytes(b"\xff")
    assert "is not JSON" in here(capfd, "replay", "--policy", file).err
    file.write_text("{}")
    assert "'1 month' is not a duration" in here(capfd, "replay", "--policy", file, "--since", "1 month").err
    assert stub.asked == []


@pytest.mark.parametrize("words", [("say", "chat-1", "-"), ("chat", "ada"), ("chat", "ada", "--once", "-")])
def test_a_closed_stdin_is_told(
    stub: Stub, capfd: Cap, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    monkeypatch.setattr("sys.stdin", None)
    said = here(capfd, *words)
    assert said.status == 1
    assert "Cannot read from stdin: it is closed." in said.err
    assert stub.asked == []


def test_text_comes_from_stdin_where_a_hyphen_stands(stub: Stub, capfd: Cap, monkeypatch: pytest.MonkeyPatch) -> None:
    stub.on("POST", "/wakes", samples.WAKE)
    stub.on("PATCH", "/agents/ada", samples.AGENT)
    monkeypatch.setattr("sys.stdin", io.StringIO("one\ntwo\n"))
    assert here(capfd, "wake", "ada", "-").status == 0
    assert stub.bodies("POST", "/wakes")[0]["text"] == "one\ntwo"
    monkeypatch.setattr("sys.stdin", io.StringIO("Be kind.\n"))
    assert here(capfd, "agent", "edit", "ada", "--instructions", "-").status == 0
    assert stub.bodies("PATCH", "/agents/ada") == [{"instructions": "Be kind."}]
    monkeypatch.setattr("sys.stdin", io.StringIO("\n"))
    assert "The text is empty." in here(capfd, "wake", "ada", "-").err


def test_stdin_that_is_no_text_is_told(stub: Stub) -> None:
    for words in (("say", "chat-1", "-"), ("chat", "ada")):
        ran = subprocess.run(
            [*PROGRAM, *words],
            input=b"\xff\xfe\n",
            env=environment(CLEW_DATA=str(stub.data), PYTHONUTF8="1"),
            capture_output=True,
            timeout=60,
            check=False,
        )
        assert (ran.returncode, ran.stdout) == (1, b""), ran
        assert b"not valid UTF-8" in ran.stderr
    assert stub.asked == []


def test_a_reader_who_has_heard_enough_is_no_failure(stub: Stub) -> None:
    stub.on("GET", "/agents", [samples.AGENT] * 5_000)
    with subprocess.Popen(
        [*PROGRAM, "agent", "list"],
        env=environment(CLEW_DATA=str(stub.data)),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as running:
        assert running.stdout is not None
        running.stdout.readline()
        running.stdout.close()
        assert running.stderr is not None
        assert running.stderr.read() == b""
    assert running.returncode == 0


def test_a_closed_stdout_and_a_terminal_without_unicode_are_no_failure(stub: Stub) -> None:
    stub.on("GET", "/threads", [replace(samples.THREAD, title="→ 漢字 \U0001f600")])
    shell = subprocess.run(
        ["sh", "-c", 'exec "$0" -m clew threads >&-', PROGRAM[0]],
        env=environment(CLEW_DATA=str(stub.data)),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (shell.returncode, shell.stderr) == (0, "")
    plain = subprocess.run(
        [*PROGRAM, "threads"],
        env=environment(CLEW_DATA=str(stub.data), PYTHONIOENCODING="ascii", PYTHONUTF8="0"),
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert (plain.returncode, plain.stderr) == (0, b"")
    assert b"? ?? ?" in plain.stdout


@pytest.mark.parametrize(
    ("words", "status", "code", "remedy"),
    [
        (("say", "chat-1", "", "--json"), 2, "cli:bad-text", "Type it, or write - to read it from stdin."),
        (("say", "--json", "chat-1", "half \udcff"), 2, "cli:bad-text", "Convert it first."),
        (("threads", "--json"), 1, "api:no-such-thing", "Do something else."),
        (("db", "check", "--json", "--database", "/nowhere/clew.db"), 1, "store:no-database", None),
        (("runs", "--json", "--frob"), 2, "usage", "See `clew runs --help`."),
        (("up", "--json"), 2, "usage", "See `clew up --help`."),
    ],
    ids=str,
)
@pytest.mark.usefixtures("stub")
def test_with_json_a_problem_is_an_object_on_stderr(
    capfd: Cap, words: tuple[str, ...], status: int, code: str, remedy: str | None
) -> None:
    said = here(capfd, *words)
    assert (said.status, said.out) == (status, "")
    (line,) = said.err.splitlines()
    problem = json.loads(line)
    assert set(problem) == {"type", "code", "detail", "remedy"}
    assert problem["code"] == code
    assert problem["type"] == f"urn:clew:problem:{code}"
    assert problem["detail"]
    assert remedy in (None, problem["remedy"])


@pytest.mark.usefixtures("stub")
def test_json_that_is_meant_for_another_program_is_not_asked_of_this_one(capfd: Cap) -> None:
    said = here(capfd, *ADD, "--", "report", "--json")
    assert (said.status, said.out) == (1, "")
    assert said.err.startswith("clew: ")


@pytest.mark.parametrize(
    ("words", "option"),
    [
        (("agent", "add", "eve", "--provider", "command", "cat", "--evry", "5m"), "--evry"),
        (("agent", "edit", "ada", "--modle", "opus"), "--modle"),
    ],
)
def test_a_mistyped_option_is_not_taken_for_a_part_of_the_program(
    stub: Stub, capfd: Cap, words: tuple[str, ...], option: str
) -> None:
    said = here(capfd, *words)
    assert said.status == 2
    assert f"Unknown option: {option}." in said.err
    assert stub.bodies("POST", "/agents") == []
