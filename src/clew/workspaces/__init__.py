"""Workspaces: the directories that lanes work in: git worktrees, plain directories and agents' homes."""

from clew.workspaces.git import Deadlines, Git
from clew.workspaces.workspaces import GitWorkspaces

__all__ = ["Deadlines", "Git", "GitWorkspaces"]
