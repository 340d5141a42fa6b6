"""Checking out a worktree, or finishing one that was begun. The caller holds the repository's lock."""

import contextlib
import os
import shutil
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import count
from pathlib import Path

from clew.kernel import Found, Instant
from clew.ports.fault import Fault
from clew.ports.workspaces import SourceKind
from clew.workspaces.branch import lane_setting, oldest_name
from clew.workspaces.faults import CannotMake
from clew.workspaces.first_look import missing_in_worktree
from clew.workspaces.git import Git, Repository, git_refused
from clew.workspaces.handover import Handover
from clew.workspaces.layout import Layout
from clew.workspaces.marker import NAME, Marker, Record
from clew.workspaces.place_state import INITIALIZING, PlaceState, Site
from clew.workspaces.repository import head_of, lock_reason, pointer_of, unfinished_operation


class Checkout:
    def __init__(self, git: Git, layout: Layout) -> None:
        self._git = git
        self._layout = layout
        self.handover = Handover(git, layout)

    async def make(self, site: Site, where: Repository, seen: PlaceState, keep: Sequence[int]) -> Record:
        """Make a worktree with all its files, on the lane's branch. It is not ready before `finish`.

        `keep` are open lock files that git inherits: if this process is killed, they are held until git has ended.
        """
        assert site.common is not None, "nothing is made of a project that is not there"
        base, start = await self._beginning(site, where, seen)
        origin = None if seen.branch and not seen.half else await self.handover.origin(site, where, base)
        start = start if origin is None or seen.branch else origin.commit
        if not seen.branch and not seen.half:
            site = replace(site, branch=await self._free_name(where, site.branch))
        # A remake that was interrupted is finished as a remake.
        remaking = site.record.remaking if seen.half and site.record is not None else ""
        if seen.found is Found.DIRECTORY_GONE:
            remaking = await describe_loss(self._git, where, site, seen.reference)
        elif not seen.branch and not seen.half:
            said = "" if origin is None else origin.words
            remaking = f"{said} {await missing_in_worktree(self._git, site, where, start)}".strip()
        record = self._record(site, base, start, remaking)
        if origin is not None:
            record = replace(record, followed=origin.state, carried=origin.state)
        record.write(self._layout.record(site.wanted.workspace.id))
        site.directory.parent.mkdir(parents=True, exist_ok=True)
        half = seen.half and await self._finish_half(site, keep)
        if not half:
            await self._clear(site, where, seen, keep)
            await self._add(site, where, seen.branch, start, keep)
        if origin is not None:
            await self.handover.carry(site, origin)
        return record

    def finish(self, site: Site, record: Record, now: Instant) -> Record:
        """Mark it as ready. Returns its record."""
        pointer = pointer_of(site.directory)
        if pointer is None:
            raise CannotMake("it vanished while it was being made.", "Wake the lane again.")
        wanted = site.wanted
        remade = record.remaking or record.remade
        done = replace(record, ready_at=record.ready_at or now, remade=remade, remaking="")
        done.write(self._layout.record(wanted.workspace.id))
        Marker(wanted.workspace.id, wanted.lane, wanted.workspace.project).write(pointer.admin / NAME)
        return done

    async def mend(self, where: Repository, keep: Sequence[int]) -> None:
        """After a move of the project. Inspecting it again shows whether that helped."""
        await self._git.ask(where, "worktree", "repair", keep=keep)

    async def mend_back(self, where: Repository, directory: Path, keep: Sequence[int]) -> None:
        """After a move of the worktree."""
        await self._git.ask(where, "worktree", "repair", os.fspath(directory), keep=keep)

    async def _beginning(self, site: Site, where: Repository, seen: PlaceState) -> tuple[str, str]:
        """The base by its full name, and the commit that a new branch starts from."""
        source = site.wanted.source
        assert source is not None, "a worktree is made of a project"
        base = await self._base(where, source.base, source.kind)
        commit = await self._git.ask(
            where, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{base}^{{commit}}"
        )
        if commit.ok:
            # HEAD moves with every checkout, so it is no base to compare with later; its commit is.
            return base if base.startswith("refs/") else commit.text, commit.text
        if commit.err:
            # For a name that does not exist, --quiet prints nothing.
            raise git_refused(commit, "rev-parse")
        if seen.branch:
            return "", ""
        if source.base is None:
            raise CannotMake(f"the project at {site.source} has no commit yet.", "Make a first commit there.")
        raise CannotMake(f"its base {source.base} is not in {site.source}.", "Name a branch or a commit that exists.")

    async def _base(self, where: Repository, base: str | None, kind: SourceKind) -> str:
        if kind is SourceKind.ADDRESS:
            remote = "refs/remotes/origin/" + (base or "HEAD")
            if (await self._git.ask(where, "show-ref", "--verify", "--quiet", remote)).ok:
                return remote
        name = base or "HEAD"
        full = await self._git.ask(where, "rev-parse", "--symbolic-full-name", "--end-of-options", name)
        named = full.text.splitlines()[-1] if full.ok and full.text else ""
        return named if named.startswith("refs/") else name

    def _record(self, site: Site, base: str, start: str, remaking: str) -> Record:
        wanted, old = site.wanted, site.record
        return Record(
            wanted.workspace.id,
            wanted.lane,
            os.fspath(site.directory),
            wanted.workspace.project,
            site.branch,
            os.fspath(site.common or ""),
            base or (old.base if old else ""),
            # The commit that the branch started from is known from the first time, unless it starts over.
            old.start if old and old.start else start,
            old.ready_at if old else None,
            old.remade if old else "",
            remaking,
        )

    async def _finish_half(self, site: Site, keep: Sequence[int]) -> bool:
        """Check out the missing files. Returns False where there was nothing to finish, so that it is made anew."""
        pointer = pointer_of(site.directory)
        if pointer is None:
            _remove_empty(site.directory)
            return False
        if head_of(pointer.admin).branch != site.branch or pointer.back is None:
            _remove_empty(site.directory)
            shutil.rmtree(pointer.admin)
            return False
        if not (pointer.admin / "index").exists():
            for left in ("index.lock", "HEAD.lock"):
                (pointer.admin / left).unlink(missing_ok=True)
            inside = Repository(site.directory)
            await self._git.do(inside, "reset", "--hard", "--quiet", seconds=self._git.deadlines.make, keep=keep)
        _unlock(pointer.admin)
        return True

    async def _clear(self, site: Site, where: Repository, seen: PlaceState, keep: Sequence[int]) -> None:
        """Remove git's reference to this directory, which is gone. `git worktree prune` would remove others, too."""
        with contextlib.suppress(FileNotFoundError):
            site.directory.rmdir()
        if seen.reference is None:
            return
        modules = seen.reference / "modules"
        if modules.is_dir():
            # Commits of submodules may exist nowhere else, so they are moved aside and not removed.
            kept = self._layout.kept / f"{site.wanted.workspace.id}-{time.time_ns()}"
            kept.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            shutil.move(modules, kept)
        _unlock(seen.reference)
        await self._git.do(where, "worktree", "remove", "--force", "--", os.fspath(site.directory), keep=keep)

    async def _add(self, site: Site, where: Repository, branch: bool, start: str, keep: Sequence[int]) -> None:
        directory, seconds = os.fspath(site.directory), self._git.deadlines.make
        if branch:
            await self._git.do(
                where, "worktree", "add", "--quiet", "--", directory, site.branch, seconds=seconds, keep=keep
            )
            return
        new = ("-b", site.branch, "--", directory, start)
        await self._git.do(where, "worktree", "add", "--quiet", *new, seconds=seconds, keep=keep)
        if site.branch != oldest_name(site.wanted.lane):
            # It fails where a person has the configuration open; then only the record says whose the branch is.
            await self._git.ask(where, "config", lane_setting(site.branch), site.wanted.lane, keep=keep)

    async def _free_name(self, where: Repository, wanted: str) -> str:
        """The wanted branch name, with a number where there is such a branch: it is not this lane's."""
        for number in count(1):
            name = wanted if number == 1 else f"{wanted}-{number}"
            if not (await self._git.ask(where, "show-ref", "--verify", "--quiet", f"refs/heads/{name}")).ok:
                break
        return name


