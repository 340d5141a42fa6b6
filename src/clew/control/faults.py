"""Errors of requests, grouped by what the caller can do about them."""

from clew.ports.fault import Fault


class ControlFault(Fault):
    code = "control"


class NotFound(ControlFault):
    """The thing that was named does not exist."""

    code = "control:no-such-thing"


class NoSuchSession(NotFound):
    code = "control:no-such-session"


class NoWork(NotFound):
    code = "control:no-work"


class Conflict(ControlFault):
    """It exists, and its state does not allow this."""

    code = "control:conflict"


class NotNow(Conflict):
    code = "control:not-now"


class AnswerRefused(Conflict):
    code = "control:answer-refused"


class BadRequest(ControlFault):
    """The request can never be carried out as it is."""

    code = "ask:bad-request"


class BadName(BadRequest):
    code = "ask:bad-name"


class BadRhythm(BadRequest):
    code = "ask:bad-rhythm"


class NotInstalled(BadRequest):
    code = "ask:not-installed"


class Unavailable(ControlFault):
    """Something that it needs is not connected."""

    code = "control:unavailable"


class NoMachine(Unavailable):
    code = "control:no-machine"
