"""What can go wrong with a program, each with what to do about it."""

from clew.ports.fault import Fault


class ProgramFault(Fault):
    code = "program"


class CannotStart(ProgramFault):
    code = "program:cannot-start"


class NoProgram(CannotStart):
    """It is not there, or is none."""


class BadArguments(CannotStart):
    """What it was to be given cannot be an argument at all; another try changes nothing."""

    code = "program:bad-arguments"


class ProgramEnded(ProgramFault):
    code = "program:ended"


class TooSlow(ProgramFault):
    code = "program:too-slow"


class NotUnderstood(ProgramFault):
    code = "program:not-understood"


class BadArchive(ProgramFault):
    code = "program:bad-archive"


class Refused(ProgramFault):
    code = "program:refused"


class BadOptions(Refused):
    """What an agent was given as options is nothing its provider knows."""

    code = "program:bad-options"


class SessionBusy(Refused):
    code = "program:session-busy"


class CannotLock(ProgramFault):
    code = "program:cannot-hold"


class NotAble(ProgramFault):
    code = "program:not-able"
