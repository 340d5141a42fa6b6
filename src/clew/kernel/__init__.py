"""The kernel decides how a wake continues. Pure functions over values; other orchestrators can import it alone."""

from clew.kernel.admission import (
    Admission,
    AdmissionPolicy,
    AdmissionReason,
    AdmissionVerdict,
    AgentState,
    Carried,
    Overlap,
    Request,
    Sameness,
    Served,
    admit,
    dedupe,
    on_admission,
    on_end,
    thread_for,
)
from clew.kernel.alerts import NOTHING_TO_REPORT, Delivered, judge_reply
from clew.kernel.approval import (
    Answer,
    Answered,
    Approval,
    ApprovalEvent,
    ApprovalReason,
    ApprovalState,
    advance_approval,
    answer,
)
from clew.kernel.capability import Capabilities, LandingField
from clew.kernel.context import Budget, BudgetReason, EnginePolicy, on_engine_failure, select
from clew.kernel.decision import decide, settle
from clew.kernel.evidence import (
    HELD_BY_AGENT,
    NEVER_AGAIN,
    Attestation,
    Evidence,
    EvidenceReason,
    PromptId,
    Sent,
    Unheard,
    ask_next,
    digest_of,
    with_observed_work,
)
from clew.kernel.heartbeat import QuietHours, TickDecision, TickFacts, TickVerdict, tick
from clew.kernel.ids import (
    NOTHING_SEEN,
    AccountId,
    AgentId,
    ApprovalId,
    EntrySeq,
    Instant,
    LaneId,
    LaneScope,
    MachineId,
    NativeId,
    ProjectId,
    ProviderName,
    RouteKey,
    RouteKind,
    RunId,
    RunScope,
    RuntimeId,
    ScopeKey,
    SessionId,
    Subject,
    ThreadId,
    WakeId,
    WorkspaceId,
    isolated,
    lane_id,
    own_thread,
    read_subject,
    runtime_id,
)
from clew.kernel.journal import Author, AuthorKind, JournalEntry, Reader, voice
from clew.kernel.lease import Heard, Patience, Presence, Silence, SilenceLimits, leased, presence, silence, standing
from clew.kernel.permission import PermissionMode, choose_mode, parse_mode
from clew.kernel.place import (
    Directory,
    Found,
    FoundReason,
    PlaceFacts,
    PlaceStep,
    ResolvedPlace,
    Workspace,
    WorkspaceKind,
    resolve_place,
)
from clew.kernel.plan import (
    STARTS_NEW_SESSION,
    USES_EARLIER_SESSION,
    Audience,
    NoticeReason,
    Outcome,
    Plan,
    PlanReason,
    SessionChange,
    WaitsFor,
    explain,
    headline,
)
from clew.kernel.probe import Probe, ProbeKind
from clew.kernel.queue import Aging, LiveRuns, QueuedRun, QueueFacts, RunLimits, Waiting, WaitReason, rank, waits_for
from clew.kernel.reason import Reason
from clew.kernel.record import (
    RECORD_VERSION,
    RecordedFor,
    RecordError,
    capabilities_from_record,
    capabilities_to_record,
    decision_to_record,
    plan_to_record,
    policy_from_record,
    policy_to_record,
    recorded_for,
    replay,
    situation_from_record,
    situation_to_record,
    value_from_record,
    value_to_record,
)
from clew.kernel.retry import WAITED_OUT, Failure, FailureKind, RetryChoice, RetryPolicy, RetryStep, retry
from clew.kernel.rule_reason import RuleReason
from clew.kernel.run import (
    LIVE,
    RUN_ENDS,
    RUN_TABLE,
    Run,
    RunEvent,
    RunOutcome,
    RunRefusal,
    RunState,
    apply,
    holds,
    wakes_on,
)
from clew.kernel.schedule import Every, NextAfter, PacePolicy, Tick, due, pace
from clew.kernel.session import (
    SESSION_TABLE,
    Archive,
    ArchiveState,
    Cursor,
    Pin,
    PinReason,
    Resumability,
    Session,
    SessionEvent,
    SessionLimits,
    SessionState,
    UnreadableCursor,
    advance_session,
    pin,
    read_cursor,
    resumability,
    write_cursor,
)
from clew.kernel.situation import (
    CANDIDATES,
    Floor,
    Here,
    ModelChange,
    Policy,
    ReadState,
    Situation,
    Source,
    SourceRead,
    gather,
)
from clew.kernel.steering import STEER_TABLE, SteerEvent, steered_plan, to_steer
from clew.kernel.trace import Route, Step
from clew.kernel.verification import Claim, Landing, Verification, Weight, verify
from clew.kernel.wake import (
    HUMAN,
    WAKE_ENDS,
    Demand,
    Freshness,
    Origin,
    OriginKind,
    ResetPolicy,
    Wake,
    WakeEnd,
    WakeEvent,
    WakeReason,
    WakeState,
    advance_wake,
    coalesce,
    ready,
)
from clew.kernel.warm import Fate, Moment, Reaped, WarmFacts, confirm, reap

