"""What is read of Claude Code without starting it: names, transcripts, accounts, and who has a session."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from clew.kernel import Cursor, Directory, NativeId, PermissionMode, ProbeKind
from clew.ports.provider import OpenSpec, Settings
from clew.programs.faults import CannotStart
from clew.programs.marking import Owner
from clew.providers.claude import make
from clew.providers.claude.home import Home, account_of, account_said, project_name
from clew.providers.claude.transcript import damage, holds, summary_of
from clew.providers.claude.turn import literal

ID = "0bcad7cc-50ff-49fe-91e3-de643c3f86dd"


def line(kind: str, **rest: object) -> dict[str, Any]:
    return {"type": kind, "sessionId": ID, **rest}


def said(text: object, uuid: str, cwd: str = "/w/a", **rest: object) -> dict[str, Any]:
    return line("user", uuid=uuid, cwd=cwd, message={"role": "user", "content": text}, **rest)


def written(root: Path, *lines: Mapping[str, Any], project: str = "-w-a", native_id: str = ID) -> Path:
    path = root / "projects" / project / f"{native_id}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(each, separators=(",", ":")) + "\n" for each in lines))
    return path


def test_a_project_is_named_as_the_program_names_it() -> None:
    # Each as Claude Code 2.1.197 made it.
    assert project_name("/w/a.b_c d") == "-w-a-b-c-d"
    assert project_name("/tmp/clw/üñ é日本😀") == "-tmp-clw---------"
    deep = "/tmp/clw/long/" + "/".join("d" * 45 + str(at) for at in range(5))
    assert project_name(deep) == deep.replace("/", "-")[:200] + "-306xwn"


def test_only_what_a_person_asked_counts_as_a_turn(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        line("queue-operation", operation="enqueue"),
        said("first", "1"),
        said("first", "1"),
        said([{"type": "tool_result", "tool_use_id": "t", "content": "x"}], "2", toolUseResult={"stdout": "x"}),
        said("Continue from where you left off.", "3", isMeta=True),
        said("from a side thread", "4", isSidechain=True),
        said("<task-notification>done</task-notification>", "5", origin={"kind": "task-notification"}),
        said("<command-name>/model</command-name>", "6"),
        said([{"type": "text", "text": "[Request interrupted by user]"}], "7"),
        said("This session is being continued", "8", isCompactSummary=True),
        said([{"type": "text", "text": "second"}], "9", cwd="/w/a/deeper"),
    )
    summary = summary_of(path)
    assert (summary.turns, summary.directory, summary.title, summary.talks) == (2, "/w/a", "first", True)
    title = json.dumps(line("ai-title", aiTitle="A  title"), separators=(",", ":"))
    path.write_bytes(path.read_bytes() + title.encode() + b"\n")
    assert summary_of(path).title == "A title"


def test_a_line_is_there_once_it_is_whole(tmp_path: Path) -> None:
    path = written(tmp_path, said("first", "1"))
    path.write_bytes(path.read_bytes() + b'{"type":"user","uuid":"2"')
    assert holds(path, "1")
    assert not holds(path, "2")
    assert not holds(tmp_path / "nowhere", "1")


@pytest.mark.case("T02")
def test_damage_that_the_program_would_not_notice_is_seen() -> None:
    good = b"".join(json.dumps(each).encode() + b"\n" for each in (said("first", "1"), line("last-prompt")))
    assert damage(good, ID) is None
    assert "cut off" in str(damage(good[:-5], ID))
    assert "line 2" in str(damage(good + b"\0\0\n", ID) and damage(good.replace(b"last", b'"'), ID))
    assert "belongs to session" in str(damage(good, ID.replace("0", "1")))
    assert "nothing was said" in str(damage(json.dumps(line("last-prompt")).encode() + b"\n", ID))


def test_an_account_is_known_by_the_key_that_is_given_or_by_the_login(tmp_path: Path) -> None:
    home = Home.of({"HOME": str(tmp_path)})
    assert account_of(home, {}) is None
    home.own.write_text(json.dumps({"oauthAccount": {"emailAddress": "me@example.com"}}))
    assert account_of(home, {}) == account_said({"email": "me@example.com"}, {}) == "me@example.com"
    key = {"ANTHROPIC_API_KEY": "sk-secret-one"}
    by_key = account_of(home, key)
    assert by_key is not None
    assert by_key.startswith("api-key:")
    assert "secret" not in by_key
    assert account_said({"tokenSource": "claude.ai", "apiKeySource": "ANTHROPIC_API_KEY"}, key) == by_key
    assert account_of(home, {"ANTHROPIC_API_KEY": "sk-secret-two"}) != by_key
    assert account_said({"tokenSource": "none", "apiKeySource": "none"}, {}) is None


def test_a_prompt_is_no_command() -> None:
    assert literal("/clear the cache, please") == " /clear the cache, please"
    assert literal("clear /tmp") == "clear /tmp"


@pytest.mark.case("P13")
def test_a_program_that_is_not_there_is_said(tmp_path: Path) -> None:
    async def scene() -> None:
        for program in (("/nowhere/claude",), ()):
            home = {"CLAUDE_CONFIG_DIR": str(tmp_path), "PATH": str(tmp_path)}
            provider = make(Settings(program=program, home=home))
            found = await provider.discover()
            assert not found.installed
            assert found.missing
            with pytest.raises(CannotStart):
                await provider.open(OpenSpec(Directory(str(tmp_path)), PermissionMode.ASK))

    asyncio.run(scene())


# ---------------------------------------------------------------- probing


def probe(root: Path, directory: str = "/w/a", native_id: str = ID) -> Any:
    provider = make(Settings(home={"CLAUDE_CONFIG_DIR": str(root)}))
    return asyncio.run(provider.probe(Cursor(1, NativeId(native_id)), Directory(directory)))


@pytest.mark.case("C13", "C16", "C12")
def test_a_probe_goes_by_the_transcript(tmp_path: Path) -> None:
    assert probe(tmp_path).kind is ProbeKind.MISSING
    path = written(tmp_path, said("first", "1"))
    assert probe(tmp_path).kind is ProbeKind.FOUND_HERE
    elsewhere = probe(tmp_path, "/w/b")
    assert (elsewhere.kind, elsewhere.directory) == (ProbeKind.FOUND_ELSEWHERE, Directory("/w/a"))
    assert probe(tmp_path, native_id="../../etc/passwd").kind is ProbeKind.UNREACHABLE
    path.write_bytes(b"")
    assert probe(tmp_path).signal == "transcript-empty"


@pytest.mark.case("C14")
def test_a_home_that_is_not_there_makes_nothing_missing(tmp_path: Path) -> None:
    assert probe(tmp_path / "not" / "mounted").kind is ProbeKind.UNREACHABLE


HOLDING = "import fcntl, sys; file = open(sys.argv[1]); fcntl.flock(file, fcntl.LOCK_EX); print(flush=True); input()"


@pytest.mark.case("C29", "P05")
def test_a_session_that_another_process_of_ours_holds_is_busy(tmp_path: Path) -> None:
    path = written(tmp_path, said("first", "1"))
    command = [sys.executable, "-c", HOLDING, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        other.stdout.readline()
        assert probe(tmp_path).kind is ProbeKind.BUSY
        other.kill()
    assert probe(tmp_path).kind is ProbeKind.FOUND_HERE


@pytest.mark.case("C29", "R09")
def test_a_session_that_a_running_claude_has_is_busy_and_a_dead_one_has_none(tmp_path: Path) -> None:
    written(tmp_path, said("first", "1"))
    note = tmp_path / "sessions" / "1.json"
    note.parent.mkdir()
    ours = Owner.ourselves()
    note.write_text(json.dumps({"pid": ours.pid, "sessionId": ID, "procStart": str(ours.started)}))
    busy = probe(tmp_path)
    assert (busy.kind, busy.holder) == (ProbeKind.BUSY, f"claude, process {os.getpid()}")
    note.write_text(json.dumps({"pid": ours.pid, "sessionId": ID, "procStart": str(ours.started + 1)}))
    assert probe(tmp_path).kind is ProbeKind.FOUND_HERE
