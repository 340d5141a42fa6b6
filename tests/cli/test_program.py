"""The program itself: its help, its speed, and how it ends."""

import json
import re
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from clew import __version__
from clew.cli.output import ExitStatus
from clew.cli.program import COMMANDS, program, run_command
from clew.ports.fault import Fault
from tests.cli.kit import PROGRAM, clew, environment, ok, within
from tests.cli.stub import Stub

DOCS = Path(__file__).parents[2] / "docs"
LISTED = {name: where for commands in COMMANDS.values() for name, where, _ in commands}


def named_in(group: str) -> list[str]:
    return sorted(name for name in program(group)[group] if not name.startswith("-"))


GROUPS = {name: named_in(name) for name, where in LISTED.items() if where.endswith(":app")}
ALONE = [(name,) for name in LISTED if name not in GROUPS or name in ("runs", "approvals", "workspaces")]
EVERY = ALONE + [(group, name) for group, names in GROUPS.items() for name in names]
ASKING = [words for words in EVERY if words[0] not in ("completion", "db", "service", "up")]


def test_the_command_is_installed() -> None:
    script = Path(sysconfig.get_path("scripts")) / "clew"
    said = subprocess.run([script, "--version"], capture_output=True, text=True, timeout=60, check=True)
    assert said.stdout == f"{__version__}\n"


def test_help_names_the_commands_and_how_it_ends() -> None:
    said = ok(clew("--help"))
    for name in LISTED:
        assert re.search(rf"│ {name} ", said)
    assert "exit status" in said


def test_alone_it_says_how_things_are_and_how_to_begin(tmp_path: Path) -> None:
    said = clew(CLEW_DATA=str(tmp_path / "data"))
    assert (said.status, said.err) == (1, "")
    assert "Start it with `clew up -d`" in said.out


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_can_complete_commands_and_options(shell: str) -> None:
    script = ok(clew("completion", shell))
    for word in ("approvals", "usage", "--since"):
        assert word in script


@pytest.mark.parametrize(("group", "names"), GROUPS.items())
def test_help_of_a_group_names_each_of_its_commands(group: str, names: list[str]) -> None:
    said = ok(clew(group, "--help"))
    assert names
    for name in names:
        assert re.search(rf"│ {name} ", said)


def test_the_groups_have_the_commands_that_are_promised() -> None:
    assert GROUPS == {
        "agent": ["add", "edit", "list", "pause", "remove", "resume", "show", "test"],
        "approvals": ["allow", "answer", "deny", "forget"],
        "db": ["backup", "check", "restore", "upgrade"],
        "issue": ["assign", "close", "comment", "edit", "list", "new", "reopen", "show"],
        "policy": ["set", "show"],
        "project": ["add", "edit", "list", "remove", "show"],
        "queue": ["edit", "move", "steer", "take-back"],
        "runs": ["show"],
        "service": ["install", "remove"],
        "thread": ["archive", "overlap", "pin", "read", "show", "unarchive", "unpin", "unread"],
        "workspaces": ["accept", "clean", "list"],
    }


