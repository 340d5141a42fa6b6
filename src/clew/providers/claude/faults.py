"""What can go wrong with Claude Code beyond what can with any program."""

from clew.programs.faults import ProgramFault


class Busy(ProgramFault):
    code = "claude:busy"


class NoSuchSession(ProgramFault):
    code = "claude:no-such-session"


class HomeFailed(ProgramFault):
    code = "claude:home-failed"
