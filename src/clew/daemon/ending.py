"""How a run ends: what an agent, a fault or a call makes of it, in the words that a retry is decided by."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from clew.daemon.landing import LandingRefused
from clew.daemon.opening import PlanHolds
from clew.daemon.placing import PlaceHeld
from clew.kernel import USES_EARLIER_SESSION as CONTINUES
from clew.kernel import Attestation, Evidence, FailureKind, Plan, WaitsFor
from clew.ports.events import Done, Ending, ErrorCode
from clew.ports.events import Failed as AgentFailed
from clew.ports.fault import Fault
from clew.protocol.reports import Completed, End, Failed, Returned, Stopped, Usage

_KINDS: Mapping[ErrorCode, tuple[FailureKind, FailureKind]] = {
    ErrorCode.MODEL_UNREACHABLE: (FailureKind.TRANSIENT, FailureKind.PERMANENT),
    ErrorCode.MODEL_FAILED: (FailureKind.TRANSIENT, FailureKind.PERMANENT),
    ErrorCode.NOT_ALLOWED: (FailureKind.TRANSIENT, FailureKind.PERMANENT),
    ErrorCode.USAGE_LIMIT: (FailureKind.USAGE_LIMIT, FailureKind.USAGE_LIMIT),
    ErrorCode.BAD_REQUEST: (FailureKind.TRANSIENT, FailureKind.PERMANENT),
    ErrorCode.PROGRAM_ENDED: (FailureKind.CRASHED, FailureKind.PERMANENT),
    ErrorCode.TOO_SLOW: (FailureKind.TRANSIENT, FailureKind.PERMANENT),
    ErrorCode.UNKNOWN: (FailureKind.TRANSIENT, FailureKind.UNKNOWN),
}
"""Of each code: what it is when the agent calls it worth another try, and otherwise."""

_BUSY = frozenset({"program:session-busy", "claude:busy", "codex:busy"})
# What is the daemon's own matter, or the program's of the moment.
_PASSING = frozenset(
    {
        "daemon:too-long",
        "daemon:broke-off",
        "program:ended",
        "program:too-slow",
        "program:not-understood",
        "program:cannot-hold",
        "opencode:cut-off",
    }
)

DAEMON_STOPPED = "The daemon was stopped."


@dataclass(frozen=True, slots=True)
class Turned:
    """What came of a turn. `said` tells that the agent did anything with its prompt; `silent`, why it was ended;
    `closed`, that its session had to be closed for that."""

    done: Done | None
    failed: AgentFailed | None
    fault: Exception | None
    usage: Usage
    said: bool
    tool_ran: bool
    silent: str = ""
    closed: bool = False

    @property
    def well(self) -> bool:
        """Whether the session can take another turn as it is."""
        return not self.closed and self.done is not None and self.done.ending is not Ending.FAILED

    @property
    def completed(self) -> bool:
        return self.done is not None and self.done.ending is Ending.COMPLETED

    @property
    def why_failed(self) -> str:
        """In the agent's words, or those of the fault."""
        if self.failed is not None:
            return self.failed.words
        return str(self.fault) if isinstance(self.fault, Fault) else ""


def end_of_turn(turned: Turned, plan: Plan, heard: Attestation | None) -> End:
    """Unless somebody called it off: how the turn itself ended. `heard` is what the agent's store says of the prompt of
    a turn that was not completed."""
    if turned.completed and turned.done is not None:
        reply = turned.done.reply or None
        return Completed(reply, 0 if reply is None else _tokens(reply), turned.usage)
    if heard is not None and heard.evidence is Evidence.FINISHED:
        return read_back(turned, heard)
    if turned.silent:
        return Failed(FailureKind.TRANSIENT, turned.silent, usage=turned.usage, heard=heard)
    if turned.failed is not None:
        return _failed(turned.failed, plan, turned.usage, heard)
    if turned.done is not None and turned.done.ending is Ending.INTERRUPTED:
        return Stopped("It was stopped at the agent itself.", turned.usage, heard)
    if isinstance(turned.fault, Fault):
        kind = FailureKind.CRASHED if turned.fault.code == "program:ended" else FailureKind.UNKNOWN
        return Failed(kind, str(turned.fault), usage=turned.usage, heard=heard)
    why = "it gave no reason" if turned.fault is None else repr(turned.fault)
    words = f"The agent's turn did not end as turns do: {why}."
    return Failed(FailureKind.UNKNOWN, words, usage=turned.usage, heard=heard)


def read_back(turned: Turned, heard: Attestation) -> Completed:
    """The turn was lost on the way to us, and yet the agent has finished it."""
    reply = heard.reply or None
    usage = replace(turned.usage, turns=1)
    return Completed(reply, 0 if reply is None else _tokens(reply), usage, read_back=True)


def end_before_prompt(fault: Exception) -> End:
    """Nothing was sent, so nothing can be done twice."""
    if isinstance(fault, PlaceHeld):
        waits = WaitsFor.ANOTHER_TRY if fault.passing else WaitsFor.PERSON
        return Returned(fault.words, fault.reason.code, waits)
    if isinstance(fault, PlanHolds):
        plan = fault.plan
        return Returned(plan.words, plan.reason.code, plan.waits_for or WaitsFor.ANOTHER_TRY)
    if isinstance(fault, LandingRefused):
        return Returned(str(fault), fault.reason, WaitsFor.PERSON)
    if not isinstance(fault, Fault):
        return Failed(FailureKind.UNKNOWN, f"Something is wrong with Clew itself: {fault!r}.")
    words = str(fault)
    if fault.code in _BUSY:
        return Returned(words, fault.code, WaitsFor.SESSION_FREE)
    if fault.code in _PASSING:
        return Failed(FailureKind.TRANSIENT, words)
    return Returned(words, fault.code, WaitsFor.PERSON)


def _failed(failed: AgentFailed, plan: Plan, usage: Usage, heard: Attestation | None) -> Failed:
    again, not_again = _KINDS[failed.code]
    kind = again if failed.retryable else not_again
    # What a model refuses of a conversation it refuses each time: the next wake goes on in another.
    poisons = failed.code is ErrorCode.BAD_REQUEST and not failed.retryable and plan.outcome in CONTINUES
    return Failed(kind, failed.words, failed.reset_at, poisons, usage, heard)


def _tokens(text: str) -> int:
    return -(-len(text.encode("utf-8", "surrogatepass")) // 4)