@pytest.mark.parametrize("words", EVERY, ids=" ".join)
def test_help_of_a_command_has_an_example(words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(lambda: program(words[0])([*words, "--help"])) is ExitStatus.DONE
    said = capsys.readouterr().out
    assert "For example:" in said
    assert re.search(rf"\n +(?:\S+ \S+ \| )?clew {' '.join(words)}\b", said)


@pytest.mark.parametrize("words", EVERY, ids=" ".join)
def test_help_says_what_each_argument_and_option_is(
    words: tuple[str, ...], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    assert run_command(lambda: program(words[0])([*words, "--help"])) is ExitStatus.DONE
    said = capsys.readouterr().out
    assert "default: None" not in said
    rows = re.findall(r"^│ [* ]{0,3}((?:--?[a-z]|[A-Z]{2})\S*(?: \S+)*)(?: {2,}(\S.*?))? *│$", said, re.MULTILINE)
    assert rows or words == ("service", "remove")
    assert [name for name, text in rows if not text or text.startswith("[")] == []


@pytest.mark.parametrize("words", ASKING, ids=" ".join)
def test_every_command_that_asks_prints_json_and_takes_a_data_directory(
    words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command(lambda: program(words[0])([*words, "--help"])) is ExitStatus.DONE
    said = capsys.readouterr().out
    for option in ("--json", "--data", "CLEW_DATA"):
        assert option in said


@pytest.mark.parametrize("words", ASKING, ids=" ".join)
def test_every_command_is_in_the_guide(words: tuple[str, ...]) -> None:
    assert f"clew {' '.join(words)}" in (DOCS / "commands.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", GROUPS["db"])
def test_help_of_a_command_of_the_database_has_every_option(name: str) -> None:
    said = ok(within("db", name, "--help"))
    for option in ("--database", "CLEW_DATABASE", "clew.db", "--data ", "CLEW_DATA]", "--json"):
        assert option in said
    assert "--no-" not in said


@pytest.mark.parametrize("name", GROUPS["db"])
def test_every_command_of_the_database_is_in_its_docs(name: str) -> None:
    assert f"clew db {name}" in (DOCS / "database.md").read_text(encoding="utf-8")


HEAVY = {"sqlalchemy", "alembic", "psycopg", "fastapi", "httpx2", "pydantic", "clew.app", "clew.store"}


@pytest.mark.parametrize("words", [("--help",), ("--version",), ("db", "--help"), ("db", "backup", "--help")])
def test_help_loads_no_store(words: tuple[str, ...]) -> None:
    assert not loaded(*words) & (HEAVY | {"clew.kernel"})


def test_the_list_of_commands_loads_none_of_them() -> None:
    commands = {where.split(":")[0] for where in LISTED.values()}
    assert not loaded("--help") & (commands | {"rich.markdown"})


def test_a_command_that_asks_the_server_loads_little(stub: Stub) -> None:
    stub.on("GET", "/agents", [])
    assert not loaded("agent", "list", "--data", str(stub.data)) & (
        HEAVY | {"rich", "asyncio", "prompt_toolkit", "clew.kernel"}
    )


def test_a_command_that_needs_no_terminal_loads_none(tmp_path: Path) -> None:
    ok(clew("db", "upgrade", "--database", tmp_path / "clew.db"))
    assert not loaded("db", "check", "--database", str(tmp_path / "clew.db")) & {"rich", "alembic"}


def test_a_new_database_is_made_without_what_older_ones_are_upgraded_with(tmp_path: Path) -> None:
    assert "alembic" not in loaded("db", "upgrade", "--database", str(tmp_path / "clew.db"))


def loaded(*words: str) -> set[str]:
    """Every module that a command imported."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", *PROGRAM[1:], *words],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return {line.rpartition("|")[2].strip() for line in done.stderr.splitlines() if line.startswith("import time:")}


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (("frobnicate",), "frobnicate"),
        (("db", "bakcup"), "Did you mean `clew db backup`?"),
        (("db", "backup"), "FILE"),
        (("db", "check", "--frob"), "--frob"),
        (("db", "check", "more"), "Unexpected argument: 'more'."),
    ],
)
def test_a_command_that_is_not_understood_ends_with_2(words: tuple[str, ...], named: str) -> None:
    said = within(*words)
    assert (said.status, said.out) == (2, "")
    assert re.fullmatch(r"clew: .+ See `clew.* --help`\. \[usage\]\n", said.err), said.err
    assert named in said.err


def test_nor_is_it_for_a_program(tmp_path: Path) -> None:
    """Not even the command is known, and yet what was asked for is JSON."""
    said = clew("frobnicate", "--json")
    assert (said.status, said.out) == (2, "")
    problem = json.loads(said.err)
    assert (problem["code"], problem["remedy"]) == ("usage", "See `clew --help`.")
    assert "frobnicate" in problem["detail"]
    said = clew("threads", "--json", "--data", tmp_path)
    assert (said.status, json.loads(said.err)["code"]) == (1, "cli:not-running")


def test_a_reader_who_has_heard_enough_is_no_failure(tmp_path: Path) -> None:
    typed = [*PROGRAM, "db", "upgrade", "--database", str(tmp_path / "clew.db")]
    with subprocess.Popen(
        typed, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as running:
        assert running.stdout is not None
        running.stdout.close()
        assert running.stderr is not None
        assert running.stderr.read() == ""
    assert running.returncode == 0


class Full(Fault):
    code = "disk:full"


def raising(fault: BaseException) -> ExitStatus:
    def command() -> None:
        raise fault

    return run_command(command)


def test_a_fault_is_told_in_its_own_words(capsys: pytest.CaptureFixture[str]) -> None:
    assert raising(Full("The disk is full.", "Free some space.")) is ExitStatus.FAILED
    assert capsys.readouterr().err == "clew: The disk is full. Free some space. [disk:full]\n"


def test_what_nobody_expected_is_called_a_bug_and_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert raising(ZeroDivisionError("division by zero")) is ExitStatus.BUG
    said = capsys.readouterr().err
    assert "Traceback" in said
    assert said.endswith(
        "clew: This is a bug in Clew: ZeroDivisionError. Please report it with the lines above. [bug]\n"
    )


def test_a_person_may_stop_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert raising(KeyboardInterrupt()) is ExitStatus.STOPPED
    assert capsys.readouterr().err == "clew: Stopped. [stopped]\n"


def test_a_command_says_how_it_ended() -> None:
    assert run_command(lambda: ExitStatus.FAILED) is ExitStatus.FAILED
    assert run_command(lambda: None) is ExitStatus.DONE
