"""What a project could be made of, and why it cannot."""

import os
from pathlib import Path

import pytest

from clew.ports.workspaces import SourceFound, SourceKind
from clew.workspaces import GitWorkspaces
from clew.workspaces.faults import (
    BareRepository,
    BelowARepository,
    EmptyRepository,
    ForeignOwner,
    GitMissing,
    LinkedWorktree,
    NoSuchBase,
    NotARepository,
    SourceMissing,
    SourceUnreachable,
)
from clew.workspaces.source import is_address
from tests.workspaces.kit import Scene, git, repository, run


@pytest.fixture
def workspaces(tmp_path: Path) -> GitWorkspaces:
    return GitWorkspaces(tmp_path / "root")


def test_a_repository_is_known_by_its_real_path(workspaces: GitWorkspaces, tmp_path: Path) -> None:
    at = repository(tmp_path / "project", "trunk")
    (tmp_path / "link").symlink_to(at)
    for spelling in (f"{at}/", f"{at}/../project", str(tmp_path / "link")):
        found = run(workspaces.inspect(spelling))
        assert found == SourceFound(str(at), SourceKind.REPOSITORY)
    git(at, "checkout", "--quiet", "--detach")
    assert run(workspaces.inspect(str(at))) == found


def test_an_address_is_asked(workspaces: GitWorkspaces, tmp_path: Path) -> None:
    at = repository(tmp_path / "project", "trunk")
    found = run(workspaces.inspect(f"file://{at}"))
    assert found == SourceFound(f"file://{at}", SourceKind.ADDRESS)
    with pytest.raises(SourceUnreachable, match="no git repository at the address"):
        run(workspaces.inspect(f"file://{tmp_path}/nowhere"))
    (tmp_path / "empty").mkdir()
    git(tmp_path / "empty", "init", "--quiet")
    with pytest.raises(EmptyRepository):
        run(workspaces.inspect(f"file://{tmp_path}/empty"))


@pytest.mark.parametrize("address", ["{at}", "file://{at}"])
def test_a_base_that_is_not_there_is_refused(workspaces: GitWorkspaces, tmp_path: Path, address: str) -> None:
    at = repository(tmp_path / "project", "trunk")
    git(at, "branch", "a/b")
    git(at, "tag", "v1")
    source = address.format(at=at)
    for base in ("trunk", "a/b", "v1", git(at, "rev-parse", "HEAD")):
        assert run(workspaces.inspect(source, base=base)).source == source
    for odd in ("nope", "b", "a", "--all", "trunk trunk", "*"):
        with pytest.raises(NoSuchBase, match=f"project has no branch.* {odd!r}".replace("*'", "[*]'")):
            run(workspaces.inspect(source, base=odd))
    with pytest.raises(NoSuchBase) as told:
        run(workspaces.inspect(str(at), base="nope"))
    assert "trunk" in told.value.remedy


def test_what_is_no_repository_is_taken_only_when_asked(workspaces: GitWorkspaces, tmp_path: Path) -> None:
    (tmp_path / "papers").mkdir()
    with pytest.raises(NotARepository, match="add it as a plain directory with --plain"):
        run(workspaces.inspect(str(tmp_path / "papers")))
    found = run(workspaces.inspect(str(tmp_path / "papers"), plain=True))
    assert found.kind is SourceKind.PLAIN
    with pytest.raises(SourceMissing):
        run(workspaces.inspect(str(tmp_path / "nothing"), plain=True))
    (tmp_path / "file").touch()
    with pytest.raises(NotARepository, match="is a file"):
        run(workspaces.inspect(str(tmp_path / "file")))


def test_parts_and_copies_of_a_repository_name_the_whole(scene: Scene) -> None:
    with pytest.raises(BelowARepository) as below:
        run(scene.workspaces.inspect(str(scene.project / "sub")))
    assert below.value.remedy == f"Name {scene.project}."
    scene.ready()
    with pytest.raises(LinkedWorktree) as linked:
        run(scene.workspaces.inspect(str(scene.directory())))
    assert linked.value.remedy == f"Name {scene.project}."
    with pytest.raises(BareRepository):
        run(scene.workspaces.inspect(str(scene.project / ".git")))


def test_bare_and_empty_ones_are_told_apart(workspaces: GitWorkspaces, tmp_path: Path) -> None:
    for name, option in (("bare", "--bare"), ("empty", "--quiet")):
        (tmp_path / name).mkdir()
        git(tmp_path / name, "init", "--quiet", option)
    with pytest.raises(BareRepository, match="file://"):
        run(workspaces.inspect(str(tmp_path / "bare")))
    with pytest.raises(EmptyRepository, match="no commit"):
        run(workspaces.inspect(str(tmp_path / "empty")))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives a directory away")
def test_a_repository_of_another_user_is_refused_with_the_way_to_allow_it(scene: Scene) -> None:
    os.chown(scene.project, 65534, 65534)
    os.chown(scene.project / ".git", 65534, 65534)
    with pytest.raises(ForeignOwner) as foreign:
        run(scene.workspaces.inspect(str(scene.project)))
    assert "dubious ownership" in foreign.value.words
    assert "safe.directory" in foreign.value.remedy
    held = scene.held()
    assert "dubious ownership" in held.words
    assert "safe.directory" in held.words


def test_a_missing_git_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(GitMissing, match="Install git"):
        run(GitWorkspaces(tmp_path / "root").inspect(str(tmp_path)))


def test_an_address_is_told_from_a_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a:b").mkdir()
    assert is_address("https://example.invalid/x.git")
    assert is_address("git@example.invalid:x/y.git")
    assert not is_address("a:b")
    assert not is_address("/a:b")
    assert not is_address("./c:d")
    assert not is_address("name")
