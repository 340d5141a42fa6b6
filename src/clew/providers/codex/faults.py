"""Faults of Codex beyond those of every program."""

from clew.programs import faults


class SessionBusy(faults.Refused):
    code = "codex:busy"


class SessionMissing(faults.Refused):
    code = "codex:missing"


class SessionArchived(faults.Refused):
    code = "codex:archived"


class Diverged(faults.Refused):
    code = "codex:diverged"


class HomeFailed(faults.HomeFailed):
    code = "codex:home-failed"
    agent = "Codex"
