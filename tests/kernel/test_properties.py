"""Properties of every decision, over situations that nobody thought of."""

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.kernel import (
    AccountId,
    Archive,
    ArchiveState,
    Capabilities,
    Cursor,
    Demand,
    Directory,
    EntrySeq,
    Floor,
    Here,
    Landing,
    LandingField,
    LaneScope,
    ModelChange,
    NativeId,
    Outcome,
    PermissionMode,
    PlaceFacts,
    Policy,
    Probe,
    ProbeKind,
    ProviderName,
    ReadState,
    ResetPolicy,
    RunId,
    RunScope,
    ScopeKey,
    Session,
    SessionId,
    SessionLimits,
    SessionState,
    Situation,
    Source,
    SourceRead,
    Unheard,
    UnreadableCursor,
    WakeId,
    WakeReason,
    Workspace,
    WorkspaceId,
    WorkspaceKind,
    decide,
    decision_to_record,
    explain,
    replay,
    settle,
    situation_from_record,
    situation_to_record,
    verify,
)
from clew.kernel.probe import Probed
from clew.kernel.session import UNLIMITED
from clew.kernel.situation import decisive
from tests.kernel.kit import GONE, HERE, LANE, LAPTOP, OTHER_HOME, OTHER_LANE, PROJECT, REFUSED, RUN, SERVER, THERE

FEW = 4
TEXTS = st.sampled_from(["", "a", "{session.id}", "ü\n", "%s"])
DIRECTORIES = st.builds(Directory, st.sampled_from(["/srv/a", "/srv/a/", "/srv/c/../a", "/srv/b"]))
MODES = st.sampled_from(PermissionMode)
SEQS = st.integers(0, 8).map(EntrySeq)
LANE_SCOPE: ScopeKey = LaneScope(LANE)
SCOPES = st.sampled_from([*[LANE_SCOPE] * 6, RunScope(LANE, RUN), RunScope(LANE, RunId("run-8"))])
ACCOUNTS = st.sampled_from([*[AccountId("a")] * 6, AccountId("b"), None])
NATIVE_IDS = st.sampled_from(["n-1", "n-2", "n-3", "n-4", "?"]).map(NativeId)
PROVIDERS = st.sampled_from([*["loom"] * 6, "spindle"])
CURSORS = st.one_of(
    st.builds(Cursor, st.just(1), NATIVE_IDS),
    st.builds(Cursor, st.just(1), NATIVE_IDS),
    st.builds(Cursor, st.just(2), NATIVE_IDS),
    st.builds(UnreadableCursor, TEXTS),
    st.none(),
)
ARCHIVES = st.builds(
    Archive, st.sampled_from(["loom/1", "loom/2"]), SEQS, st.integers(0, 3), st.sampled_from(ArchiveState)
)
WORKSPACES = st.builds(
    Workspace,
    st.sampled_from(["w1", "w2"]).map(WorkspaceId),
    st.sampled_from(WorkspaceKind),
    DIRECTORIES,
    st.sampled_from([None, PROJECT]),
    st.sampled_from([None, LAPTOP, SERVER]),
    st.none(),
)
CAPABILITIES = st.builds(
    Capabilities,
    *[st.sampled_from([True, True, False])] * 9,
    modes=st.just(frozenset(PermissionMode)) | st.frozensets(MODES),
    cursor_versions=st.frozensets(st.integers(1, 2), min_size=1),
    archive_formats=st.frozensets(st.just("loom/1")),
    id_shape=st.sampled_from([None, r"n-\d+"]),
    missing_signals=st.frozensets(st.just(GONE)),
    rejection_signals=st.frozensets(st.just(REFUSED)),
    reports=st.frozensets(st.sampled_from(LandingField)),
)
FITTING = Workspace(WorkspaceId("w1"), WorkspaceKind.WORKTREE, Directory("/srv/a"), PROJECT)
FITTING_PLACE = PlaceFacts(agent_home=FITTING, project=PROJECT, remembered=FITTING)
PLACES = st.builds(
    PlaceFacts,
    WORKSPACES,
    st.sampled_from([None, PROJECT]),
    st.none() | WORKSPACES,
    st.lists(WORKSPACES, max_size=2).map(tuple),
    st.none() | WORKSPACES,
    st.none() | TEXTS,
)
POLICIES = st.builds(
    Policy,
    st.builds(ResetPolicy, st.just(frozenset[WakeReason]()) | st.frozensets(st.sampled_from(WakeReason))),
    st.just(UNLIMITED) | st.builds(SessionLimits, st.integers(0, 3), st.none(), st.none(), st.none() | st.floats(0, 9)),
    st.sampled_from(ModelChange),
    *[st.booleans()] * 3,
)
DEMANDS = st.builds(
    Demand,
    wakes=st.just((WakeId("w1"),)),
    reasons=st.lists(st.sampled_from(WakeReason), min_size=1, max_size=3, unique=True).map(tuple),
    entries=st.lists(st.integers(1, 8).map(EntrySeq), max_size=3, unique=True).map(lambda each: tuple(sorted(each))),
    fresh_asked_by=st.sampled_from([*[None] * 6, WakeId("w1")]),
    resume_run=st.sampled_from([*[None] * 4, RunId("run-1")]),
    priority=st.just(0),
    route=st.none(),
)
PROBES = st.builds(
    Probe,
    st.sampled_from(ProbeKind),
    DIRECTORIES,
    st.sampled_from([None, GONE, REFUSED, "other"]),
    st.sampled_from([None, "pid 1"]),
    st.booleans(),
    TEXTS,
)

