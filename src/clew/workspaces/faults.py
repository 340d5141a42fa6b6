"""What can go wrong with git and with the source of a project, each with what to do about it."""

from clew.ports.fault import Fault


class WorkspaceFault(Fault):
    code = "workspace"


class GitMissing(WorkspaceFault):
    code = "git:missing"


class GitTooOld(WorkspaceFault):
    code = "git:too-old"


class GitTooSlow(WorkspaceFault):
    code = "git:too-slow"


class GitRefused(WorkspaceFault):
    code = "git:refused"


class CannotMake(WorkspaceFault):
    code = "workspace:cannot-make"


class StillBusy(WorkspaceFault):
    code = "workspace:busy"


class SourceFault(WorkspaceFault):
    code = "source"


class SourceMissing(SourceFault):
    code = "source:missing"


class SourceUnreachable(SourceFault):
    code = "source:unreachable"


class NotARepository(SourceFault):
    code = "source:not-a-repository"


class BareRepository(SourceFault):
    code = "source:bare"


class EmptyRepository(SourceFault):
    code = "source:empty"


class NoSuchBase(SourceFault):
    code = "source:no-such-base"


class BelowARepository(SourceFault):
    code = "source:subdirectory"


class LinkedWorktree(SourceFault):
    code = "source:worktree"


class ForeignOwner(SourceFault):
    code = "source:owner"
