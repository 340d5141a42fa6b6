"""What is read of Claude Code without starting it: names, transcripts, accounts, and who has a session."""

import asyncio
import json
import os
import re
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from clew.kernel import Cursor, Directory, NativeId, PermissionMode, ProbeKind
from clew.ports.provider import OpenSpec, Settings
from clew.programs.archive import pack
from clew.programs.cursor import MALFORMED
from clew.programs.faults import BadArchive, CannotStart, HomeFailed, ProgramFault, Refused
from clew.programs.process_tag import Owner
from clew.providers.claude import make
from clew.providers.claude.archive import FORMAT
from clew.providers.claude.home import Home, account_of, account_said, credential_in, project_name
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


@pytest.mark.case("S09")
def test_a_line_of_a_strange_shape_stops_nothing(tmp_path: Path) -> None:
    strange: list[dict[str, Any]] = [line("user", uuid="1"), said(None, "2"), said(["text", 3], "3"), said(4, "4")]
    odd = {"type": "user", "uuid": "5", "message": "text", "cwd": 7, "sessionId": ID}
    written(tmp_path, *strange, odd, line("ai-title", aiTitle=8), said("first", "6"))
    (found,) = asyncio.run(make(Settings(home={"CLAUDE_CONFIG_DIR": str(tmp_path)})).sessions())
    assert (found.title, found.directory) == ("first", Directory("/w/a"))


@pytest.mark.case("T02")
def test_damage_that_the_program_would_not_notice_is_seen() -> None:
    good = b"".join(json.dumps(each).encode() + b"\n" for each in (said("first", "1"), line("last-prompt")))
    assert damage(good, ID) is None
    assert "cut off" in str(damage(good[:-5], ID))
    assert "line 2" in str(damage(good + b"\0\0\n", ID) and damage(good.replace(b"last", b'"'), ID))
    assert "belongs to session" in str(damage(good, ID.replace("0", "1")))
    assert "nothing was said" in str(damage(json.dumps(line("last-prompt")).encode() + b"\n", ID))


def test_an_account_is_a_login_that_is_named_and_a_key_names_nobody(tmp_path: Path) -> None:
    home = Home.of({"HOME": str(tmp_path)})
    assert account_of(home, {}) is None
    home.own.write_text(json.dumps({"oauthAccount": {"emailAddress": "me@example.com"}}))
    assert account_of(home, {}) == account_said({"email": "me@example.com"}) == "me@example.com"
    assert credential_in({}) is None
    # A key goes before the login: the program acts for whoever has the key, and says no name.
    key, other = ({"ANTHROPIC_API_KEY": f"sk-secret-{which}"} for which in ("one", "two"))
    assert account_of(home, key) is None
    assert account_said({"tokenSource": "claude.ai", "apiKeySource": "ANTHROPIC_API_KEY"}) is None
    assert re.fullmatch("api-key:[0-9a-f]{8}", str(credential_in(key)))
    assert credential_in(key) != credential_in(other)
    for name in ("ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"):
        assert account_of(home, {name: "sk-secret"}) is None
        assert re.fullmatch("token:[0-9a-f]{8}", str(credential_in({name: "sk-secret"})))
    for nobody in (None, "me", {"email": 7}, {"email": ""}, {"tokenSource": "none", "apiKeySource": "none"}):
        assert account_said(nobody) is None


def test_half_a_character_is_no_damage(tmp_path: Path) -> None:
    path = written(tmp_path, said("first \ud83d", "1"))
    assert b"ud83d" in path.read_bytes()
    assert damage(path.read_bytes(), ID) is None
    assert summary_of(path).title == "first \ufffd"
    assert literal("/half \udc00") == " /half \ufffd"


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


