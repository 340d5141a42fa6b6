"""What can go wrong with Codex beyond what can go wrong with any program."""

from clew.programs.faults import ProgramFault, Refused


class SessionBusy(Refused):
    code = "codex:busy"


class SessionMissing(Refused):
    code = "codex:missing"


class SessionArchived(Refused):
    code = "codex:archived"


class Diverged(Refused):
    code = "codex:diverged"


class HomeFailed(ProgramFault):
    code = "codex:home-failed"
