import os
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from clew.web.diff import Change, DiffFile, LineKind, files_of, unquoted

NAMES = st.text(
    st.characters(codec="utf-8", exclude_characters="/\0", exclude_categories=["Cs"]), min_size=1, max_size=12
).filter(lambda name: name not in (".", "..") and name.lower() != ".git" and len(name.encode()) < 200)
LINES = st.lists(
    st.one_of(
        st.sampled_from(
            ["", "same", "diff --git a/x b/x", "@@ -1 +1 @@", "--- a/x", "+++ b/x", "\\ no", "<b>\r", "\f"]
        ),
        st.text(st.characters(codec="utf-8", exclude_characters="\n\0", exclude_categories=["Cs"]), max_size=8),
    ),
    max_size=30,
)
CONTENT = st.one_of(
    st.builds(lambda lines, end: ("\n".join(lines) + end).encode(), LINES, st.sampled_from(["", "\n"])),
    st.binary(max_size=40),
)
TREES = st.dictionaries(NAMES, st.tuples(CONTENT, st.booleans()), max_size=5)


def git(at: Path, *arguments: str, config: tuple[str, ...] = ()) -> bytes:
    settings = [part for each in config for part in ("-c", each)]
    clean = {"PATH": os.environ["PATH"], "HOME": str(at), "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1"}
    run = subprocess.run(["git", *settings, *arguments], cwd=at, env=clean, check=True, capture_output=True, timeout=60)
    return run.stdout


def tree_of(at: Path, files: dict[str, tuple[bytes, bool]]) -> str:
    for old in at.iterdir():
        if old.name != ".git":
            old.unlink()
    for name, (content, runs) in files.items():
        (at / name).write_bytes(content)
        (at / name).chmod(0o755 if runs else 0o644)
    git(at, "add", "-A", "--force", ".", config=("core.autocrlf=false",))
    return git(at, "write-tree").decode().strip()


def difference(
    before: dict[str, tuple[bytes, bool]], after: dict[str, tuple[bytes, bool]], *config: str
) -> tuple[str, list[bytes]]:
    """Git's text, as the server has it, and the changed files by git's own list."""
    with TemporaryDirectory() as directory:
        at = Path(directory)
        git(at, "init", "-q", "--template=")
        old, new = tree_of(at, before), tree_of(at, after)
        said = git(
            at, "diff", "--no-color", "--find-renames", "--src-prefix=a/", "--dst-prefix=b/", old, new, config=config
        )
        listed = git(at, "diff", "--raw", "-z", "--find-renames", old, new)
        return said.decode("utf-8", "replace"), listed.split(b"\0")


def lines_of(content: bytes) -> list[str]:
    text = content.decode("utf-8", "replace")
    lines = text.split("\n")
    return lines[:-1] if lines[-1] == "" else lines


def patched(file: DiffFile, old: list[str]) -> list[str]:
    """The file after the change, made of the one before and the hunks."""
    new: list[str] = []
    at = 0
    for hunk in file.hunks:
        starts = [line.old for line in hunk.lines if line.old is not None]
        # Where a hunk has no old line, its place is after the line that its head names.
        first = starts[0] - 1 if starts else hunk.old_start
        new += old[at:first]
        at = first
        for line in hunk.lines:
            match line.kind:
                case LineKind.SAME:
                    assert (line.old, line.new) == (at + 1, len(new) + 1)
                    assert line.text == old[at]
                    new.append(line.text)
                    at += 1
                case LineKind.REMOVED:
                    assert (line.old, line.new) == (at + 1, None)
                    assert line.text == old[at]
                    at += 1
                case LineKind.ADDED:
                    assert (line.old, line.new) == (None, len(new) + 1)
                    new.append(line.text)
                case LineKind.NOTE:
                    assert (line.old, line.new) == (None, None)
    return new + old[at:]


@pytest.mark.case("U04")
@given(TREES, TREES, st.sampled_from([(), ("core.quotePath=false",), ("diff.suppressBlankEmpty=true",)]))
@example({'a b"\n': (b"x\n", False)}, {'a b"\n': (b"x\n", True)}, ())
@example({"b b": (b"", False)}, {}, ())
@example({}, {"x b": (b"", False)}, ())
@example({"x": (b"a\nb\nc\nd\n", False)}, {"\t y ": (b"a\nb\nc\nd\n", False)}, ())
@example({"x": (b"-- a\n", False)}, {"x": (b"++ b", False)}, ())
def test_the_files_of_a_diff_are_those_that_git_compared(
    before: dict[str, tuple[bytes, bool]], after: dict[str, tuple[bytes, bool]], config: tuple[str, ...]
) -> None:
    text, raw = difference(before, after, *config)
    files = files_of(text)
    expected, fields = [], iter(raw)
    for head in fields:
        if head:
            status = head.split()[-1][:1]
            one = next(fields).decode()
            two = next(fields).decode() if status in b"RC" else one
            expected.append((None if status == b"A" else one, None if status == b"D" else two))
    assert [(file.old, file.new) for file in files] == expected
    for file in files:
        assert file.whole
        if file.binary:
            assert file.hunks == ()
            continue
        old = before[file.old][0] if file.old is not None else b""
        new = after[file.new][0] if file.new is not None else b""
        assert patched(file, lines_of(old)) == lines_of(new)
        if file.old is not None and file.new is not None and before[file.old][1] != after[file.new][1]:
            assert {file.old_mode, file.new_mode} == {"100644", "100755"}


@given(TREES, TREES, st.integers(0, 10_000))
def test_a_diff_that_was_cut_keeps_what_is_there(
    before: dict[str, tuple[bytes, bool]], after: dict[str, tuple[bytes, bool]], length: int
) -> None:
    text, _ = difference(before, after)
    cut = text[: text.rfind("\n", 0, length) + 1]
    whole, part = files_of(text), files_of(cut)
    assert len(part) <= len(whole)
    assert part[:-1] == whole[: max(0, len(part) - 1)]
    for file, same in zip(part, whole, strict=False):
        lines = [line for hunk in file.hunks for line in hunk.lines]
        assert lines == [line for hunk in same.hunks for line in hunk.lines][: len(lines)]


@given(st.text())
def test_any_text_is_read(text: str) -> None:
    for file in files_of(text):
        assert file.lines >= file.added + file.removed


def test_a_renamed_file_has_both_names_and_its_changes() -> None:
    before = {"old name": (b"1\n2\n3\n4\n5\n6\n", False)}
    (file,) = files_of(difference(before, {"new\tname": (b"1\n2\n3\n4\n5\nsix\n", False)})[0])
    assert (file.old, file.new, file.change) == ("old name", "new\tname", Change.RENAMED)
    assert (file.added, file.removed) == (1, 1)
    assert file.paths == ("new\tname", "old name")


def test_a_hunk_that_was_cut_is_said_to_be() -> None:
    text = difference({"x": (b"1\n2\n", False)}, {"x": (b"3\n4\n", False)})[0]
    assert files_of(text)[0].whole
    assert not files_of(text[: text.rindex("+4")])[0].whole


def test_quoted_names() -> None:
    assert unquoted('"a\\303\\244\\t\\"\\\\"') == 'aä\t"\\'
    assert unquoted("plain name") == "plain name"
    assert unquoted('"') == '"'