def _remove_empty(directory: Path) -> None:
    """Remove a worktree that has nothing but its `.git` file."""
    if [each.name for each in directory.iterdir()] != [".git"]:
        raise CannotMake("it was begun, and it has files that are not from its branch.", "Move them away.")
    (directory / ".git").unlink()
    directory.rmdir()


def _unlock(admin: Path) -> None:
    if lock_reason(admin) == INITIALIZING:
        (admin / "locked").unlink(missing_ok=True)


_NAMED = 5
"""How many staged files are named."""

_LONGEST = 72


async def describe_loss(git: Git, where: Repository, site: Site, reference: Path | None) -> str:
    """What an agent is told of a worktree that was gone and is made again: from what, and what git knows of the loss.

    Called before it is made again, which removes `reference`: git's own directory of the worktree that is gone.
    """
    branch = f"refs/heads/{site.branch}"
    tip, _, subject = (await _asked(git, where, "log", "-1", "--format=%h%x00%s", branch, "--")).partition("\0")
    at = f", at commit {tip}" + (f" ({_line(subject)})" if subject.strip() else "") if tip else ""
    words = [
        f"{_line(os.fspath(site.directory), 4096)} was gone and was made again from branch {site.branch}{at}.",
        "Whatever was not committed there is lost.",
    ]
    if reference is not None:
        words += await _of_worktree(git, site, reference)
    stashes = await _asked(git, where, "log", "--walk-reflogs", "--format=%gs", "refs/stash", "--")
    number = sum(_is_of(line, site.branch) for line in stashes.splitlines())
    if number:
        them = "1 stash that was made on this branch is" if number == 1 else f"{number} stashes made on this branch are"
        words.append(f"{them} still there: see `git stash list`.")
    return " ".join(words)


