"""The source of a project: a path or an address, checked before it is added; and the clone of an address."""

import os
import re
import secrets
import shutil
from pathlib import Path

from clew.ports.workspaces import ProjectSource, SourceFound, SourceKind
from clew.workspaces.faults import (
    BareRepository,
    BelowARepository,
    EmptyRepository,
    ForeignOwner,
    GitRefused,
    LinkedWorktree,
    NoSuchBase,
    NotARepository,
    SourceMissing,
    SourceUnreachable,
    explain_git,
    without_credentials,
)
from clew.workspaces.git import NOWHERE, Git, Repository
from clew.workspaces.layout import Layout
from clew.workspaces.lock import locked
from clew.workspaces.paths import resolved, same_path
from clew.workspaces.repository import common_dir_of, git_file

_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_HOST_AND_PATH = re.compile(r"[^/:]+:")
_COMMIT = re.compile(r"[0-9a-f]{7,64}")
_NAMED = 5
_SHOWN = 200


async def inspect_source(git: Git, source: str, plain: bool = False, base: str | None = None) -> SourceFound:
    """What is at a path or an address. With a `base`: that it exists there, as a branch, a tag or a commit."""
    if is_address(source):
        return await _address(git, source, base)
    path = _path(source)
    if not path.exists():
        raise SourceMissing(f"There is nothing at {path}.", "Check the path.")
    if not path.is_dir():
        raise NotARepository(f"{path} is a file.", "Name the project's directory.")
    if plain:
        return SourceFound(os.fspath(resolved(path)), SourceKind.PLAIN)
    found = await _repository(git, path)
    if base:
        await _must_have(git, path, base)
    return found


def _path(source: str) -> Path:
    """A relative path would mean the directory in which the server was started."""
    try:
        path = Path(source).expanduser()
        path.exists()
    except (OSError, RuntimeError, ValueError) as fault:
        why = fault.strerror if isinstance(fault, OSError) else str(fault).rstrip(".")
        raise SourceMissing(f"{source[:_SHOWN]!r} cannot be a path: {why}.", "Check the path.") from fault
    if not path.is_absolute():
        raise SourceMissing(f"{source[:_SHOWN]!r} is not an absolute path.", "Begin it with /, or give a URL.")
    return path


def is_address(source: str) -> bool:
    """A URL, or the short form `host:path` unless there is a file of that name."""
    if _ADDRESS.match(source):
        return True
    return _HOST_AND_PATH.match(source) is not None and not os.path.lexists(source)


async def _address(git: Git, source: str, base: str | None) -> SourceFound:
    shown = without_credentials(source)
    name = (base or "").removeprefix("origin/")
    wanted = [f"refs/heads/{name}", f"refs/tags/{name}"] if name else []
    asked = ("ls-remote", "--", source, "HEAD", *wanted)
    answer = await git.ask(NOWHERE, *asked, seconds=git.deadlines.fetch)
    if not answer.ok:
        words, remedy = explain_git(answer.err, "git ls-remote failed.")
        raise SourceUnreachable(f"{shown}: {words}", remedy)
    if re.search(r"^[0-9a-f]{40,64}\tHEAD$", answer.text, re.MULTILINE) is None:
        raise EmptyRepository(f"{shown} has no commit on its default branch.", "Push a first commit there.")
    # ls-remote lists branches and tags. Whether a commit exists is known once it is cloned.
    if name and not _COMMIT.fullmatch(name) and not _refs(answer.text) & set(wanted):
        raise NoSuchBase(f"{shown} has no branch or tag {name!r}.", f"See them with `git ls-remote {shown}`.")
    return SourceFound(source, SourceKind.ADDRESS)


