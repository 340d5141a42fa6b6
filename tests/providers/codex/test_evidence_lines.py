"""What a history says of a prompt, in files that are made here: no program is started."""

import asyncio
import fcntl
import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import orjson
import pytest

from clew import kernel
from clew.kernel import Cursor, Directory, Evidence, NativeId, PromptId, Sent, digest_of
from clew.ports.provider import Settings
from clew.providers.codex.provider import CodexProvider

ID = NativeId("01a1e1d6-05fc-78b2-b1de-8f0bdb91b141")
REWOUND = "01a1e1d7-05fc-78b2-b1de-8f0bdb91b141"
NAME = f"sessions/2026/11/16/rollout-2026-11-16T06-00-00-{ID}.jsonl"
OURS = PromptId("ours")
UNSENT, TAKEN, CUT_OFF, FINISHED, UNKNOWN = Evidence
TORN = object()
Entry = tuple[str, dict[str, Any]] | object


def event(kind: str, **payload: Any) -> Entry:
    return "event_msg", {"type": kind, **payload}


def begun(turn: str) -> Entry:
    return event("task_started", turn_id=turn)


def ended(turn: str, error: Any = None) -> Entry:
    return event("task_complete", turn_id=turn, **({} if error is None else {"error": error}))


def text(words: str) -> Entry:
    return "response_item", {"type": "message", "role": "user", "content": [{"type": "input_text", "text": words}]}


def named(words: str, id_: str | None, turn: str = "t") -> Entry:
    content = [{"type": "text", "text": words}]
    return event("item_completed", turn_id=turn, item={"type": "UserMessage", "client_id": id_, "content": content})


def item(kind: str, turn: str, words: str = "") -> Entry:
    return event("item_completed", turn_id=turn, item={"type": kind, "content": [{"type": "Text", "text": words}]})


def history(*entries: Entry, start: int = 0, **meta: Any) -> bytes:
    data, ordinal = b"", start
    for entry in (("session_meta", {"id": ID, "cwd": "/w", **meta}), *entries):
        if entry is TORN:
            data += b'{"timestamp":"2026-11-\n'
            continue
        assert isinstance(entry, tuple)
        data += orjson.dumps({"ordinal": ordinal, "type": entry[0], "payload": entry[1]}) + b"\n"
        ordinal += 1
    return data


def said(home: Path, data: bytes | None, words: str = "go on", turns: int | None = 0) -> kernel.Attestation:
    if data is not None:
        (home / NAME).parent.mkdir(parents=True, exist_ok=True)
        (home / NAME).write_bytes(data)
    codex = CodexProvider(Settings(program=(sys.executable,), home={"CODEX_HOME": str(home)}))
    return asyncio.run(codex.heard(Cursor(1, ID), Directory("/w"), Sent(OURS, digest_of(words), turns)))


OTHER = (begun("a"), text("go on"), named("go on", "another", "a"), item("AgentMessage", "a", "yes"), ended("a"))


