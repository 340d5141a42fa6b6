"""Projects that come from an address: one clone on each machine, which all their worktrees share."""

import os
import secrets
import shutil
from pathlib import Path

from clew.ports.workspaces import ProjectSource
from clew.workspaces.faults import GitRefused, SourceUnreachable
from clew.workspaces.git import NOWHERE, Git, Repository
from clew.workspaces.layout import Layout
from clew.workspaces.locks import locked
from clew.workspaces.refusals import hide

_FETCH = "+refs/heads/*:refs/remotes/origin/*"


class Mirror:
    """A bare repository: the lanes' branches are its own, those of the address lie under `origin`, as in any clone."""

    def __init__(self, git: Git, layout: Layout, source: ProjectSource) -> None:
        self._git = git
        self._layout = layout
        self._source = source
        self.path = layout.mirror(source.project)

    async def ensure(self) -> bool:
        """Clone it unless it is there; whether it was cloned. It appears when it is complete."""
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
        """What the address has now; it may be another address than before."""
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
            words = f"{hide(self._source.source)} cannot be fetched: {fault.words}"
            raise SourceUnreachable(words, fault.remedy) from fault
        # An address without a default branch has none here either.
        await self._git.ask(at, "remote", "set-head", "origin", "--auto", seconds=seconds)


def _sweep(path: Path) -> None:
    """Clones that were cut short."""
    for left in path.parent.glob(f"{path.name}.*"):
        shutil.rmtree(left, ignore_errors=True)
