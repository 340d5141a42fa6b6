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
        ("", "it has no colon"),
        ("acme/app#12", "it has no colon"),
        (":x", "cannot be the source of a subject"),
        ("GitHub:x", "cannot be the source of a subject"),
        ("1st:x", "cannot be the source of a subject"),
        (f"{'s' * 33}:x", "cannot be the source of a subject"),
        ("git hub:x", "cannot be the source of a subject"),
        ("github:", "cannot be the name of a subject"),
        ("github: x", "cannot be the name of a subject"),
        ("github:x ", "cannot be the name of a subject"),
        ("github:a\nb", "cannot be the name of a subject"),
        ("github:a\x00b", "cannot be the name of a subject"),
        ("github:\x1b", "cannot be the name of a subject"),
        (f"github:{'n' * 201}", "cannot be the name of a subject"),
    ],
)
def test_what_is_none_is_refused_with_what_is_wrong(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        read_subject(text)
