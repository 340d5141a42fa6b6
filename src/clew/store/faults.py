"""The faults of the store. Each has a code; the words and the remedy are given where it is raised."""

from clew.ports.fault import Fault


class StoreFault(Fault):
    code = "store"


class BadAddress(StoreFault):
    code = "store:bad-address"


class HeldByAnother(StoreFault):
    code = "store:held-by-another"


class NewerThanProgram(StoreFault):
    code = "store:newer-than-program"


class OlderThanProgram(StoreFault):
    code = "store:older-than-program"


class NotADatabase(StoreFault):
    code = "store:not-a-database"


class NotClew(StoreFault):
    code = "store:not-clew"


class CannotUpgrade(StoreFault):
    code = "store:cannot-upgrade"


class DiskFull(StoreFault):
    code = "store:disk-full"


class Unreachable(StoreFault):
    code = "store:unreachable"


class Busy(StoreFault):
    code = "store:busy"


class BadText(StoreFault):
    code = "store:bad-text"


class Closed(StoreFault):
    code = "store:closed"


class NoSuchAgent(StoreFault):
    code = "store:no-such-agent"


class NoSuchProject(StoreFault):
    code = "store:no-such-project"


class NoSuchThread(StoreFault):
    code = "store:no-such-thread"


class Ambiguous(StoreFault):
    code = "store:ambiguous"


class NameTaken(StoreFault):
    code = "store:name-taken"


class ThreadClosed(StoreFault):
    code = "store:thread-closed"


class KeyConflict(StoreFault):
    code = "store:key-conflict"


class Unreadable(StoreFault):
    code = "store:unreadable"


class SessionHeld(StoreFault):
    code = "store:session-held"


class NoSuchRun(StoreFault):
    code = "store:no-such-run"


class NoRunYet(StoreFault):
    code = "store:no-run-yet"


class NoSuchWake(StoreFault):
    code = "store:no-such-wake"


class MessageTaken(StoreFault):
    """An agent has the message, or it no longer waits."""

    code = "store:message-taken"


class NotAMessage(StoreFault):
    code = "store:not-a-message"


class NotWithinTurn(StoreFault):
    code = "store:not-within-turn"


class NoSuchApproval(StoreFault):
    code = "store:no-such-approval"


class NoSuchLane(StoreFault):
    code = "store:no-such-lane"


class NoSuchRuntime(StoreFault):
    code = "store:no-such-runtime"


class NoSuchFile(StoreFault):
    code = "store:no-such-file"


class FileElsewhere(StoreFault):
    code = "store:file-elsewhere"
