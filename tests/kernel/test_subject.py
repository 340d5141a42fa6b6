"""Outside subjects: written as source:name, and nothing else names a thread."""

import pytest

from clew.kernel import Subject, read_subject
from clew.kernel.ids import subject_thread


@pytest.mark.case("W14")
@pytest.mark.parametrize(
    ("text", "source", "name"),
    [
        ("github:acme/app#12", "github", "acme/app#12"),
        ("slack:C024:1700000000.1", "slack", "C024:1700000000.1"),
        ("a:b", "a", "b"),
        ("git.example.org:x y", "git.example.org", "x y"),
        (f"mail:{'n' * 200}", "mail", "n" * 200),
    ],
)
def test_a_subject_is_a_source_and_its_name_there(text: str, source: str, name: str) -> None:
    found = read_subject(text)
    assert (found, str(found)) == (Subject(source, name), text)
    assert found.thread == subject_thread(source, name)


@pytest.mark.case("W14")
@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "does not say where"),
        ("acme/app#12", "does not say where"),
        (":x", "no source"),
        ("GitHub:x", "no source"),
        ("1st:x", "no source"),
        (f"{'s' * 33}:x", "no source"),
        ("git hub:x", "no source"),
        ("github:", "no name"),
        ("github: x", "no name"),
        ("github:x ", "no name"),
        ("github:a\nb", "no name"),
        ("github:a\x00b", "no name"),
        ("github:\x1b", "no name"),
        (f"github:{'n' * 201}", "no name"),
    ],
)
def test_what_is_none_is_refused_with_what_is_wrong(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        read_subject(text)