@pytest.mark.case("P19")
@pytest.mark.parametrize(
    ("entries", "turns", "evidence", "reply"),
    [
        ((), 0, UNSENT, ""),
        (OTHER, 1, UNSENT, ""),
        (OTHER, None, UNSENT, ""),
        ((*OTHER, begun("b")), 1, UNSENT, ""),
        ((*OTHER, begun("b"), text("<environment_context>")), 1, UNSENT, ""),
        # The text without the id: killed between the two lines.
        ((*OTHER, begun("b"), text("go on")), 1, TAKEN, ""),
        ((*OTHER, begun("b"), text("go on")), None, UNKNOWN, ""),
        ((*OTHER, begun("b"), text("go on"), TORN), 1, TAKEN, ""),
        # It is that of an earlier prompt, which was cut off like this.
        ((begun("b"), text("go on")), 1, UNSENT, ""),
        ((begun("b"), text("go on"), *OTHER), 2, UNSENT, ""),
        # More turns are said to have been than there are.
        ((begun("b"), text("go on")), 2, UNKNOWN, ""),
        # Words within a turn that say what its prompt said.
        ((begun("a"), text("go on"), named("go on", "another", "a"), text("go on")), 1, TAKEN, ""),
        ((begun("a"), text("go on"), named("go on", "another", "a")), 1, UNSENT, ""),
        # As it is written by versions that keep no id.
        ((begun("b"), text("go on"), event("user_message", message="go on"), ended("b")), 0, FINISHED, ""),
        ((begun("b"), text("go on"), event("user_message", message="go on"), ended("b")), 1, UNSENT, ""),
        ((begun("b"), text("go on"), event("user_message", message="go on"), ended("b")), None, UNKNOWN, ""),
        # The id without the text: a model is not shown it again.
        ((begun("b"), TORN, named("go on", OURS, "b")), 0, UNKNOWN, ""),
    ],
)
def test_a_prompt_is_known_by_its_id_or_else_by_its_text_and_place(
    tmp_path: Path, entries: tuple[Entry, ...], turns: int | None, evidence: Evidence, reply: str
) -> None:
    found = said(tmp_path, history(*entries), turns=turns)
    assert (found.evidence, found.reply) == (evidence, reply)


MINE = (begun("b"), text("go on"), named("go on", OURS, "b"))
CALLED = ("response_item", {"type": "function_call", "call_id": "1"})


@pytest.mark.case("P19", "C35")
@pytest.mark.parametrize(
    ("after", "evidence", "reply"),
    [
        ((), TAKEN, ""),
        ((ended("b", {"message": "no model"}),), TAKEN, ""),
        ((event("turn_aborted", turn_id="b"),), TAKEN, ""),
        ((TORN,), TAKEN, ""),
        ((text("<turn_aborted>"), event("turn_aborted", turn_id="b")), TAKEN, ""),
        # The command of an earlier turn ends in this one.
        ((item("CommandExecution", "a"),), TAKEN, ""),
        ((*OTHER,), TAKEN, ""),
        ((begun("c"), CALLED), TAKEN, ""),
        ((CALLED,), CUT_OFF, ""),
        ((CALLED, event("turn_aborted", turn_id="b")), CUT_OFF, ""),
        ((item("Reasoning", "b"),), CUT_OFF, ""),
        ((item("AgentMessage", "b", "first"), ended("b", {"message": "no model"})), CUT_OFF, ""),
        ((item("AgentMessage", "b", "first"), *OTHER), CUT_OFF, ""),
        ((item("AgentMessage", "b", "first"), TORN, *OTHER), CUT_OFF, ""),
        ((item("AgentMessage", "b", "first"), item("AgentMessage", "b", "last"), ended("b")), FINISHED, "last"),
        ((item("AgentMessage", "b", "mine"), ended("b"), *OTHER), FINISHED, "mine"),
        ((CALLED, ended("b")), FINISHED, ""),
    ],
)
def test_what_follows_a_prompt_is_told(
    tmp_path: Path, after: tuple[Entry, ...], evidence: Evidence, reply: str
) -> None:
    found = said(tmp_path, history(*OTHER, *MINE, *after), turns=1)
    assert (found.evidence, found.reply) == (evidence, reply)


@pytest.mark.case("P19")
@pytest.mark.parametrize(
    ("data", "turns", "evidence"),
    [
        (b"", 0, UNSENT),
        (b'{"timestamp":"20', 0, UNKNOWN),
        (b"garbage\n", 0, UNKNOWN),
        (history(*OTHER).replace(b'"ordinal":3', b'"ordinal":9'), 1, UNKNOWN),
        (history(*OTHER).replace(ID.encode(), ID.replace("0", "1").encode()), 1, UNKNOWN),
        (history(*OTHER, TORN), 1, UNKNOWN),
        (history(*OTHER)[:-5], 1, UNKNOWN),
        (history(*OTHER)[:-1], 1, UNSENT),
        (history(*OTHER, TORN, *OTHER), 1, UNKNOWN),
        # It was torn before this prompt could be there.
        (history(*OTHER, TORN, *OTHER), 2, UNSENT),
        (history(*OTHER, TORN, *OTHER), None, UNKNOWN),
        (history(*OTHER, TORN), 5, UNKNOWN),
    ],
)
def test_a_history_that_is_not_whole_says_nothing(
    tmp_path: Path, data: bytes, turns: int | None, evidence: Evidence
) -> None:
    assert said(tmp_path, data, turns=turns).evidence is evidence