# fmt: off
__all__ = [
    "CANDIDATES", "HELD_BY_AGENT", "HUMAN", "LIVE", "NEVER_AGAIN", "NOTHING_SEEN", "NOTHING_TO_REPORT",
    "RECORD_VERSION", "RUN_ENDS", "RUN_TABLE", "SESSION_TABLE", "STARTS_NEW_SESSION", "STEER_TABLE",
    "USES_EARLIER_SESSION", "WAITED_OUT", "WAKE_ENDS", "AccountId", "Admission", "AdmissionPolicy", "AdmissionReason",
    "AdmissionVerdict", "AgentId", "AgentState", "Aging", "Answer", "Answered", "Approval", "ApprovalEvent",
    "ApprovalId", "ApprovalReason", "ApprovalState", "Archive", "ArchiveState", "Attestation", "Audience", "Author",
    "AuthorKind", "Budget", "BudgetReason", "Capabilities", "Carried", "Claim", "Cursor", "Delivered", "Demand",
    "Directory", "EnginePolicy", "EntrySeq", "Every", "Evidence", "EvidenceReason", "Failure", "FailureKind", "Fate",
    "Floor", "Found", "FoundReason", "Freshness", "Heard", "Here", "Instant", "JournalEntry", "Landing",
    "LandingField", "LaneId", "LaneScope", "LiveRuns", "MachineId", "ModelChange", "Moment", "NativeId", "NextAfter",
    "NoticeReason", "Origin", "OriginKind", "Outcome", "Overlap", "PacePolicy", "Patience", "PermissionMode", "Pin",
    "PinReason", "PlaceFacts", "PlaceStep", "Plan", "PlanReason", "Policy", "Presence", "Probe", "ProbeKind",
    "ProjectId", "PromptId", "ProviderName", "QueueFacts", "QueuedRun", "QuietHours", "ReadState", "Reader", "Reaped",
    "Reason", "RecordError", "RecordedFor", "Request", "ResetPolicy", "ResolvedPlace", "Resumability", "RetryChoice",
    "RetryPolicy", "RetryStep", "Route", "RouteKey", "RouteKind", "RuleReason", "Run", "RunEvent", "RunId",
    "RunLimits", "RunOutcome", "RunRefusal", "RunScope", "RunState", "RuntimeId", "Sameness", "ScopeKey", "Sent",
    "Served", "Session", "SessionChange", "SessionEvent", "SessionId", "SessionLimits", "SessionState", "Silence",
    "SilenceLimits", "Situation", "Source", "SourceRead", "SteerEvent", "Step", "Subject", "ThreadId", "Tick",
    "TickDecision", "TickFacts", "TickVerdict", "Unheard", "UnreadableCursor", "Verification", "WaitReason", "Waiting",
    "WaitsFor", "Wake", "WakeEnd", "WakeEvent", "WakeId", "WakeReason", "WakeState", "WarmFacts", "Weight",
    "Workspace", "WorkspaceId", "WorkspaceKind", "admit", "advance_approval", "advance_session", "advance_wake",
    "answer", "apply", "ask_next", "capabilities_from_record", "capabilities_to_record", "choose_mode", "coalesce",
    "confirm", "decide", "decision_to_record", "dedupe", "digest_of", "due", "explain", "gather", "headline", "holds",
    "isolated", "judge_reply", "lane_id", "leased", "on_admission", "on_end", "on_engine_failure", "own_thread",
    "pace", "parse_mode", "pin", "plan_to_record", "policy_from_record", "policy_to_record", "presence", "rank",
    "read_cursor", "read_subject", "ready", "reap", "recorded_for", "replay", "resolve_place", "resumability", "retry",
    "runtime_id", "select", "settle", "silence", "situation_from_record", "situation_to_record", "standing",
    "steered_plan", "thread_for", "tick", "to_steer", "value_from_record", "value_to_record", "verify", "voice",
    "waits_for", "wakes_on", "with_observed_work", "write_cursor",
]
# fmt: on
