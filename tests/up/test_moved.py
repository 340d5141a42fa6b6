"""A data directory that was moved: what is in it is known by its old path, so it is not used unseen."""

import json
from pathlib import Path

import pytest

from clew.app.data_lock import Moved, check_location
from clew.server.data_dir import CannotUse, DataDirectory
from tests.up.kit import refused, up


def used(root: Path) -> DataDirectory:
    data = DataDirectory(root)
    root.mkdir(exist_ok=True)
    check_location(data)
    return data


def test_one_that_was_moved_is_refused_until_the_old_path_leads_to_it(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    with up(old) as clew:
        clew.guide()
        assert clew.stop() == 0
    old.rename(new)
    told = refused(new, "--port", "0")
    assert f"was at {old} and is now at {new}" in told
    assert "Move it back" in told
    assert "symbolic link" in told
    assert "[data:moved]" in told
    assert not old.exists()
    old.symlink_to(new)
    for data in (new, old):
        with up(data) as clew:
            clew.guide()
            assert clew.ran(clew.ask("POST", "/wakes", {"agent": "guide", "text": "go"}))["state"] == "succeeded"
            assert clew.stop() == 0


def test_one_that_was_moved_back_is_taken(tmp_path: Path) -> None:
    used(tmp_path / "old")
    (tmp_path / "old").rename(tmp_path / "new")
    with pytest.raises(Moved):
        used(tmp_path / "new")
    (tmp_path / "new").rename(tmp_path / "old")
    used(tmp_path / "old")


def test_what_was_made_under_a_second_path_is_missed_under_the_first_as_well(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    used(old)
    old.rename(new)
    old.symlink_to(new)
    used(new)
    old.unlink()
    new.rename(old)
    with pytest.raises(Moved, match=f"was at {new} and is now at {old}"):
        used(old)


def test_a_copy_is_not_taken_for_the_first_one(tmp_path: Path) -> None:
    data = used(tmp_path / "one")
    copy = tmp_path / "two"
    copy.mkdir()
    (copy / "place").write_bytes(data.place.read_bytes())
    with pytest.raises(Moved):
        used(copy)


@pytest.mark.parametrize("name", ["with\nline", "caf\udce9"])
def test_any_name_is_kept(tmp_path: Path, name: str) -> None:
    data = used(tmp_path / name)
    used(tmp_path / name)
    assert json.loads(data.place.read_text()) == [str(tmp_path / name)]


@pytest.mark.parametrize("content", ["", "{}", "[1]", '["a\\u0000b"]', "no paths"])
def test_a_file_that_says_nothing_is_named(tmp_path: Path, content: str) -> None:
    (tmp_path / "place").write_text(content)
    with pytest.raises(CannotUse, match="place"):
        used(tmp_path)
