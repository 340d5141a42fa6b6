"""What the five examples share: one agent on a laptop and a server, and how an answer is printed."""

from clew.kernel import (
    AccountId,
    AgentId,
    Capabilities,
    Cursor,
    Demand,
    Directory,
    EntrySeq,
    Here,
    LaneId,
    LaneScope,
    MachineId,
    NativeId,
    PermissionMode,
    PlaceFacts,
    Plan,
    ProjectId,
    ProviderName,
    ReadState,
    RunId,
    RuntimeId,
    ScopeKey,
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
    explain,
    lane_id,
    runtime_id,
)

AGENT = AgentId("ada")
PROVIDER = ProviderName("coder")
LAPTOP, SERVER = MachineId("laptop"), MachineId("server")
ON_LAPTOP = runtime_id(LAPTOP, PROVIDER, "/srv/agents/coder")
ON_SERVER = runtime_id(SERVER, PROVIDER, "/srv/agents/coder")
LANE = lane_id(AGENT, ThreadId("issue-12"))

HOME = Workspace(WorkspaceId("home"), WorkspaceKind.AGENT_HOME, Directory("/srv/agents/ada"))
WORKTREE = Workspace(
    WorkspaceId("issue-12"), WorkspaceKind.WORKTREE, Directory("/srv/worktrees/issue-12"), ProjectId("shop"), LAPTOP
)

ABLE = Capabilities(
    resume=True,
    fork=True,
    fork_into=True,
    choose_id=True,
    reapply_mode=True,
    change_model=True,
    modes=frozenset(PermissionMode),
    missing_signals=frozenset({"404"}),
)


def session(
    generation: int,
    workspace: Workspace = WORKTREE,
    runtime: RuntimeId = ON_LAPTOP,
    lane: LaneId = LANE,
    scope: ScopeKey | None = None,
    seen: int = 3,
) -> Session:
    return Session(
        id=SessionId(f"session-{generation}"),
        generation=generation,
        lane=lane,
        scope=scope or LaneScope(lane),
        provider=PROVIDER,
        runtime=runtime,
        directory=workspace.directory,
        cursor=Cursor(1, NativeId(f"native-{generation}")),
        account=AccountId("work"),
        seen=EntrySeq(seen),
        mode=PermissionMode.EDIT,
        turns=2,
    )


def wake(reason: WakeReason, entry: int) -> Demand:
    return coalesce([Wake(WakeId(f"wake-{entry}"), LANE, reason, entries=(EntrySeq(entry),))])


def situation(
    sessions: list[Session],
    demand: Demand,
    head: int,
    machine: MachineId = LAPTOP,
    runtime: RuntimeId = ON_LAPTOP,
    place: PlaceFacts | None = None,
    scope: ScopeKey | None = None,
    run: str = "run-9",
) -> Situation:
    return Situation(
        run=RunId(run),
        lane=LANE,
        scope=scope or LaneScope(LANE),
        here=Here(machine, runtime, PROVIDER, ABLE, AccountId("work"), mode=PermissionMode.EDIT),
        demand=demand,
        sources=(SourceRead(Source.LANE, ReadState.ANSWERED if sessions else ReadState.EMPTY, tuple(sessions)),),
        head=EntrySeq(head),
        place=place or PlaceFacts(agent_home=HOME, project=ProjectId("shop"), remembered=WORKTREE, prepared=WORKTREE),
        fresh_id=NativeId("native-fresh"),
    )


def show(title: str, plan: Plan) -> None:
    print(f"\n{title}\n{explain(plan)}")
