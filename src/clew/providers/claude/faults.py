"""Faults of Claude Code beyond those of every program."""

from clew.programs import faults


class Busy(faults.ProgramFault):
    code = "claude:busy"


class NoSuchSession(faults.ProgramFault):
    code = "claude:no-such-session"


class HomeFailed(faults.HomeFailed):
    code = "claude:home-failed"
    agent = "Claude Code"
