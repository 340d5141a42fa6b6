"""Builders for kernel tests: a plain, fitting situation, and each test changes the one thing it is about."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from clew.kernel import (
    AccountId,
    AgentId,
    Capabilities,
    Cursor,
    Demand,
    Directory,
    EntrySeq,
    Here,
    LandingField,
    LaneScope,
    MachineId,
    NativeId,
    Outcome,
    PermissionMode,
    PlaceFacts,
    Plan,
    Policy,
    ProjectId,
    ProviderName,
    ReadState,
    RunId,
    Session,
    SessionId,
    Situation,
    Source,
    SourceRead,
    ThreadId,
    Wake,
    WakeId,
    WakeReason,
    Workspace,
    WorkspaceId,
    WorkspaceKind,
    coalesce,
    lane_id,
    runtime_id,
)

AGENT = AgentId("ada")
THREAD = ThreadId("issue-7")
LANE = lane_id(AGENT, THREAD)
OTHER_LANE = lane_id(AGENT, ThreadId("issue-8"))
SCOPE = LaneScope(LANE)
RUN = RunId("run-9")

LAPTOP, SERVER = MachineId("laptop"), MachineId("server")
PROVIDER, OTHER_PROVIDER = ProviderName("loom"), ProviderName("spindle")
HERE = runtime_id(LAPTOP, PROVIDER, "/srv/home")
THERE = runtime_id(SERVER, PROVIDER, "/srv/home")
OTHER_HOME = runtime_id(LAPTOP, PROVIDER, "/srv/other-home")
ACCOUNT, OTHER_ACCOUNT = AccountId("me@work"), AccountId("me@home")
PROJECT = ProjectId("maze")

WORKTREE = Workspace(WorkspaceId("ws-1"), WorkspaceKind.WORKTREE, Directory("/srv/maze"), PROJECT, LAPTOP, "issue-7")
AGENT_HOME = Workspace(WorkspaceId("ws-home"), WorkspaceKind.AGENT_HOME, Directory("/srv/ada"))
ELSEWHERE = Directory("/srv/elsewhere")

FRESH_ID = NativeId("n-fresh")
GONE = "no-such-session"
REFUSED = "session-refused"

ABLE = Capabilities(
    resume=True,
    resume_elsewhere=True,
    fork=True,
    fork_into=True,
    archive=True,
    restore_keeps_id=True,
    choose_id=True,
    reapply_mode=True,
    change_model=True,
    modes=frozenset(PermissionMode),
    archive_formats=frozenset({"loom/1"}),
    id_shape=r"n-[a-z0-9]+",
    missing_signals=frozenset({GONE}),
    rejection_signals=frozenset({REFUSED}),
    reports=frozenset(LandingField),
)


def can(**changes: Any) -> Capabilities:
    return replace(ABLE, **changes)


def session(generation: int = 1, **changes: Any) -> Session:
    plain = Session(
        id=SessionId(f"s{generation}"),
        generation=generation,
        lane=LANE,
        scope=SCOPE,
        provider=PROVIDER,
        runtime=HERE,
        directory=WORKTREE.directory,
        cursor=Cursor(1, NativeId(f"n-{generation}")),
        account=ACCOUNT,
        seen=EntrySeq(3),
        model="large",
        mode=PermissionMode.EDIT,
        instructions="i1",
        tools="t1",
        turns=2,
    )
    return replace(plain, **changes)


def wake(number: int = 1, **changes: Any) -> Wake:
    plain = Wake(
        WakeId(f"w{number}"), LANE, WakeReason.COMMENT, accepted_at=float(number), entries=(EntrySeq(4 + number),)
    )
    return replace(plain, **changes)


def demand(*reasons: WakeReason, **changes: Any) -> Demand:
    wakes = [wake(number, reason=reason) for number, reason in enumerate(reasons or (WakeReason.COMMENT,), 1)]
    return replace(coalesce(wakes), entries=(EntrySeq(5),), **changes)


def here(**changes: Any) -> Here:
    plain = Here(
        machine=LAPTOP,
        runtime=HERE,
        provider=PROVIDER,
        capabilities=ABLE,
        account=ACCOUNT,
        model="large",
        mode=PermissionMode.EDIT,
        instructions="i1",
        tools="t1",
    )
    return replace(plain, **changes)


def situation(sessions: Iterable[Session] = (), **changes: Any) -> Situation:
    listed = tuple(sessions)
    asked = changes.get("demand") is not None and changes["demand"].resume_run is not None
    source = Source.ASKED if asked else Source.LANE
    plain = Situation(
        run=RUN,
        lane=LANE,
        scope=SCOPE,
        here=here(),
        demand=demand(),
        sources=(SourceRead(source, ReadState.ANSWERED if listed else ReadState.EMPTY, listed),),
        head=EntrySeq(5),
        place=PlaceFacts(agent_home=AGENT_HOME, project=PROJECT, remembered=WORKTREE, prepared=WORKTREE),
        policy=Policy(),
        now=1000.0,
        fresh_id=FRESH_ID,
    )
    return replace(plain, **changes)


LEADS = {
    Outcome.FORK: "Continuing in a copy of session {}. ",
    Outcome.TRANSFER: "Restoring session {} here. ",
    Outcome.RESEED: "New conversation with the thread's history, in place of session {}. ",
    Outcome.HOLD: "Waiting for session {}. ",
}


def finding(plan: Plan) -> str:
    """What a rule found about a session, after the lead that says which session, and what happens."""
    read = (session for source in plan.situation.sources for session in source.sessions)
    leads = {LEADS[plan.outcome].format(session.generation) for session in read}
    (lead,) = (each for each in leads if plan.words.startswith(each))
    return plan.words.removeprefix(lead)


def codes(plan: Plan) -> set[str]:
    return {step.code for step in plan.trace}


def steps(plan: Plan, subject: str) -> dict[str, tuple[str, str, str]]:
    return {step.rule: (step.outcome, step.code, step.words) for step in plan.trace if step.subject == subject}
