"""Whose a branch is: a setting of git names its lane."""

from clew.kernel import LaneId
from clew.workspaces.git import Git, Repository


def oldest_name(lane: LaneId) -> str:
    """A branch of this name can only be the lane's: no other name has the lane's id."""
    return f"clew/{lane}"


def lane_setting(branch: str) -> str:
    """The setting of git that names the lane of a branch. `git branch -D` removes it with the branch."""
    return f"branch.{branch}.clewlane"


async def lane_of_branch(git: Git, where: Repository, branch: str) -> str | None:
    said = await git.ask(where, "config", "--get", lane_setting(branch))
    return said.text if said.ok else None
