"""What OpenCode refuses, each by a name of its own."""

from clew.programs.faults import ProgramEnded, Refused


class SessionMissing(Refused):
    code = "opencode:session-missing"


class SessionDiverged(Refused):
    code = "opencode:session-diverged"


class CutOff(ProgramEnded):
    """It ended in the middle of something that is not done a second time: nobody knows whether it was done."""

    code = "opencode:cut-off"


class ModelUnknown(Refused):
    code = "opencode:model-unknown"
