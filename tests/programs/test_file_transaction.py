"""Files put in place together: all of them, or every file as it was, with nothing left beside them."""

from pathlib import Path

import pytest

from clew.programs.file_transaction import FileTransaction, free_name, is_temporary


def tree(root: Path) -> dict[str, bytes | None]:
    return {str(path.relative_to(root)): path.read_bytes() if path.is_file() else None for path in root.rglob("*")}


def changes(root: Path) -> FileTransaction:
    """Replaces `old`, makes `deep/new`, moves `a` to `b` and removes `c`."""
    for name in ("old", "a", "c"):
        (root / name).write_bytes(name.encode())
    transaction = FileTransaction()
    transaction.put(root / "old", b"replaced")
    transaction.put(root / "deep" / "er" / "new", b"new")
    transaction.move(root / "a", root / "b")
    transaction.remove(root / "c")
    return transaction


def test_a_commit_leaves_the_files_and_nothing_else(tmp_path: Path) -> None:
    changes(tmp_path).commit()
    files = {"old": b"replaced", "deep": None, "deep/er": None, "deep/er/new": b"new", "b": b"a"}
    assert tree(tmp_path) == files
    assert (tmp_path / "deep" / "er" / "new").stat().st_mode & 0o777 == 0o600


def test_a_roll_back_restores_every_file(tmp_path: Path) -> None:
    changes(tmp_path).roll_back()
    assert tree(tmp_path) == {"old": b"old", "a": b"a", "c": b"c"}


def test_a_roll_back_may_leave_some(tmp_path: Path) -> None:
    changes(tmp_path).roll_back(unless=lambda path: path.name == "new")
    files = {"old": b"old", "a": b"a", "c": b"c", "deep": None, "deep/er": None, "deep/er/new": b"new"}
    assert tree(tmp_path) == files


def test_a_block_that_raises_rolls_back(tmp_path: Path) -> None:
    def put_below_a_file() -> None:
        with FileTransaction() as transaction:
            transaction.put(tmp_path / "new", b"new")
            transaction.put(tmp_path / "file" / "below", b"never")

    (tmp_path / "file").write_bytes(b"in the way")
    with pytest.raises(NotADirectoryError):
        put_below_a_file()
    assert tree(tmp_path) == {"file": b"in the way"}


def test_a_replaced_file_can_be_kept_under_another_name(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(b"damaged")
    with FileTransaction() as transaction:
        transaction.put(path, b"whole", keep_as=free_name(path, "damaged"))
    assert tree(tmp_path) == {"x.jsonl": b"whole", "x.jsonl.damaged-1": b"damaged"}
    assert free_name(path, "damaged").name == "x.jsonl.damaged-2"


def test_where_links_cannot_be_made_files_are_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(1, "no links here")

    monkeypatch.setattr("os.link", refuse)
    changes(tmp_path).roll_back()
    assert tree(tmp_path) == {"old": b"old", "a": b"a", "c": b"c"}


def test_what_a_killed_transaction_leaves_is_known_by_its_name(tmp_path: Path) -> None:
    changes(tmp_path)
    assert sorted(is_temporary(path) for path in tmp_path.iterdir()) == [False, False, False, True, True]
