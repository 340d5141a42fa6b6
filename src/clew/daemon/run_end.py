"""The end of a run: how the turn went, or the fault before it, as the end by which the server decides a retry."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from clew.daemon.landing import LandingRefused
from clew.daemon.open import PlanHolds
from clew.daemon.place import PlaceHeld
from clew.kernel import USES_EARLIER_SESSION as CONTINUES
from clew.kernel import Attestation, Evidence, FailureKind, Plan, WaitsFor
from clew.ports.events import Done, Ending, ErrorCode
from clew.ports.events import Failed as AgentFailed
from clew.ports.fault import Fault
from clew.protocol.reports import Completed, End, Failed, Returned, Stopped, Usage

_KINDS: Mapping[ErrorCode, tuple[FailureKind, FailureKind]] = {
    ErrorCode.MODEL_UNREACHABLE: (FailureKind.OUTAGE, FailureKind.PERMANENT),
    ErrorCode.MODEL_FAILED: (FailureKind.OUTAGE, FailureKind.PERMANENT),
    ErrorCode.NOT_ALLOWED: (FailureKind.TRANSIENT, FailureKind.PERMANENT),
    ErrorCode.USAGE_LIMIT: (FailureKind.USAGE_LIMIT, FailureKind.USAGE_LIMIT),
    ErrorCode.BAD_REQUEST: (FailureKind.TRANSIENT, FailureKind.PERMANENT),
    ErrorCode.PROGRAM_ENDED: (FailureKind.CRASHED, FailureKind.PERMANENT),
    ErrorCode.TOO_SLOW: (FailureKind.TRANSIENT, FailureKind.PERMANENT),
    ErrorCode.UNKNOWN: (FailureKind.TRANSIENT, FailureKind.UNKNOWN),
}
"""For each code: the failure where the agent calls it worth another try, and where it does not."""

_BUSY = "program:session-busy"
# Failures of the daemon's own steps, or of the program at this moment: another try may succeed.
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

# The program or its provider is not there.
_GONE = frozenset({"program:missing", "provider:unknown", "provider:broken"})

DAEMON_STOPPED = "The daemon was stopped."


@dataclass(frozen=True, slots=True)
class TurnResult:
    """What came of a turn. `said`: the agent did anything with its prompt. `silent`: why the turn was ended for its
    silence. `closed`: its session had to be closed for that."""

    done: Done | None
    failed: AgentFailed | None
    fault: Exception | None
    usage: Usage
    said: bool
    silent: str = ""
    closed: bool = False

    @property
    def reusable(self) -> bool:
        """Whether the session can take another turn as it is."""
        return not self.closed and self.done is not None and self.done.ending is not Ending.FAILED

    @property
    def completed(self) -> bool:
        return self.done is not None and self.done.ending is Ending.COMPLETED

    @property
    def why_failed(self) -> str:
        """In the words of the agent, or of the fault."""
        if self.failed is not None:
            return self.failed.words
        return str(self.fault) if isinstance(self.fault, Fault) else ""


def end_of_turn(result: TurnResult, plan: Plan, heard: Attestation | None) -> End:
    """The end of a run that was not stopped. `heard`: what the agent's store says of the prompt of a turn that was not
    completed."""
    if result.completed and result.done is not None:
        reply = result.done.reply or None
        return Completed(reply, 0 if reply is None else _tokens(reply), result.usage)
    if heard is not None and heard.evidence is Evidence.FINISHED:
        return _read_back(result, heard)
    if result.silent:
        return Failed(FailureKind.TRANSIENT, result.silent, usage=result.usage, heard=heard)
    if result.failed is not None:
        return _failed(result.failed, plan, result.usage, heard)
    if result.done is not None and result.done.ending is Ending.INTERRUPTED:
        return Stopped("It was interrupted at the agent itself.", result.usage, heard)
    if isinstance(result.fault, Fault):
        kind = FailureKind.CRASHED if result.fault.code == "program:ended" else FailureKind.UNKNOWN
        return Failed(kind, str(result.fault), usage=result.usage, heard=heard)
    why = "the agent gave no reason" if result.fault is None else repr(result.fault)
    words = f"The agent's turn ended without a result: {why}."
    return Failed(FailureKind.UNKNOWN, words, usage=result.usage, heard=heard)


def _read_back(result: TurnResult, heard: Attestation) -> Completed:
    """The end of the turn did not reach this daemon, but the agent's store has the finished reply."""
    reply = heard.reply or None
    usage = replace(result.usage, turns=1)
    return Completed(reply, 0 if reply is None else _tokens(reply), usage, read_back=True)


def end_before_prompt(fault: Exception) -> End:
    """The end of a run that sent no prompt: trying again does nothing twice."""
    if isinstance(fault, PlaceHeld):
        waits = WaitsFor.ANOTHER_TRY if fault.passing else WaitsFor.PERSON
        return Returned(fault.words, fault.reason.code, waits)
    if isinstance(fault, PlanHolds):
        plan = fault.plan
        return Returned(plan.words, plan.reason.code, plan.waits_for or WaitsFor.ANOTHER_TRY)
    if isinstance(fault, LandingRefused):
        return Returned(str(fault), fault.reason, WaitsFor.PERSON)
    if not isinstance(fault, Fault):
        return Failed(
            FailureKind.UNKNOWN,
            f"Clew itself failed ({type(fault).__name__}: {fault}). This is a defect of Clew; the log has more.",
        )
    words = str(fault)
    if fault.code == _BUSY:
        return Returned(words, fault.code, WaitsFor.SESSION_FREE)
    if fault.code in _PASSING:
        return Failed(FailureKind.TRANSIENT, words)
    return Returned(words, fault.code, WaitsFor.PERSON, program_gone=fault.code in _GONE)


def _failed(failed: AgentFailed, plan: Plan, usage: Usage, heard: Attestation | None) -> Failed:
    again, not_again = _KINDS[failed.code]
    kind = again if failed.retryable else not_again
    # A model that refuses a conversation refuses it each time: the next wake gets another session.
    poisons = failed.code is ErrorCode.BAD_REQUEST and not failed.retryable and plan.outcome in CONTINUES
    return Failed(kind, failed.words, failed.reset_at, poisons, usage, heard)


def _tokens(text: str) -> int:
    return -(-len(text.encode("utf-8", "surrogatepass")) // 4)
