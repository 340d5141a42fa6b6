"""What OpenCode refuses, each by a name of its own."""

from clew.programs.faults import Refused


class SessionMissing(Refused):
    code = "opencode:session-missing"


class SessionBusy(Refused):
    code = "opencode:session-busy"


class SessionDiverged(Refused):
    code = "opencode:session-diverged"


class ModelUnknown(Refused):
    code = "opencode:model-unknown"
