"""Faults of a program. Each is raised with what happened and what to do next."""

from typing import Self

from clew.ports.fault import Fault

CHECK_HOME = "Check that the directory is there, is yours and has room."


class ProgramFault(Fault):
    code = "program"


class CannotStart(ProgramFault):
    code = "program:cannot-start"


class NoProgram(CannotStart):
    """The file is missing, or is not a program."""

    code = "program:missing"


class BadArguments(CannotStart):
    """An argument or variable that no program can be given; a retry changes nothing."""

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
    """An option that the provider does not know."""

    code = "program:bad-options"


class NotLoggedIn(Refused):
    """The program asks for a login before it opens a session."""

    code = "program:not-logged-in"


class SessionBusy(Refused):
    code = "program:session-busy"


class SessionMissing(Refused):
    code = "program:session-missing"


class SessionDiverged(Refused):
    """The session that is to be restored has other turns here than in the archive."""

    code = "program:session-diverged"


class CannotLock(ProgramFault):
    code = "program:cannot-hold"


class NotAble(ProgramFault):
    code = "program:not-able"


class HomeFailed(ProgramFault):
    """The system refused to read or write the files of an agent's home."""

    code = "program:home-failed"

    @classmethod
    def because(cls, agent: str, error: OSError) -> Self:
        what = f": {error.filename}" if error.filename else ""
        words = f"The files of {agent} cannot be read or written ({error.strerror}{what})."
        return cls(words, CHECK_HOME)
