"""What can be wrong with a request, by what its caller can do about it."""

from clew.ports.fault import Fault


class ControlFault(Fault):
    code = "control"


class NotFound(ControlFault):
    """What was named is not there."""

    code = "control:no-such-thing"


class NoSuchSession(NotFound):
    code = "control:no-such-session"


class Conflict(ControlFault):
    """It is there, and in a state that does not allow it."""

    code = "control:conflict"


class NotNow(Conflict):
    code = "control:not-now"


class AnswerRefused(Conflict):
    code = "control:answer-refused"


class BadRequest(ControlFault):
    """What was asked makes no sense, whatever else is the case."""

    code = "ask:bad-request"


class BadName(BadRequest):
    code = "ask:bad-name"


class BadRhythm(BadRequest):
    code = "ask:bad-rhythm"


class NotInstalled(BadRequest):
    code = "ask:not-installed"


class Unavailable(ControlFault):
    """What is needed for it is away."""

    code = "control:unavailable"


class NoMachine(Unavailable):
    code = "control:no-machine"
