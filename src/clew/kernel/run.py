"""Runs: the states of one attempt to serve a lane, its fencing number, and what its end means for the wakes."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from clew.kernel.ids import Instant, LaneId, RunId, SessionId
from clew.kernel.reason import Reason
from clew.kernel.wake import WakeEnd, WakeEvent


class RunState(StrEnum):
    """The states of a run. Waiting: an approval or a question is open. Stopping: its agent was told to end."""

    QUEUED = "queued"
    CLAIMED = "claimed"
    OPENING = "opening"
    RUNNING = "running"
    WAITING = "waiting"
    STOPPING = "stopping"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"
    LOST = "lost"


class RunEvent(StrEnum):
    """What can happen to a run.

    `prompt` is recorded before the prompt is sent, so a run that is still opening has certainly sent none.
    `answer` closes the last open question, `return` gives a claim back, `reopen` tries a new session once, `recover`:
    the reply was read from the agent's own store.
    """

    CLAIM = "claim"
    OPEN = "open"
    REOPEN = "reopen"
    PROMPT = "prompt"
    TOOL = "tool"
    ASK = "ask"
    ANSWER = "answer"
    RENEW = "renew"
    RETURN = "return"
    SUCCEED = "succeed"
    RECOVER = "recover"
    FAIL = "fail"
    STOPPED = "stopped"
    CANCEL = "cancel"
    LAPSE = "lapse"
    RESTART = "restart"


RUN_TABLE: Mapping[tuple[RunState, RunEvent], RunState] = {
    (RunState.QUEUED, RunEvent.CLAIM): RunState.CLAIMED,
    (RunState.QUEUED, RunEvent.CANCEL): RunState.CANCELLED,
    (RunState.CLAIMED, RunEvent.OPEN): RunState.OPENING,
    (RunState.CLAIMED, RunEvent.RENEW): RunState.CLAIMED,
    (RunState.CLAIMED, RunEvent.RETURN): RunState.QUEUED,
    (RunState.CLAIMED, RunEvent.RECOVER): RunState.SUCCEEDED,
    (RunState.CLAIMED, RunEvent.FAIL): RunState.FAILED,
    (RunState.CLAIMED, RunEvent.CANCEL): RunState.STOPPING,
    (RunState.CLAIMED, RunEvent.LAPSE): RunState.QUEUED,
    (RunState.CLAIMED, RunEvent.RESTART): RunState.QUEUED,
    (RunState.OPENING, RunEvent.REOPEN): RunState.OPENING,
    (RunState.OPENING, RunEvent.PROMPT): RunState.RUNNING,
    (RunState.OPENING, RunEvent.RENEW): RunState.OPENING,
    (RunState.OPENING, RunEvent.RETURN): RunState.QUEUED,
    (RunState.OPENING, RunEvent.RECOVER): RunState.SUCCEEDED,
    (RunState.OPENING, RunEvent.FAIL): RunState.FAILED,
    (RunState.OPENING, RunEvent.CANCEL): RunState.STOPPING,
    (RunState.OPENING, RunEvent.LAPSE): RunState.QUEUED,
    (RunState.OPENING, RunEvent.RESTART): RunState.QUEUED,
    (RunState.RUNNING, RunEvent.REOPEN): RunState.OPENING,
    (RunState.RUNNING, RunEvent.TOOL): RunState.RUNNING,
    (RunState.RUNNING, RunEvent.ASK): RunState.WAITING,
    (RunState.RUNNING, RunEvent.RENEW): RunState.RUNNING,
    (RunState.RUNNING, RunEvent.SUCCEED): RunState.SUCCEEDED,
    (RunState.RUNNING, RunEvent.RECOVER): RunState.SUCCEEDED,
    (RunState.RUNNING, RunEvent.FAIL): RunState.FAILED,
    (RunState.RUNNING, RunEvent.STOPPED): RunState.CANCELLED,
    (RunState.RUNNING, RunEvent.CANCEL): RunState.STOPPING,
    (RunState.RUNNING, RunEvent.LAPSE): RunState.LOST,
    (RunState.RUNNING, RunEvent.RESTART): RunState.LOST,
    (RunState.WAITING, RunEvent.TOOL): RunState.WAITING,
    (RunState.WAITING, RunEvent.ASK): RunState.WAITING,
    (RunState.WAITING, RunEvent.ANSWER): RunState.RUNNING,
    (RunState.WAITING, RunEvent.RENEW): RunState.WAITING,
    (RunState.WAITING, RunEvent.SUCCEED): RunState.SUCCEEDED,
    (RunState.WAITING, RunEvent.RECOVER): RunState.SUCCEEDED,
    (RunState.WAITING, RunEvent.FAIL): RunState.FAILED,
    (RunState.WAITING, RunEvent.STOPPED): RunState.CANCELLED,
    (RunState.WAITING, RunEvent.CANCEL): RunState.STOPPING,
    (RunState.WAITING, RunEvent.LAPSE): RunState.LOST,
    (RunState.WAITING, RunEvent.RESTART): RunState.LOST,
    (RunState.STOPPING, RunEvent.OPEN): RunState.STOPPING,
    (RunState.STOPPING, RunEvent.TOOL): RunState.STOPPING,
    (RunState.STOPPING, RunEvent.ASK): RunState.STOPPING,
    (RunState.STOPPING, RunEvent.ANSWER): RunState.STOPPING,
    (RunState.STOPPING, RunEvent.RENEW): RunState.STOPPING,
    (RunState.STOPPING, RunEvent.CANCEL): RunState.STOPPING,
    (RunState.STOPPING, RunEvent.RETURN): RunState.CANCELLED,
    (RunState.STOPPING, RunEvent.SUCCEED): RunState.CANCELLED,
    (RunState.STOPPING, RunEvent.RECOVER): RunState.CANCELLED,
    (RunState.STOPPING, RunEvent.FAIL): RunState.CANCELLED,
    (RunState.STOPPING, RunEvent.STOPPED): RunState.CANCELLED,
    (RunState.STOPPING, RunEvent.LAPSE): RunState.CANCELLED,
    (RunState.STOPPING, RunEvent.RESTART): RunState.CANCELLED,
}
"""A pair that is not listed cannot happen. A run lost before its prompt is queued again; after it, never."""

RUN_ENDS = frozenset({RunState.SUCCEEDED, RunState.FAILED, RunState.CANCELLED, RunState.LOST})

CARRYING = frozenset({RunState.CLAIMED, RunState.OPENING, RunState.RUNNING, RunState.WAITING})
"""The states in which a run holds its lane's wakes. While it is queued they are pending, and are cancelled separately.
A stopping run holds only the wakes that its agent is being told of at that moment."""

LIVE = CARRYING | {RunState.STOPPING}
"""The states in which a run occupies its lane: an agent may be working."""

BY_SERVER = frozenset({RunEvent.CLAIM, RunEvent.CANCEL, RunEvent.LAPSE, RunEvent.RESTART})
"""The events that the server decides; the daemon that holds the run reports all others."""


@dataclass(frozen=True, slots=True)
class Run:
    """One attempt to serve a lane. `attempt` is the fencing number: each claim raises it, and older ones are refused.

    `session` is the pinned one. The three flags say how far the run got, which decides what may be retried.
    """

    id: RunId
    lane: LaneId
    state: RunState = RunState.QUEUED
    attempt: int = 0
    lease_until: Instant | None = None
    session: SessionId | None = None
    prompt_sent: bool = False
    tool_ran: bool = False
    reopened: bool = False


class RunRefusal(Reason):
    STALE = "run:stale", "Attempt {attempt} does not hold run {run.id}, which is {run.state} at attempt {run.attempt}."
    FINAL = "run:final", "Run {run.id} has already ended as {run.state}; {event} comes too late."
    IMPOSSIBLE = "run:impossible", "Run {run.id} is {run.state}; {event} is not possible now."


@dataclass(frozen=True, slots=True)
class Applied:
    """The run after an event; when the event is refused, the run unchanged.

    `settles`: the run releases its wakes with this event, once. `wakes_on` says how.
    """

    run: Run
    event: RunEvent
    attempt: int
    refused: RunRefusal | None = None
    settles: bool = False

    @property
    def words(self) -> str:
        return self.refused.fill(run=self.run, event=self.event, attempt=self.attempt) if self.refused else ""


def holds(run: Run, attempt: int) -> bool:
    """Whether reports of that attempt, late pins included, may be written. Nobody holds a queued run."""
    return attempt == run.attempt and run.state is not RunState.QUEUED


def apply(run: Run, event: RunEvent, attempt: int, lease_until: Instant | None = None) -> Applied:
    """Apply an event, or say why it is refused. The first end wins; later ones are told of it."""
    if event in (RunEvent.CLAIM, RunEvent.RENEW) and lease_until is None:
        raise ValueError(f"a {event} needs lease_until: without it the run could be held forever")
    if not (holds(run, attempt) or (attempt == run.attempt and event in BY_SERVER)):
        return Applied(run, event, attempt, RunRefusal.STALE)
    if run.state in RUN_ENDS:
        return Applied(run, event, attempt, RunRefusal.FINAL)
    state = RUN_TABLE.get((run.state, event))
    if state is None or (event is RunEvent.REOPEN and (run.tool_ran or run.reopened)):
        return Applied(run, event, attempt, RunRefusal.IMPOSSIBLE)
    leased = run.lease_until if lease_until is None else lease_until
    if event is RunEvent.RENEW and run.lease_until is not None:
        leased = max(run.lease_until, leased or 0.0)
    after = replace(
        run,
        state=state,
        attempt=run.attempt + 1 if event is RunEvent.CLAIM else run.attempt,
        lease_until=leased if state in LIVE else None,
        # A session that was not resumed has not taken the prompt either.
        prompt_sent=event is RunEvent.PROMPT or (run.prompt_sent and event is not RunEvent.REOPEN),
        # An agent that asks a question has taken the prompt, like one that runs a tool.
        tool_ran=run.tool_ran or event in (RunEvent.TOOL, RunEvent.ASK),
        reopened=run.reopened or event is RunEvent.REOPEN,
    )
    return Applied(after, event, attempt, settles=run.state in CARRYING and state not in CARRYING)


class RunOutcome(Reason):
    """Why a run released its wakes."""

    ANSWERED = "run:answered", "The agent finished its turn."
    NO_REPLY = "run:no-reply", "The agent finished its turn without a reply."
    READ_BACK = "run:read-back", "The agent had already finished; its reply was read from its own store."
    RETRYING = "run:retrying", "Failed. {why}"
    GAVE_UP = "run:gave-up", "Failed, not retrying: {why}"
    RETURNED = "run:returned", "Back in the queue: {why}"
    LEASE_LOST = "run:lease-lost", "Its daemon did not report in time."
    RESTARTED = "run:daemon-restarted", "Its daemon restarted."
    INTERRUPTED = "run:interrupted", "A newer wake interrupted it; the next run serves both."
    STOPPED = "run:stopped", "It was interrupted."
    BY_USER = "run:by-user", "It was cancelled."
    REASSIGNED = "run:reassigned", "The thread was assigned to another agent."
    CLOSED = "run:closed", "The thread was closed."


@dataclass(frozen=True, slots=True)
class Settlement:
    """The effect of an outcome on the run and on every wake it carried; `why` is the reason of an unserved end."""

    run: RunEvent
    wakes: WakeEvent
    why: WakeEnd | None = None


SETTLEMENTS: Mapping[RunOutcome, Settlement] = {
    RunOutcome.ANSWERED: Settlement(RunEvent.SUCCEED, WakeEvent.SERVE),
    RunOutcome.NO_REPLY: Settlement(RunEvent.SUCCEED, WakeEvent.SERVE),
    RunOutcome.READ_BACK: Settlement(RunEvent.RECOVER, WakeEvent.SERVE),
    RunOutcome.RETRYING: Settlement(RunEvent.FAIL, WakeEvent.RELEASE),
    RunOutcome.GAVE_UP: Settlement(RunEvent.FAIL, WakeEvent.CANCEL, WakeEnd.GAVE_UP),
    RunOutcome.RETURNED: Settlement(RunEvent.RETURN, WakeEvent.RELEASE),
    RunOutcome.LEASE_LOST: Settlement(RunEvent.LAPSE, WakeEvent.RELEASE),
    RunOutcome.RESTARTED: Settlement(RunEvent.RESTART, WakeEvent.RELEASE),
    RunOutcome.INTERRUPTED: Settlement(RunEvent.CANCEL, WakeEvent.RELEASE),
    RunOutcome.STOPPED: Settlement(RunEvent.STOPPED, WakeEvent.CANCEL, WakeEnd.BY_USER),
    RunOutcome.BY_USER: Settlement(RunEvent.CANCEL, WakeEvent.CANCEL, WakeEnd.BY_USER),
    RunOutcome.REASSIGNED: Settlement(RunEvent.CANCEL, WakeEvent.CANCEL, WakeEnd.REASSIGNED),
    RunOutcome.CLOSED: Settlement(RunEvent.CANCEL, WakeEvent.CANCEL, WakeEnd.CLOSED),
}


def wakes_on(outcome: RunOutcome) -> Settlement:
    """The effect on every wake that the run carried: served, pending again, or cancelled with a reason."""
    return SETTLEMENTS[outcome]