async def _repository(git: Git, path: Path) -> SourceFound:
    at = Repository(path)
    answer = await git.ask(at, "rev-parse", "--is-bare-repository", "--is-inside-git-dir")
    if not answer.ok:
        raise _refused(path, answer.err)
    if "true" in answer.text.split():
        raise BareRepository(
            f"{path} is a bare repository, or inside a git directory.",
            f"Name a checkout of it, or file://{path}, which Clew clones.",
        )
    top = Path((await git.do(at, "rev-parse", "--show-toplevel")).text)
    if not same_path(top, path):
        raise BelowARepository(f"{path} is a part of the repository {top}.", f"Name {top}.")
    admin = git_file(path / ".git")
    common = None if admin is None else common_dir_of(admin)
    if admin is not None and common is not None and not same_path(common, admin):
        main = common.parent if common.name == ".git" else common
        raise LinkedWorktree(f"{path} is a worktree of {main}.", f"Name {main}.")
    if not (await git.ask(at, "rev-parse", "--verify", "--quiet", "HEAD^{commit}")).ok:
        branch = await git.ask(at, "symbolic-ref", "--quiet", "--short", "HEAD")
        on = f" on its branch {branch.text}" if branch.ok else ""
        raise EmptyRepository(f"{path} has no commit{on}.", "Make a first commit there.")
    return SourceFound(os.fspath(resolved(path)), SourceKind.REPOSITORY)


def _refs(listed: str) -> set[str]:
    return {line.partition("\t")[2] for line in listed.splitlines()}


async def _must_have(git: Git, path: Path, base: str) -> None:
    at = Repository(path)
    if (await git.ask(at, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{base}^{{commit}}")).ok:
        return
    shown = ("for-each-ref", f"--count={_NAMED}", "--sort=-committerdate", "--format=%(refname:short)", "refs/heads")
    there = ", ".join((await git.ask(at, *shown)).text.split())
    remedy = (
        f"Name one that exists ({there}), or a tag or a commit." if there else "Name a tag or a commit that exists."
    )
    raise NoSuchBase(f"{path} has no branch {base!r}.", remedy)


def _refused(path: Path, said: str) -> Exception:
    words, remedy = explain_git(said, "git rev-parse failed.")
    if "dubious ownership" in said:
        return ForeignOwner(words, remedy)
    if "not a git repository" in said:
        return NotARepository(
            f"{path} is not a git repository.", "Run git init there, or add it as a plain directory with --plain."
        )
    return GitRefused(words, remedy)


_FETCH = "+refs/heads/*:refs/remotes/origin/*"


class Mirror:
    """A bare clone, one on each machine, that all worktrees of the project share. The lanes' branches are its own; the
    address's branches are under `origin`, as in any clone."""

    def __init__(self, git: Git, layout: Layout, source: ProjectSource) -> None:
        self._git = git
        self._layout = layout
        self._source = source
        self.path = layout.mirror(source.project)

    async def ensure(self) -> bool:
        """Clone it unless it exists. Returns whether it did. The clone appears under its name once it is complete."""
        async with locked(self._layout.cloning(self._source.project)):
            if self.path.is_dir():
                return False
            _sweep(self.path)
            beside = self.path.with_name(f"{self.path.name}.{secrets.token_hex(4)}")
            beside.parent.mkdir(parents=True, exist_ok=True)
            try:
                await self._git.do(NOWHERE, "init", "--quiet", "--bare", "--template=", "--", os.fspath(beside))
                at = Repository(git_dir=beside)
                await self._git.do(at, "config", "remote.origin.url", self._source.source)
                await self._git.do(at, "config", "remote.origin.fetch", _FETCH)
                await self._fetch(at)
                beside.rename(self.path)
            finally:
                shutil.rmtree(beside, ignore_errors=True)
        return True

    async def refresh(self) -> None:
        """Fetch what the address has now. The address may have changed."""
        async with locked(self._layout.cloning(self._source.project)):
            at = Repository(git_dir=self.path)
            if (await self._git.ask(at, "config", "remote.origin.url")).text != self._source.source:
                await self._git.do(at, "config", "remote.origin.url", self._source.source)
            await self._fetch(at)

    async def _fetch(self, at: Repository) -> None:
        seconds = self._git.deadlines.fetch
        try:
            await self._git.do(at, "fetch", "--quiet", "--prune", "--no-auto-gc", "--", "origin", seconds=seconds)
        except GitRefused as fault:
            words = f"{without_credentials(self._source.source)} cannot be fetched: {fault.words}"
            raise SourceUnreachable(words, fault.remedy) from fault
        # It fails for an address without a default branch, and then there is none here either.
        await self._git.ask(at, "remote", "set-head", "origin", "--auto", seconds=seconds)


def _sweep(path: Path) -> None:
    """Remove clones that were interrupted."""
    for left in path.parent.glob(f"{path.name}.*"):
        shutil.rmtree(left, ignore_errors=True)
