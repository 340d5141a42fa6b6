"""Archives: whole and undamaged, or refused."""

import json
import os
import tracemalloc
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from clew.programs import archive as archiving
from clew.programs.archive import file_digest, join, pack, unpack
from clew.programs.faults import BadArchive, Refused

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
    packed_ = pack(path, "agent", "form-1", "id-1", FILES, {"turns": 3})
    assert (packed_.digest, packed_.whole) == (file_digest(path), True)
    contents, files = unpack(path, "agent", FORMATS)
    assert files == FILES
    assert (contents.native_id, contents.facts, contents.whole) == ("id-1", {"turns": 3}, True)
    assert [each.name for each in tmp_path.iterdir()] == ["a.zip"]


GROWN = {**FILES, "session.jsonl": FILES["session.jsonl"] + b"three\n", "new": b"new"}


def test_a_tail_holds_what_was_added_and_joins_to_the_whole(tmp_path: Path) -> None:
    base = packed(tmp_path / "base.zip")
    tail = tmp_path / "tail.zip"
    assert not pack(tail, "agent", "form-1", "id-1", GROWN, {"turns": 4}, since=base).whole
    with zipfile.ZipFile(tail) as archive:
        assert archive.read("session.jsonl") == b"three\n"
        assert "deep/tool.txt" not in archive.namelist()
    with pytest.raises(BadArchive, match="only additions"):
        unpack(tail, "agent", FORMATS)
    digest = join(base, tail, tmp_path / "whole.zip")
    assert digest == file_digest(tmp_path / "whole.zip")
    contents, files = unpack(tmp_path / "whole.zip", "agent", FORMATS)
    assert (files, list(files), contents.facts) == (GROWN, list(GROWN), {"turns": 4})


def test_a_tail_of_a_tail_joins_to_what_the_first_was_joined_to(tmp_path: Path) -> None:
    base = packed(tmp_path / "base.zip")
    one = packed(tmp_path / "one.zip", GROWN, since=base)
    further = {**GROWN, "session.jsonl": GROWN["session.jsonl"] + b"four\n"}
    two = packed(tmp_path / "two.zip", further, since=one)
    with pytest.raises(BadArchive, match="does not continue"):
        join(base, two, tmp_path / "whole.zip")
    with pytest.raises(BadArchive, match="only additions"):
        join(one, two, tmp_path / "whole.zip")
    assert not (tmp_path / "whole.zip").exists()
    join(base, one, tmp_path / "between.zip")
    join(tmp_path / "between.zip", two, tmp_path / "whole.zip")
    assert unpack(tmp_path / "whole.zip", "agent", FORMATS)[1] == further


def test_a_tail_of_a_session_that_did_not_go_on_is_small_and_joins(tmp_path: Path) -> None:
    files = {f"{number}.json": os.urandom(2000) for number in range(50)}
    base = packed(tmp_path / "base.zip", files)
    tail = packed(tmp_path / "tail.zip", files, since=base)
    assert tail.stat().st_size < base.stat().st_size / 10
    join(base, tail, tmp_path / "whole.zip")
    assert unpack(tmp_path / "whole.zip", "agent", FORMATS)[1] == files


def test_a_file_that_did_not_only_grow_is_held_whole(tmp_path: Path) -> None:
    base = packed(tmp_path / "base.zip")
    for changed in (b"other" + FILES["session.jsonl"], FILES["session.jsonl"][:-1]):
        tail = packed(tmp_path / "tail.zip", {"session.jsonl": changed}, since=base)
        manifest, files = unpack(tail, "agent", FORMATS)
        assert manifest.whole
        assert files == {"session.jsonl": changed}
        with pytest.raises(BadArchive, match="it is whole"):
            join(base, tail, tmp_path / "whole.zip")
        kept = {**FILES, "session.jsonl": changed}
        tail = packed(tmp_path / "tail.zip", kept, since=base)
        join(base, tail, tmp_path / "whole.zip")
        assert unpack(tmp_path / "whole.zip", "agent", FORMATS)[1] == kept


def test_a_tail_of_something_else_is_not_joined(tmp_path: Path) -> None:
    base = packed(tmp_path / "base.zip")
    tail = packed(tmp_path / "tail.zip", {"session.jsonl": FILES["session.jsonl"] + b"x"}, since=base)
    other = tmp_path / "other.zip"
    for provider, id_, files in (
        ("agent", "id-1", {"session.jsonl": b"another history"}),
        ("agent", "id-1", {**FILES, "more": b""}),
        ("agent", "id-2", FILES),
        ("somebody", "id-1", FILES),
    ):
        pack(other, provider, "form-1", id_, files, {})
        with pytest.raises(BadArchive, match="does not continue"):
            join(other, tail, tmp_path / "whole.zip")
    assert not (tmp_path / "whole.zip").exists()


