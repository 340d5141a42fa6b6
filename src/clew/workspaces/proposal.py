"""Proposing a lane's branch: a pull request by `gh` where that is installed, else how to open one."""

import asyncio
import os
import re
import shlex
import shutil
from dataclasses import dataclass
from urllib.parse import quote, urlsplit

from clew.kernel import WorkspaceId
from clew.ports.work import Proposed
from clew.programs.program import environment_for
from clew.workspaces.commit import Committing, must_be_committed, must_be_on_own_branch
from clew.workspaces.faults import NoRemote, NothingToMerge, ProposalRefused, without_credentials
from clew.workspaces.git import Git
from clew.workspaces.layout import Layout
from clew.workspaces.work import LaneWork, Worktree, worktree_of

_SHORT_FORM = re.compile(r"(?:[^@/]+@)?(?P<host>[^/:]+):(?P<path>[^/].*)")
_GH_SECONDS = 60.0
_GH_SETTINGS = ("GH_TOKEN", "GITHUB_TOKEN", "GH_HOST", "GH_CONFIG_DIR", "XDG_CONFIG_HOME")


@dataclass(frozen=True, slots=True)
class Forge:
    """Where a remote is kept, as a web page."""

    host: str
    path: str

    def compare(self, base: str, branch: str) -> str | None:
        """The page where a pull request is opened; None where that is not known."""
        if "github" in self.host:
            return f"https://{self.host}/{self.path}/compare/{quote(base)}...{quote(branch)}?expand=1"
        if "gitlab" in self.host:
            asked = f"merge_request[source_branch]={quote(branch)}&merge_request[target_branch]={quote(base)}"
            return f"https://{self.host}/{self.path}/-/merge_requests/new?{asked}"
        return None


def forge_of(address: str) -> Forge | None:
    """The host and path of a remote's address; None for a directory."""
    if "://" in address:
        parts = urlsplit(address)
        host, path = parts.hostname, parts.path
    elif found := _SHORT_FORM.fullmatch(address):
        host, path = found["host"], found["path"]
    else:
        return None
    path = path.strip("/").removesuffix(".git")
    return Forge(host, path) if host and path else None


class Proposing:
    def __init__(self, git: Git, layout: Layout, work: LaneWork, committing: Committing) -> None:
        self._git = git
        self._layout = layout
        self._work = work
        self._committing = committing

    async def propose(self, workspace: WorkspaceId, title: str, body: str) -> Proposed:
        tree = await asyncio.to_thread(worktree_of, self._layout, workspace)
        async with self._committing.alone(tree.directory):
            must_be_on_own_branch(tree)
            await must_be_committed(self._git, tree)
        work = await self._work.work(workspace)
        branch, base = tree.record.branch, work.base.removeprefix("origin/")
        if work.commits == 0:
            raise NothingToMerge(f"{branch} has no commit that {base} does not have.", "There is nothing to propose.")
        remote, address = await self._remote(tree)
        push = f"git -C {shlex.quote(os.fspath(tree.directory))} push -u {remote} {branch}"
        forge = forge_of(address)
        compare = None if forge is None else forge.compare(base, branch)
        if forge is None or "github" not in forge.host or shutil.which("gh") is None:
            return Proposed(work, branch, push, address=compare)
        await self._git.do(tree.at, "push", "--quiet", "-u", remote, branch, seconds=self._git.deadlines.fetch)
        url = await _gh(forge, branch, base, title, body, compare)
        return Proposed(work, branch, push, url, compare)

    async def _remote(self, tree: Worktree) -> tuple[str, str]:
        names = (await self._git.do(tree.at, "remote")).text.split()
        if not names:
            raise NoRemote(
                "The project has no remote to push to.",
                f"Add one: `git -C {tree.directory} remote add origin ADDRESS`.",
            )
        name = "origin" if "origin" in names else names[0]
        return name, without_credentials((await self._git.do(tree.at, "remote", "get-url", name)).text)


async def _gh(forge: Forge, branch: str, base: str, title: str, body: str, compare: str | None) -> str:
    command = ("gh", "pr", "create", "--repo", f"{forge.host}/{forge.path}", "--head", branch, "--base", base)
    kept = {name: os.environ[name] for name in _GH_SETTINGS if name in os.environ}
    process = await asyncio.create_subprocess_exec(
        *command,
        "--title",
        title,
        "--body",
        body,
        env=environment_for(kept, {"GH_PROMPT_DISABLED": "1", "NO_COLOR": "1"}, of=os.environ),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    remedy = f"The branch is pushed. Open it yourself: {compare}"
    try:
        async with asyncio.timeout(_GH_SECONDS):
            out, err = await process.communicate()
    except TimeoutError as fault:
        process.kill()
        await process.wait()
        raise ProposalRefused(f"gh did not answer within {_GH_SECONDS:g} s.", remedy) from fault
    if process.returncode != 0:
        said = err.decode(errors="replace").strip().splitlines() or ["gh gave no reason."]
        raise ProposalRefused(f"gh did not open a pull request: {said[-1]}", remedy)
    return (out.decode(errors="replace").strip().splitlines() or [""])[-1]