UNHEARD = st.builds(Unheard, st.just(RunId("run-7")), st.booleans(), st.integers(0, 12), TEXTS)

ODDITIES: dict[str, st.SearchStrategy[Any]] = {
    "lane": st.just(OTHER_LANE),
    "scope": SCOPES,
    "provider": PROVIDERS,
    "runtime": st.sampled_from([THERE, OTHER_HOME, None]),
    "directory": DIRECTORIES,
    "cursor": CURSORS,
    "account": ACCOUNTS,
    "state": st.sampled_from(SessionState),
    "seen": SEQS,
    "begins": SEQS,
    "also": st.lists(st.integers(1, 8).map(EntrySeq), max_size=2, unique=True).map(tuple),
    "model": st.sampled_from([None, "m2"]),
    "mode": st.none() | MODES,
    "busy_with": st.sampled_from(["run-8", RUN]),
    "turns": st.integers(0, 3),
    "archive": ARCHIVES,
    "cut_off": st.just(True),
}


@st.composite
def sessions(draw: st.DrawFn) -> tuple[Session, ...]:
    """A few that fit, each odd in up to three points: sessions odd in every point would never be used."""

    def one(generation: int) -> Session:
        plain = Session(
            id=SessionId(f"s{generation}"),
            generation=generation,
            lane=LANE,
            scope=LaneScope(LANE),
            provider=ProviderName("loom"),
            runtime=HERE,
            directory=Directory("/srv/a"),
            cursor=Cursor(1, NativeId(f"n-{generation}")),
            account=AccountId("a"),
            model="m1",
            mode=PermissionMode.ASK,
        )
        odd = draw(st.lists(st.sampled_from(sorted(ODDITIES)), max_size=3, unique=True))
        away: dict[str, Any] = {"archive": Archive("loom/1", EntrySeq(0))} if "runtime" in odd else {}
        return replace(plain, **away, **{name: draw(ODDITIES[name]) for name in odd if name not in away})

    return tuple(one(generation) for generation in draw(st.permutations(range(1, draw(st.integers(0, FEW)) + 1))))