async def _of_worktree(git: Git, site: Site, reference: Path) -> list[str]:
    words = []
    head, midst = head_of(reference), unfinished_operation(reference)
    if head.branch != site.branch and (head.branch or head.detached):
        was = f"on branch {head.branch}" if head.branch else f"at commit {(head.detached or '')[:12]}, on no branch"
        words.append(f"Before that it was {was}.")
    if midst:
        words.append(f"It was {midst}.")
    # Naming a git directory skips git's check of its owner: that was done for the project's own directory above.
    staged = await _asked(git, Repository(git_dir=reference), "diff", "--cached", "--name-only", "-z", "HEAD", "--")
    files = [_line(name) for name in staged.split("\0") if name]
    if files:
        words.append(f"Staged there and never committed: {_listed(files)}.")
    return words


async def _asked(git: Git, where: Repository, *arguments: str) -> str:
    """Git's answer, or nothing where it refuses: knowing less is no reason not to make the worktree again."""
    with suppress(Fault):
        answer = await git.ask(where, *arguments)
        return answer.text if answer.ok else ""
    return ""


def _is_of(stash: str, branch: str) -> bool:
    return stash.startswith((f"WIP on {branch}:", f"On {branch}:"))


def _listed(names: Sequence[str]) -> str:
    more = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {more} more" if more > 0 else "")


def _line(text: str, longest: int = _LONGEST) -> str:
    """On one line and not too long: it goes into a prompt."""
    line = " ".join("".join(each if each.isprintable() else " " for each in text).split())
    return line if len(line) <= longest else f"{line[:longest]} …"