def test_what_the_system_refuses_is_told_as_a_fault(tmp_path: Path) -> None:
    written(tmp_path, said("first", "1"))
    provider = make(Settings(home={"CLAUDE_CONFIG_DIR": str(tmp_path)}))
    nowhere = tmp_path / "nowhere" / "out.zip"
    with pytest.raises(ProgramFault, match=r"nowhere") as caught:
        asyncio.run(provider.archive(Cursor(1, NativeId(ID)), Directory("/w/a"), nowhere))
    assert caught.value.remedy
    assert [path.name for path in tmp_path.iterdir()] == ["projects"]
    (tmp_path / "projects").rename(tmp_path / "elsewhere")
    (tmp_path / "projects").write_text("in the way")
    with pytest.raises(HomeFailed, match="projects"):
        asyncio.run(provider.archive(Cursor(1, NativeId(ID)), Directory("/w/a"), tmp_path / "out.zip"))


@pytest.mark.case("T02")
@pytest.mark.parametrize("wrong", [{"format": [FORMAT]}, {"native_id": 7}, {"native_id": None}])
def test_an_archive_with_a_list_of_strange_shape_is_refused(tmp_path: Path, wrong: dict[str, Any]) -> None:
    archive, home = tmp_path / "out.zip", tmp_path / "home"
    transcript = json.dumps(said("first", "1")).encode() + b"\n"
    pack(archive, "claude", FORMAT, ID, {f"{ID}.jsonl": transcript}, {})
    with zipfile.ZipFile(archive) as packed:
        files = {name: packed.read(name) for name in packed.namelist()}
    listed = "clew-archive.json"
    with zipfile.ZipFile(archive, "w") as packed:
        for name, data in files.items():
            packed.writestr(name, json.dumps({**json.loads(data), **wrong}) if name == listed else data)
    with pytest.raises(BadArchive):
        asyncio.run(make(Settings(home={"CLAUDE_CONFIG_DIR": str(home)})).restore(archive, Directory(str(tmp_path))))
    assert not home.exists()


def test_a_directory_that_is_not_there_is_what_is_said_to_be_missing(tmp_path: Path) -> None:
    settings = Settings(program=(sys.executable,), home={"CLAUDE_CONFIG_DIR": str(tmp_path / "home")})
    (tmp_path / "file").write_text("in the way")
    gone = tmp_path / "gone"
    written(tmp_path / "home", said("first", "1", cwd=str(gone)), project=project_name(str(gone)))
    cursor = Cursor(1, NativeId(ID))
    for spec in (
        OpenSpec(Directory(str(gone)), PermissionMode.ASK),
        OpenSpec(Directory(str(gone)), PermissionMode.ASK, cursor),
        OpenSpec(Directory(str(gone)), PermissionMode.ASK, cursor, fork=True),
        OpenSpec(Directory(str(tmp_path / "file")), PermissionMode.ASK),
    ):
        with pytest.raises(CannotStart) as caught:
            asyncio.run(make(settings).open(spec))
        assert spec.directory.path in caught.value.words
        assert "is not there" in caught.value.words
        assert sys.executable not in str(caught.value)


@pytest.mark.case("A01")
@pytest.mark.parametrize(
    ("user", "said", "allowed"),
    [(0, {}, False), (0, {"IS_SANDBOX": "true"}, False), (0, {"IS_SANDBOX": "1"}, True), (1000, {}, True)],
)
def test_full_is_declared_where_the_program_takes_it(
    monkeypatch: pytest.MonkeyPatch, user: int, said: dict[str, str], allowed: bool
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: user)
    monkeypatch.delenv("IS_SANDBOX", raising=False)
    assert (PermissionMode.FULL in make(Settings(environment=said)).capabilities.modes) is allowed


# ---------------------------------------------------------------- probing


def probe(root: Path, directory: str = "/w/a", native_id: str = ID) -> Any:
    provider = make(Settings(home={"CLAUDE_CONFIG_DIR": str(root)}))
    return asyncio.run(provider.probe(Cursor(1, NativeId(native_id)), Directory(directory)))