@st.composite
def situations(draw: st.DrawFn) -> Situation:
    listed = draw(sessions())
    asked = draw(DEMANDS)
    head = EntrySeq(max(draw(SEQS), *asked.entries, 0))
    states = st.sampled_from([*[ReadState.ANSWERED] * 6, *ReadState])
    reads = [SourceRead(draw(st.sampled_from([decisive(asked)] * 6 + list(Source))), draw(states), listed, draw(TEXTS))]
    return Situation(
        run=RUN,
        lane=LANE,
        scope=draw(SCOPES),
        here=Here(
            machine=draw(st.sampled_from([LAPTOP, SERVER])),
            runtime=HERE,
            provider=ProviderName(draw(PROVIDERS)),
            capabilities=draw(CAPABILITIES),
            account=draw(ACCOUNTS),
            model=draw(st.sampled_from([None, "m1"])),
            mode=draw(MODES),
            mode_limits=tuple(draw(st.lists(MODES, max_size=2))),
        ),
        demand=asked,
        sources=tuple(reads),
        head=head,
        place=draw(st.one_of(st.just(FITTING_PLACE), st.just(FITTING_PLACE), PLACES)),
        policy=draw(POLICIES),
        now=draw(st.floats(0, 9)),
        floor=draw(st.sampled_from([Floor(), Floor(), Floor(1, EntrySeq(2)), Floor(FEW, EntrySeq(9), (EntrySeq(1),))])),
        fresh_id=draw(st.none() | NATIVE_IDS),
        machinery_gone=draw(st.sampled_from([(), ("a {brace}",)])),
        probes=tuple(
            Probed(SessionId(f"s{draw(st.integers(1, FEW))}"), draw(PROBES), draw(st.booleans()))
            for _ in range(draw(st.sampled_from([0, 0, 0, 1, 2])))
        ),
        unheard=draw(st.sampled_from([(), (), (), ()]) | st.lists(UNHEARD, max_size=2).map(tuple)),
    )


@pytest.mark.case("C26", "C27")
@given(situations())
def test_every_situation_has_one_outcome_and_a_trace_that_can_be_read(known: Situation) -> None:
    plan = decide(known)
    assert plan.outcome in Outcome
    assert plan.words
    assert plan.trace[-1].outcome == plan.outcome
    assert all(step.code and step.rule and step.subject for step in plan.trace)
    considered = {each.session.id for each in plan.considered} | {each.id for each in plan.not_needed}
    given = {session.id for read in known.sources for session in read.sessions}
    assert considered <= given
    read_for_it = known.sources[0].source is decisive(known.demand)
    assert considered == given or (not read_for_it and known.demand.fresh_asked_by is None)
    assert explain(plan, every_rule=True).startswith(f"{plan.outcome}: ")
    assert (plan.outcome is Outcome.HOLD) == (plan.waits_for is not None)


@pytest.mark.case("C03", "C06", "C19", "C21", "C29")
@given(situations())
def test_an_earlier_session_is_used_only_where_everything_that_must_match_does(known: Situation) -> None:
    plan = decide(known)
    if plan.outcome in (Outcome.RESEED, Outcome.BLANK):
        assert plan.session is None
        taken = {s.cursor.native_id for r in known.sources for s in r.sessions if isinstance(s.cursor, Cursor)}
        assert plan.native_id is None or plan.native_id not in taken
        assert plan.catch_up.after >= min(known.floor.entry, known.head)
    elif plan.session is not None and plan.outcome is not Outcome.HOLD:
        assert plan.catch_up.after >= min(plan.session.begins, known.head)
    if known.demand.fresh_asked_by is not None and plan.outcome is not Outcome.HOLD:
        assert plan.outcome is Outcome.BLANK
    if plan.outcome not in (Outcome.RESUME, Outcome.FORK, Outcome.TRANSFER):
        return
    session, here = plan.session, known.here
    assert session is not None
    assert session.generation > known.floor.generation or known.demand.resume_run is not None
    assert (session.lane, session.scope) == (known.lane, known.scope)
    assert (session.provider, session.account) == (here.provider, here.account)
    assert isinstance(session.cursor, Cursor)
    assert session.state in (SessionState.HEALTHY, SessionState.LOST)
    if plan.outcome is Outcome.TRANSFER:
        assert session.archive is not None
        assert session.archive.state is ArchiveState.READY
    else:
        assert session.runtime == here.runtime
        assert session.state is SessionState.HEALTHY
    if plan.outcome is not Outcome.FORK:
        assert session.busy_with in (None, known.run)


