"""One spelling for one place, and nothing below the root that is not."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.kernel import ProjectId, WorkspaceId
from clew.workspaces import paths as spelling
from clew.workspaces.layout import Layout
from clew.workspaces.paths import directory_at, escape_of, resolved

PARTS = st.lists(st.sampled_from(["a", "b", "in", "out", "loop", "..", ".", "", "ü", "x y"]), min_size=1, max_size=6)


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A root with links that stay inside, lead out, and in a circle."""
    place = tmp_path_factory.mktemp("tree")
    root = place / "root"
    (root / "a" / "b").mkdir(parents=True)
    (place / "outside").mkdir()
    (root / "in").symlink_to(root / "a")
    (root / "a" / "out").symlink_to(place / "outside")
    (root / "loop").symlink_to(root / "loop")
    return place


@pytest.mark.case("D07")
@given(parts=PARTS)
def test_what_is_let_through_is_below_the_root(tree: Path, parts: list[str]) -> None:
    root = tree / "root"
    directory = Path(os.path.join(root, *parts) if all(parts) else f"{root}/{'/'.join(parts)}")  # noqa: PTH118
    try:
        outside = escape_of(directory, root)
    except OSError:
        assert "loop" in parts
        return
    real = os.path.realpath(directory)
    below = real.startswith(f"{os.path.realpath(root)}/")
    assert below or outside is not None


@pytest.mark.case("C18")
@given(parts=PARTS)
def test_a_place_resolved_twice_is_the_same(tree: Path, parts: list[str]) -> None:
    try:
        once = resolved(tree / "root" / "/".join(parts).strip("/"))
    except OSError:
        return
    assert resolved(once) == once
    assert directory_at(once).place == os.fspath(once)


@pytest.mark.case("C18")
def test_on_a_disk_that_takes_any_case_the_stored_name_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "Papers" / "Old").mkdir(parents=True)
    below = len(tmp_path.parts)

    def any_case(one: Path, other: Path) -> bool:
        return len(one.parts) > below and os.fspath(one).lower() == os.fspath(other).lower()

    monkeypatch.setattr(spelling, "_is_same", any_case)
    for name in ("papers/old", "PAPERS/OLD", "Papers/Old"):
        assert resolved(tmp_path / name) == tmp_path / "Papers" / "Old"
    assert resolved(tmp_path / "PAPERS" / "new") == tmp_path / "Papers" / "new"


@given(names=st.lists(st.text(min_size=1), min_size=2, max_size=2, unique=True))
def test_ids_become_names_of_files_whatever_they_are(names: list[str]) -> None:
    layout = Layout(Path("/srv/clew"))
    one, two = (layout.record(WorkspaceId(name)) for name in names)
    assert one != two
    assert one.parent == two.parent == layout.records
    assert len(os.fsencode(one.name)) < 200
    assert layout.mirror(ProjectId(names[0])).parent.parent == layout.root