@pytest.mark.case("C13", "C16", "C12")
def test_a_probe_goes_by_the_transcript(tmp_path: Path) -> None:
    (tmp_path / ".claude.json").write_text("{}")
    assert probe(tmp_path).kind is ProbeKind.MISSING
    path = written(tmp_path, said("first", "1"))
    assert probe(tmp_path).kind is ProbeKind.FOUND_HERE
    elsewhere = probe(tmp_path, "/w/b")
    assert (elsewhere.kind, elsewhere.directory) == (ProbeKind.FOUND_ELSEWHERE, Directory("/w/a"))
    for nothing in (b"", b"\0\0\n", json.dumps(said("aside", "1", isSidechain=True)).encode() + b"\n"):
        path.write_bytes(nothing)
        assert probe(tmp_path).signal == "transcript-empty"


@pytest.mark.case("C12", "S04")
@pytest.mark.parametrize("id_", ["not-a-uuid", "../../etc/passwd", ID.upper(), f"{ID}\n", ""])
def test_a_malformed_id_is_rejected_and_not_looked_for(tmp_path: Path, id_: str) -> None:
    provider = make(Settings(program=("/nowhere/claude",), home={"CLAUDE_CONFIG_DIR": str(tmp_path)}))
    cursor, directory = Cursor(1, NativeId(id_)), Directory(str(tmp_path))
    found = asyncio.run(provider.probe(cursor, directory))
    assert (found.kind, found.signal) == (ProbeKind.REJECTED, MALFORMED)
    assert found.signal in provider.capabilities.rejection_signals
    assert "is not a session id" in found.detail
    with pytest.raises(Refused, match="is not a session id"):
        asyncio.run(provider.open(OpenSpec(directory, PermissionMode.ASK, cursor)))
    with pytest.raises(Refused, match="is not a session id"):
        asyncio.run(provider.archive(cursor, directory, tmp_path / "out.zip"))
    # A cursor that a later Clew wrote is not known to be bad.
    later = asyncio.run(provider.probe(Cursor(2, NativeId(ID)), directory))
    assert later.kind is ProbeKind.UNREACHABLE


@pytest.mark.case("C16", "D10")
def test_of_two_directories_with_one_name_the_one_in_the_transcript_counts(tmp_path: Path) -> None:
    written(tmp_path, said("first", "1", cwd="/w/a-1"), project="-w-a-1")
    assert probe(tmp_path, "/w/a-1").kind is ProbeKind.FOUND_HERE
    elsewhere = probe(tmp_path, "/w/a/1")
    assert (elsewhere.kind, elsewhere.directory) == (ProbeKind.FOUND_ELSEWHERE, Directory("/w/a-1"))
    # What somebody copied into a project by hand says nothing against it.
    written(tmp_path, said("first", "1", cwd="/w/b"), project="-w-a-1")
    assert probe(tmp_path, "/w/a/1").kind is ProbeKind.FOUND_HERE
    # The program writes names in composed letters, whatever the system has.
    written(tmp_path, said("first", "1", cwd="/w/\u00e9"), project="-w--")
    (tmp_path / "projects" / "-w-a-1" / f"{ID}.jsonl").unlink()
    assert probe(tmp_path, "/w/e\u0301").kind is ProbeKind.FOUND_HERE


@pytest.mark.case("C14")
def test_a_home_that_is_not_there_makes_nothing_missing(tmp_path: Path) -> None:
    assert probe(tmp_path / "not-there").kind is ProbeKind.UNREACHABLE
    # Where it should have been mounted.
    assert probe(tmp_path).kind is ProbeKind.UNREACHABLE
    (tmp_path / "projects").write_text("this is no directory")
    assert probe(tmp_path).kind is ProbeKind.UNREACHABLE


@pytest.mark.case("C14")
@pytest.mark.skipif(os.geteuid() == 0, reason="to root nothing is closed")
def test_a_project_that_is_closed_to_us_makes_nothing_missing(tmp_path: Path) -> None:
    project = written(tmp_path, said("first", "1")).parent
    project.chmod(0)
    try:
        assert probe(tmp_path).kind is ProbeKind.UNREACHABLE
        there = written(tmp_path, said("first", "1"), project="-w-b")
        assert probe(tmp_path).kind is ProbeKind.FOUND_HERE
        there.unlink()
    finally:
        project.chmod(0o700)


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
