"""Archives: whole and undamaged, or refused."""

import json
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from clew.programs.archive import contents_of, file_digest, join, pack, unpack
from clew.programs.faults import BadArchive

FORMATS = frozenset({"form-1"})
FILES = {"session.jsonl": b"one\ntwo\n" * 200, "deep/tool.txt": bytes(range(256)), "empty": b""}
LIST = "clew-archive.json"


def packed(path: Path, files: Mapping[str, bytes] = FILES, **how: Any) -> Path:
    pack(path, "agent", "form-1", "id-1", files, {"turns": 3}, **how)
    return path


def rewritten(path: Path, change: Callable[[dict[str, Any], dict[str, bytes]], None]) -> None:
    with zipfile.ZipFile(path) as old:
        files = {name: old.read(name) for name in old.namelist()}
    listed = json.loads(files.pop(LIST))
    change(listed, files)
    with zipfile.ZipFile(path, "w") as new:
        new.writestr(LIST, json.dumps(listed))
        for name, data in files.items():
            new.writestr(name, data)


def test_what_was_packed_comes_out(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    digest = pack(path, "agent", "form-1", "id-1", FILES, {"turns": 3})
    assert digest == file_digest(path)
    contents, files = unpack(path, "agent", FORMATS)
    assert files == FILES
    assert (contents.native_id, contents.facts, contents.whole) == ("id-1", {"turns": 3}, True)
    assert contents_of(path) == contents
    assert [each.name for each in tmp_path.iterdir()] == ["a.zip"]


def test_a_tail_holds_what_was_added_and_joins_to_the_whole(tmp_path: Path) -> None:
    base = packed(tmp_path / "base.zip")
    grown = {**FILES, "session.jsonl": FILES["session.jsonl"] + b"three\n", "new": b"new"}
    tail = packed(tmp_path / "tail.zip", grown, since=contents_of(base))
    with zipfile.ZipFile(tail) as archive:
        assert archive.read("session.jsonl") == b"three\n"
        assert archive.read("deep/tool.txt") == b""
    with pytest.raises(BadArchive, match="only what was added"):
        unpack(tail, "agent", FORMATS)
    digest = join(base, tail, tmp_path / "whole.zip")
    assert digest == file_digest(tmp_path / "whole.zip")
    assert unpack(tmp_path / "whole.zip", "agent", FORMATS)[1] == grown


def test_a_file_that_did_not_only_grow_is_held_whole(tmp_path: Path) -> None:
    base = packed(tmp_path / "base.zip")
    for changed in (b"other" + FILES["session.jsonl"], FILES["session.jsonl"][:-1]):
        tail = packed(tmp_path / "tail.zip", {"session.jsonl": changed}, since=contents_of(base))
        assert contents_of(tail).whole
        assert unpack(tail, "agent", FORMATS)[1] == {"session.jsonl": changed}


def test_a_tail_of_something_else_is_not_joined(tmp_path: Path) -> None:
    base = packed(tmp_path / "base.zip")
    tail = packed(tmp_path / "tail.zip", {"session.jsonl": FILES["session.jsonl"] + b"x"}, since=contents_of(base))
    other = packed(tmp_path / "other.zip", {"session.jsonl": b"another history"})
    with pytest.raises(BadArchive):
        join(other, tail, tmp_path / "whole.zip")
    pack(other, "somebody", "form-1", "id-1", FILES, {})
    with pytest.raises(BadArchive, match="does not continue"):
        join(other, tail, tmp_path / "whole.zip")
    assert not (tmp_path / "whole.zip").exists()


def test_another_agent_or_format_is_refused_by_name(tmp_path: Path) -> None:
    path = packed(tmp_path / "a.zip")
    with pytest.raises(BadArchive, match="a session of agent"):
        unpack(path, "other", FORMATS)
    with pytest.raises(BadArchive, match="form-1"):
        unpack(path, "agent", frozenset({"form-2"}))


@pytest.mark.parametrize("name", ["../evil", "/etc/evil", "a/../../evil", "a\\b", "", ".", "a//b", "./a"])
def test_a_name_that_leads_outside_is_refused(tmp_path: Path, name: str) -> None:
    path = packed(tmp_path / "a.zip")

    def change(listed: dict[str, Any], files: dict[str, bytes]) -> None:
        listed["items"][0]["name"] = name
        files[name or "x"] = b""

    rewritten(path, change)
    with pytest.raises(BadArchive):
        unpack(path, "agent", FORMATS)


def _later(listed: dict[str, Any], _files: dict[str, bytes]) -> None:
    listed["version"] = 2


def _less(listed: dict[str, Any], _files: dict[str, bytes]) -> None:
    del listed["native_id"]


def _odd(listed: dict[str, Any], _files: dict[str, bytes]) -> None:
    listed["items"] = {"name": 7}


def _bigger(_listed: dict[str, Any], files: dict[str, bytes]) -> None:
    files["session.jsonl"] += b"more than the list says"


def _gone(_listed: dict[str, Any], files: dict[str, bytes]) -> None:
    del files["session.jsonl"]


def _digest(listed: dict[str, Any], _files: dict[str, bytes]) -> None:
    listed["items"][0]["digest"] = "0" * 64


def _negative(listed: dict[str, Any], _files: dict[str, bytes]) -> None:
    listed["items"][0]["start"] = -5


@pytest.mark.parametrize("change", [_later, _less, _odd, _bigger, _gone, _digest, _negative], ids=lambda f: f.__name__)
def test_a_list_that_does_not_fit_is_refused(
    tmp_path: Path, change: Callable[[dict[str, Any], dict[str, bytes]], None]
) -> None:
    path = packed(tmp_path / "a.zip")
    rewritten(path, change)
    with pytest.raises(BadArchive):
        unpack(path, "agent", FORMATS)


def test_what_is_no_archive_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    for data in (b"", b"PK", b"no archive at all", b"\0" * 1000):
        path.write_bytes(data)
        with pytest.raises(BadArchive):
            unpack(path, "agent", FORMATS)
    with pytest.raises(BadArchive):
        unpack(tmp_path / "nowhere.zip", "agent", FORMATS)
    with pytest.raises(BadArchive):
        unpack(tmp_path, "agent", FORMATS)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_no_damage_gets_through(tmp_path: Path, data: st.DataObject) -> None:
    """Whatever happens to the bytes, what comes out is what was put in, or nothing."""
    path = packed(tmp_path / "a.zip")
    whole = bytearray(path.read_bytes())
    at = data.draw(st.integers(0, len(whole) - 1))
    match data.draw(st.sampled_from(["flip", "cut", "drop", "double"])):
        case "flip":
            whole[at] ^= data.draw(st.integers(1, 255))
        case "cut":
            del whole[at:]
        case "drop":
            del whole[at : at + data.draw(st.integers(1, 50))]
        case _:
            whole[at:at] = whole[at : at + 20]
    path.write_bytes(whole)
    try:
        contents, files = unpack(path, "agent", FORMATS)
    except BadArchive:
        return
    assert files == FILES
    assert contents.native_id == "id-1"


def test_a_pack_that_fails_leaves_the_archive_before_it(tmp_path: Path) -> None:
    path = packed(tmp_path / "a.zip")
    before = path.read_bytes()
    with pytest.raises(TypeError):
        pack(path, "agent", "form-1", "id-1", FILES, {"odd": object()})
    assert path.read_bytes() == before
    assert [each.name for each in tmp_path.iterdir()] == ["a.zip"]