@pytest.mark.case("A01", "A02", "P03")
@given(situations())
def test_no_plan_is_wider_than_any_mode_that_has_a_say(known: Situation) -> None:
    plan = decide(known)
    if plan.outcome is not Outcome.HOLD:
        assert plan.mode is not None
        assert all(plan.mode <= limit for limit in (known.here.mode, *known.here.mode_limits))


@pytest.mark.case("X01")
@given(situations())
def test_what_was_seen_and_the_catch_up_make_the_journal(known: Situation) -> None:
    plan = decide(known)
    journal = [EntrySeq(entry) for entry in range(1, known.head + 1)]
    assert [entry for entry in journal if entry <= plan.catch_up.after or entry in plan.catch_up] == journal
    assert plan.catch_up.through == known.head
    assert 0 <= plan.catch_up.after <= known.head
    if plan.session is not None and plan.outcome in (Outcome.RESUME, Outcome.FORK):
        told = set(range(plan.session.begins + 1, plan.session.seen + 1)) | set(plan.session.also)
        assert set(plan.already_told) == {
            entry for entry in plan.act_on if entry in told and entry <= plan.session.seen
        }
    assert len(plan.catch_up) == sum(entry in plan.catch_up for entry in journal)


@pytest.mark.case("C33")
@given(situations())
def test_every_decision_can_be_kept_and_made_again(known: Situation) -> None:
    plan = decide(known)
    record: Any = json.loads(json.dumps(decision_to_record(plan)))
    assert situation_from_record(record) == known
    again = replay(record)
    assert again.same
    assert again.plan == plan
    assert json.loads(json.dumps(situation_to_record(known))) == {k: record[k] for k in ("version", "situation")}


@pytest.mark.case("C14", "C15", "P08")
@given(situations(), st.lists(PROBES, min_size=1, max_size=2 * FEW))
def test_asking_ends_and_never_loses_a_session_to_a_guess(known: Situation, answers: list[Probe]) -> None:
    plan = decide(known)
    for probe in answers:
        before, plan = plan, settle(plan, probe)
        if plan is before:
            continue
        declared = known.here.capabilities
        structured = {
            ProbeKind.MISSING: probe.signal in declared.missing_signals,
            ProbeKind.REJECTED: probe.signal in declared.rejection_signals and not probe.tool_ran,
            ProbeKind.FOUND_HERE: True,
            ProbeKind.FOUND_ELSEWHERE: True,
        }.get(probe.kind, False)
        if not structured:
            assert plan.outcome not in (Outcome.RESEED, Outcome.BLANK)
            assert plan.session_changes == before.session_changes
        if plan.needs_probe and before.session is not None and plan.session is not None and structured:
            assert plan.session.id != before.session.id or plan.outcome is not before.outcome


@pytest.mark.case("C32", "P07")
@given(situations(), st.builds(Landing, st.none() | NATIVE_IDS, st.none() | DIRECTORIES, st.none() | MODES))
def test_a_prompt_goes_out_only_into_the_planned_session_place_and_mode(known: Situation, landing: Landing) -> None:
    plan = decide(known)
    if not verify(plan, landing).may_continue:
        return
    assert plan.outcome is not Outcome.HOLD
    assert not plan.needs_probe
    assert plan.native_id in (None, landing.native_id) or landing.native_id is None
    if landing.directory is not None:
        assert plan.workspace is not None
        assert landing.directory == plan.workspace.directory
    if landing.mode is not None:
        assert plan.mode is not None
        assert landing.mode <= plan.mode
