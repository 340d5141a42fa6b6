"""What the system refuses, told as a fault that says what to do. No program is started here."""

import asyncio
import os
import sys
import zipfile
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import orjson
import pytest

from clew.kernel import Cursor, Directory, NativeId, PermissionMode, ProbeKind
from clew.ports.provider import OpenSpec, Settings
from clew.programs.archive import pack
from clew.programs.faults import BadArchive, HomeFailed, ProgramFault
from clew.providers.codex.archive import FORMAT
from clew.providers.codex.provider import CodexProvider

ID = NativeId("01a1e1d6-05fc-78b2-b1de-8f0bdb91b141")
NAME = f"sessions/2026/11/16/rollout-2026-11-16T06-00-00-{ID}.jsonl"
LINE = orjson.dumps({"type": "session_meta", "ordinal": 0, "payload": {"id": ID, "cwd": "/w"}}) + b"\n"


def provider(home: Path) -> CodexProvider:
    return CodexProvider(Settings(program=(sys.executable,), home={"CODEX_HOME": str(home)}))


def refused(work: Coroutine[Any, Any, object], words: str) -> None:
    with pytest.raises(HomeFailed, match=words) as caught:
        asyncio.run(work)
    assert caught.value.remedy


@pytest.mark.parametrize("below", ["", "deeper"])
def test_a_home_that_is_a_file_is_said(tmp_path: Path, below: str) -> None:
    file = tmp_path / "home"
    file.write_text("in the way")
    codex, here = provider(file / below), Directory(str(tmp_path))
    pack(tmp_path / "out.zip", "codex", FORMAT, ID, {NAME: LINE}, {})
    refused(codex.open(OpenSpec(here, PermissionMode.ASK)), str(file))
    refused(codex.restore(tmp_path / "out.zip", here), str(file))
    assert asyncio.run(codex.probe(Cursor(1, ID), here)).kind is ProbeKind.UNREACHABLE
    assert file.read_text() == "in the way"


def test_a_home_that_cannot_be_written_to_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # As root everything can, so the system is made to say otherwise.
    monkeypatch.setattr(os, "access", lambda *_: False)
    refused(provider(tmp_path).open(OpenSpec(Directory(str(tmp_path)), PermissionMode.ASK)), "cannot be written")


@pytest.mark.case("T02")
def test_an_archive_that_has_no_place_is_refused(tmp_path: Path) -> None:
    rollout = tmp_path / "home" / NAME
    rollout.parent.mkdir(parents=True)
    rollout.write_bytes(LINE)
    with pytest.raises(ProgramFault, match="nowhere") as caught:
        asyncio.run(provider(tmp_path / "home").archive(Cursor(1, ID), Directory("/w"), tmp_path / "nowhere" / "out"))
    assert caught.value.remedy
    assert [path.name for path in tmp_path.iterdir()] == ["home"]


@pytest.mark.case("T02")
@pytest.mark.parametrize("wrong", [{"format": [FORMAT]}, {"native_id": 7}, {"native_id": None}, {"items": {}}])
def test_a_list_of_strange_shape_is_refused(tmp_path: Path, wrong: dict[str, Any]) -> None:
    archive = tmp_path / "out.zip"
    pack(archive, "codex", FORMAT, ID, {NAME: LINE}, {})
    with zipfile.ZipFile(archive) as packed:
        files = {name: packed.read(name) for name in packed.namelist()}
    listed = "clew-archive.json"
    with zipfile.ZipFile(archive, "w") as packed:
        for name, data in files.items():
            packed.writestr(name, orjson.dumps({**orjson.loads(data), **wrong}) if name == listed else data)
    home = tmp_path / "home"
    with pytest.raises(BadArchive):
        asyncio.run(provider(home).restore(archive, Directory(str(tmp_path))))
    assert not home.exists()
