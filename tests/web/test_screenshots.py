"""The pictures of the docs: of pages that there are, and small."""

from pathlib import Path

import pytest

from tests.web.routes import routes
from tests.web.screenshots import INTO, MOST, STEPS, keep, name_of


def test_pictures_are_named_by_their_pages() -> None:
    assert [name_of(route) for route in ("/", "/runs", "/runs/{run}", "/threads/{ref}/changes")] == [
        "home",
        "runs",
        "run",
        "thread-changes",
    ]
    assert len({name_of(route) for route in routes()}) == len(routes())


def taken(root: Path, sizes: list[int]) -> Path:
    for number, size in enumerate(sizes):
        (root / str(number)).mkdir()
        for name in ("one.webp", "two.webp"):
            (root / str(number) / name).write_bytes(bytes(size // 2))
    return root


def test_the_best_that_are_small_enough_are_kept_and_nothing_else(tmp_path: Path) -> None:
    (into := tmp_path / "into").mkdir()
    (into / "old.webp").touch()
    (tmp_path / "taken").mkdir()
    sizes = [MOST * 2, MOST, *[100] * (len(STEPS) - 2)]
    assert keep(taken(tmp_path / "taken", sizes), into) == MOST
    assert sorted(file.name for file in into.iterdir()) == ["one.webp", "two.webp"]


def test_too_many_are_refused(tmp_path: Path) -> None:
    (tmp_path / "taken").mkdir()
    with pytest.raises(SystemExit, match="too much"):
        keep(taken(tmp_path / "taken", [MOST + 2] * len(STEPS)), tmp_path / "into")


def test_the_pictures_that_there_are_stay_small() -> None:
    assert sum(file.stat().st_size for file in INTO.glob("*")) <= MOST
