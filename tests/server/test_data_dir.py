"""The token: made once, and kept from others."""

import errno
import os
import stat
import threading
from pathlib import Path

import pytest

from clew.server.data_dir import CannotUse, DiskFull, NoToken, TokenFault, make_token, read_token


def test_it_is_made_once_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "token"
    with pytest.raises(NoToken, match="clew up"):
        read_token(path)
    token = make_token(path)
    assert len(token) >= 40
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert make_token(path) == read_token(path) == token
    assert [each.name for each in tmp_path.iterdir()] == ["token"]


def test_a_wide_umask_does_not_widen_it(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        make_token(tmp_path / "token")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "token").stat().st_mode) == 0o600


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o644])
def test_one_that_others_can_read_is_refused(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "token"
    token = make_token(path)
    path.chmod(mode)
    for use in (read_token, make_token):
        with pytest.raises(TokenFault, match=f"mode {mode:04o}") as told:
            use(path)
        assert token not in str(told.value)


@pytest.mark.parametrize("content", [b"", b"short\n", b"\xff" * 50, b"a b" * 20, b"x" * 4000])
def test_one_that_is_none_is_refused_and_not_replaced(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "token"
    path.write_bytes(content)
    path.chmod(0o600)
    with pytest.raises(TokenFault, match="does not hold a valid token"):
        make_token(path)
    assert path.read_bytes() == content


def test_a_link_and_a_directory_are_refused(tmp_path: Path) -> None:
    real = tmp_path / "real"
    make_token(real)
    (tmp_path / "link").symlink_to(real)
    (tmp_path / "directory").mkdir(mode=0o700)
    for name in ("link", "directory"):
        with pytest.raises(TokenFault):
            make_token(tmp_path / name)


def test_of_many_that_make_it_at_once_all_get_the_same(tmp_path: Path) -> None:
    path = tmp_path / "token"
    found: list[str] = []
    start = threading.Barrier(8)

    def make() -> None:
        start.wait(30)
        found.append(make_token(path))

    threads = [threading.Thread(target=make) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(found) == 8
    assert len(set(found)) == 1
    assert [each.name for each in tmp_path.iterdir()] == ["token"]


def test_a_directory_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(CannotUse, match="missing"):
        make_token(tmp_path / "missing" / "token")


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_is_told_as_such(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    def full(_: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(DiskFull, match=r"The disk of .+/token is full\. Free some space") as told:
        make_token(tmp_path / "token")
    assert told.value.code == "data:disk-full"
    assert list(tmp_path.iterdir()) == []