def gone(home: Path) -> None:
    home.rmdir()


def locked_up(home: Path) -> None:
    (home / "clew-locks").mkdir()


def a_file(home: Path) -> None:
    (home / "sessions").write_text("in the way")


def packed(home: Path) -> None:
    (home / f"{NAME}.zst").parent.mkdir(parents=True)
    (home / f"{NAME}.zst").write_bytes(b"packed")


def packed_before(home: Path) -> None:
    packed(home)
    (home / NAME.replace(".jsonl", f"_{REWOUND}.jsonl")).write_bytes(history(*OTHER))


def on_nothing(home: Path) -> None:
    (home / NAME).parent.mkdir(parents=True)
    base = {"thread_id": REWOUND, "end_ordinal_exclusive": 14, "end_byte_offset": 99}
    (home / NAME).write_bytes(history(start=14, history_base=base))


@pytest.mark.case("P19")
@pytest.mark.parametrize(
    ("how", "why"),
    [
        (gone, "is not there"),
        (lambda _: None, "is empty"),
        (locked_up, "is empty"),
        (a_file, "cannot be read"),
        (packed, "is compressed"),
        (packed_before, "before a rewind"),
        (on_nothing, "rests on"),
    ],
)
def test_a_store_that_cannot_be_read_says_nothing(tmp_path: Path, how: Callable[[Path], None], why: str) -> None:
    home = tmp_path / "home"
    home.mkdir()
    how(home)
    found = said(home, None)
    assert found.evidence is UNKNOWN
    assert why in found.detail


@pytest.mark.case("P19")
def test_a_home_without_the_session_has_not_taken_it(tmp_path: Path) -> None:
    (tmp_path / "config.toml").touch()
    assert said(tmp_path, None).evidence is UNSENT
    (tmp_path / "archived_sessions").mkdir()
    (tmp_path / "archived_sessions" / Path(NAME).name).write_bytes(history(*MINE))
    assert said(tmp_path, None).evidence is TAKEN


@pytest.mark.case("P19")
def test_what_is_missing_on_a_full_disk_may_have_been_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "statvfs", lambda _: SimpleNamespace(f_blocks=100, f_bavail=0, f_frsize=4096))
    assert said(tmp_path, history(*OTHER), turns=1).evidence is UNKNOWN
    assert said(tmp_path, history(*OTHER, *MINE), turns=1).evidence is TAKEN


@pytest.mark.case("P19")
def test_an_id_that_is_none_of_codex_is_said_to_be(tmp_path: Path) -> None:
    codex = CodexProvider(Settings(program=(sys.executable,), home={"CODEX_HOME": str(tmp_path)}))
    found = asyncio.run(codex.heard(Cursor(1, NativeId("../x")), Directory("/w"), Sent(OURS, digest_of("x"))))
    assert (found.evidence, found.able) == (UNKNOWN, False)


@pytest.mark.case("P19")
@pytest.mark.parametrize(("seconds", "evidence"), [(0.2, TAKEN), (30.0, UNKNOWN)])
def test_a_lock_that_outlives_its_program_for_a_moment_is_waited_for(
    tmp_path: Path, seconds: float, evidence: Evidence
) -> None:
    lock = tmp_path / "thread-writer-locks" / f"{ID}.lock"
    lock.parent.mkdir()
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        release = threading.Timer(seconds, fcntl.flock, (file, fcntl.LOCK_UN))
        release.start()
        began = time.monotonic()
        found = said(tmp_path, history(*MINE))
        release.cancel()
        release.join()
    assert time.monotonic() - began < 1.0
    assert found.evidence is evidence