def test_since_what_is_foreign_or_damaged_nothing_is_written(tmp_path: Path) -> None:
    base, tail = packed(tmp_path / "base.zip", {**FILES, "noise": os.urandom(5000)}), tmp_path / "tail.zip"
    for provider, format_, id_ in (
        ("else", "form-1", "id-1"),
        ("agent", "form-0", "id-1"),
        ("agent", "form-1", "id-2"),
    ):
        with pytest.raises(BadArchive, match=f"id-1 of agent .* not {id_} of {provider}"):
            pack(tail, provider, format_, id_, GROWN, {}, since=base)
    whole = base.read_bytes()
    at = whole.index(b"noise") + 500
    for spoiled in (whole[:-30], whole[:at] + b"12345678" + whole[at + 8 :], b""):
        base.write_bytes(spoiled)
        with pytest.raises(BadArchive, match="damaged"):
            packed(tail, GROWN, since=base)
    base.unlink()
    with pytest.raises(BadArchive):
        packed(tail, GROWN, since=base)
    assert list(tmp_path.iterdir()) == []


def test_a_tail_does_not_take_the_place_of_what_it_continues(tmp_path: Path) -> None:
    base = packed(tmp_path / "base.zip")
    (tmp_path / "link.zip").symlink_to(base)
    for same in (base, tmp_path / "link.zip"):
        with pytest.raises(Refused):
            packed(same, GROWN, since=base)
    assert unpack(base, "agent", FORMATS)[1] == FILES


def test_where_it_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    (tmp_path / "directory").mkdir()
    before = sorted(tmp_path.rglob("*"))
    for into in (tmp_path / "no" / "a.zip", tmp_path / "file" / "a.zip", tmp_path / "directory"):
        with pytest.raises(Refused, match="cannot be written"):
            packed(into)
    assert sorted(tmp_path.rglob("*")) == before


def test_what_is_too_large_is_neither_written_nor_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = packed(tmp_path / "a.zip", {"zeros": bytes(100_000)})
    monkeypatch.setattr(archiving, "LARGEST", 50_000)
    with pytest.raises(BadArchive, match="100000 bytes"):
        unpack(path, "agent", FORMATS)
    with pytest.raises(Refused, match="100000 bytes"):
        packed(tmp_path / "b.zip", {"zeros": bytes(100_000)})
    path.write_bytes(bytes(100_001))
    with pytest.raises(BadArchive, match="larger than any"):
        unpack(path, "agent", FORMATS)


@pytest.mark.parametrize("name", ["bomb", LIST])
@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2])
def test_what_unpacks_to_more_than_is_listed_is_not_unpacked(tmp_path: Path, name: str, method: int) -> None:
    """The archive itself lies about how long a file is, so that its table and its list agree."""
    path, much = tmp_path / "a.zip", 64 * 2**20
    listed = {**_LISTED, "items": [{"name": "bomb", "size": 10, "digest": "0" * 64, "start": 0}]}
    head = json.dumps(listed).encode()
    with zipfile.ZipFile(path, "w", method) as archive:
        archive.writestr(LIST, head + b" " * (much if name == LIST else 0))
        archive.writestr("bomb", bytes(10 if name == LIST else much))
        archive.getinfo(name).file_size = len(head) if name == LIST else 10
    tracemalloc.start()
    try:
        with pytest.raises(BadArchive):
            unpack(path, "agent", FORMATS)
        assert tracemalloc.get_traced_memory()[1] < 20 * 2**20
    finally:
        tracemalloc.stop()


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


_LISTED = {
    "version": 2,
    "provider": "agent",
    "format": "form-1",
    "native_id": "id-1",
    "facts": {},
    "continues": None,
    "items": [],
}


def _later(listed: dict[str, Any], _files: dict[str, bytes]) -> None:
    listed["version"] = 3


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


def _twice(listed: dict[str, Any], _files: dict[str, bytes]) -> None:
    listed["items"].append(listed["items"][0])


def _put(name: str, value: Any) -> Callable[[dict[str, Any], dict[str, bytes]], None]:
    def change(listed: dict[str, Any], _files: dict[str, bytes]) -> None:
        (listed if name in listed else listed["items"][0])[name] = value

    change.__name__ = f"{name}={value!r}"
    return change


_NO_TEXT: tuple[Any, ...] = (["form-1"], 7, None, "\ud800")
_NO_SIZE: tuple[Any, ...] = (-5, 5.0, True, "5", None, 10**30)


@pytest.mark.parametrize(
    "change",
    [
        *(_later, _less, _odd, _bigger, _gone, _digest, _twice),
        *(_put(name, value) for name in ("provider", "format", "native_id") for value in _NO_TEXT),
        *(_put(name, value) for name in ("size", "start") for value in _NO_SIZE),
        _put("continues", 7),
        _put("continues", "0" * 64),
        _put("facts", []),
        _put("name", ["session.jsonl"]),
        _put("digest", 7),
        _put("version", [2]),
    ],
    ids=lambda change: change.__name__,
)
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
