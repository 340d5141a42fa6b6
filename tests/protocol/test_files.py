"""Names of files: whatever a sender calls one, it is a name in one directory on every machine."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.protocol.files import SentFile, read_files, safe_name, write_files


@pytest.mark.parametrize(
    ("named", "safe"),
    [
        ("report.pdf", "report.pdf"),
        ("../../etc/passwd", "passwd"),
        ("C:\\Users\\me\\plan.txt", "plan.txt"),
        (".gitignore", "gitignore"),
        ("..", "file"),
        ("", "file"),
        ("/", "file"),
        ("a\nb\0c\u202etxt.exe", "a_b_c_txt.exe"),
        ('a"b<c>.md', "a_b_c_.md"),
        ("naïve café ✓.txt", "naïve café ✓.txt"),
        ("x" * 300 + ".tar", "x" * 116 + ".tar"),
        ("ends with dots. . .", "ends with dots"),
    ],
)
def test_a_name_is_safe_and_can_be_recognised(named: str, safe: str) -> None:
    assert safe_name(named) == safe


@given(st.text())
def test_no_name_leads_anywhere(named: str) -> None:
    safe = safe_name(named)
    assert 0 < len(safe.encode()) <= 120
    assert safe[0] != "."
    assert not set(safe) & set("/\\\0\n\r")
    assert safe_name(safe) == safe


@given(st.lists(st.builds(SentFile, id=st.text(), name=st.text(), kind=st.text(), size=st.integers(0))))
def test_files_are_read_as_they_were_written(files: list[SentFile]) -> None:
    assert read_files(write_files(files)) == tuple(files)


@pytest.mark.parametrize("stored", ["", "{", "null", "7", '[["a"]]', '[["a", "b", "c", "d"]]', "[7]"])
def test_what_is_no_list_of_files_is_refused(stored: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - whatever says so
        read_files(stored)
