"""The decision space: what must hold, asserted on every combination.

`make enumerate` walks it in full, and prints how many combinations there are and how long they took. Other runs take
every 17th combination.
"""

import os
import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import islice, product
from typing import Any, TypeVar

import pytest

from clew.kernel import (
    Archive,
    ArchiveState,
    Capabilities,
    Claim,
    Cursor,
    Directory,
    EntrySeq,
    Landing,
    LandingField,
    LaneScope,
    NativeId,
    NoticeReason,
    Outcome,
    PermissionMode,
    PlaceFacts,
    Plan,
    PlanReason,
    Policy,
    Probe,
    ProbeKind,
    ReadState,
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
    WaitsFor,
    WakeId,
    WakeReason,
    Workspace,
    WorkspaceId,
    WorkspaceKind,
    advance_session,
    ask_next,
    decide,
    settle,
    verify,
)
from clew.kernel.place import choose_place
from clew.kernel.session import UNLIMITED
from tests.kernel.kit import (
    ABLE,
    ACCOUNT,
    AGENT_HOME,
    ELSEWHERE,
    FRESH_ID,
    GONE,
    HERE,
    LANE,
    LAPTOP,
    OTHER_ACCOUNT,
    OTHER_HOME,
    OTHER_LANE,
    OTHER_PROVIDER,
    PROJECT,
    PROVIDER,
    REFUSED,
    RUN,
    SERVER,
    THERE,
    WORKTREE,
    can,
    demand,
    here,
    session,
    situation,
)

T = TypeVar("T")

COUNTS: dict[str, int] = {}
# 17 divides the size of no dimension, so every value of every dimension is met.
STRIDE = 1 if os.environ.get("CLEW_THOROUGH") == "1" else 17


def walk(combinations: Iterable[T]) -> Iterator[T]:
    return islice(combinations, 0, None, STRIDE)


@pytest.fixture(autouse=True, scope="module")
def report() -> Iterator[None]:
    began = time.perf_counter()
    yield
    total = sum(COUNTS.values())
    print(f"\n{total:,} combinations of the decision space in {time.perf_counter() - began:.1f} s: {COUNTS}")


def count(name: str, number: int) -> None:
    COUNTS[name] = COUNTS.get(name, 0) + number


HEAD = EntrySeq(5)
READY = Archive("loom/1", EntrySeq(2))
ISOLATED = RunScope(LANE, RUN)
DEMANDS = {
    "comment": demand(WakeReason.COMMENT),
    "assignment": demand(WakeReason.ASSIGNMENT),
    "handed over": demand(WakeReason.ASSIGNMENT, handed_over=True),
    "fresh": demand(fresh_asked_by=WakeId("w1")),
    "asked": demand(WakeReason.ASSIGNMENT, resume_run=RunId("run-1")),
    "both": demand(fresh_asked_by=WakeId("w1"), resume_run=RunId("run-1")),
}
RESETS = {"assignment", "handed over", "fresh", "both"}
CURSORS = (Cursor(1, NativeId("n-1")), None, UnreadableCursor("it is not JSON"))
RUNTIMES = (HERE, THERE, OTHER_HOME, None)
ARCHIVES = (None, READY, replace(READY, state=ArchiveState.CORRUPT))
ABILITIES = (
    can(resume=False),
    *(
        can(fork_into=into, resume_elsewhere=elsewhere, archive=archive)
        for (into, elsewhere), archive in product(((True, True), (False, True), (False, False)), (True, False))
    ),
)


def candidates(state: SessionState) -> Iterator[Session]:
    # Every second one was cut off in its last turn: that decides nothing but what it is told.
    for at, (lane, scope, provider, account, cursor, runtime, archive, directory, busy) in enumerate(
        product(
            (LANE, OTHER_LANE),
            (LaneScope(LANE), ISOLATED),
            (PROVIDER, OTHER_PROVIDER),
            (ACCOUNT, OTHER_ACCOUNT, None),
            CURSORS,
            RUNTIMES,
            ARCHIVES,
            (WORKTREE.directory, ELSEWHERE),
            (None, "run-8"),
        )
    ):
        yield session(
            1,
            lane=lane,
            scope=scope,
            provider=provider,
            account=account,
            cursor=cursor,
            runtime=runtime,
            archive=archive,
            directory=directory,
            busy_with=busy,
            state=state,
            cut_off=bool(at.bit_count() % 2),
        )


def known(listed: tuple[Session, ...], name: str, scope: ScopeKey, able: Capabilities, policy: Policy) -> Situation:
    asked = DEMANDS[name].resume_run is not None
    return Situation(
        run=RUN,
        lane=LANE,
        scope=scope,
        here=here(capabilities=able),
        demand=DEMANDS[name],
        sources=(SourceRead(Source.ASKED if asked else Source.LANE, ReadState.ANSWERED, listed),),
        head=HEAD,
        place=PLACE,
        policy=policy,
        now=1000.0,
        fresh_id=FRESH_ID,
    )


PLACE = situation().place
BY_ABILITY = tuple((able, here(capabilities=able)) for able in ABILITIES)


def is_its_own(one: Session, scope: ScopeKey, name: str) -> bool:
    """What makes a session this conversation's, said once more in other words than the rules'."""
    mine = (one.lane, one.scope, one.provider, one.account) == (LANE, scope, PROVIDER, ACCOUNT)
    return mine and name not in RESETS


def check_every_plan(plan: Plan, name: str) -> None:
    outcome, chosen = plan.outcome, plan.session
    assert isinstance(outcome, Outcome)
    assert plan.mode is not None
    assert plan.mode <= PermissionMode.EDIT
    assert plan.workspace == WORKTREE
    if name == "handed over" and not isinstance(plan.situation.scope, RunScope):
        assert (outcome, plan.reason) == (Outcome.RESEED, PlanReason.HANDED_OVER)
        assert plan.act_on == (HEAD,)
        # No earlier session is gone back to, and the history begins where it did.
        floor = plan.new_floor
        assert floor is not None
        assert (floor.entry, floor.kept) == (0, ())
        assert floor.generation == max((each.generation for each in own_sessions(plan)), default=0)
    elif name in RESETS:
        assert outcome is Outcome.BLANK
    if outcome in (Outcome.BLANK, Outcome.RESEED):
        assert chosen is None
        assert plan.native_id == FRESH_ID
        assert plan.proven is False
    if outcome is Outcome.HOLD:
        assert plan.waits_for is not None
    else:
        assert plan.waits_for is None
        seen = seen_before(plan)
        assert (plan.catch_up.after, plan.catch_up.through) == (seen, HEAD)
    if chosen is not None and chosen.account == OTHER_ACCOUNT:
        raise AssertionError("another account's session is never planned")
    if name == "asked":
        assert outcome not in (Outcome.BLANK, Outcome.RESEED)
    goes_on = chosen is not None and outcome is not Outcome.HOLD
    told = any(notice.reason is NoticeReason.CUT_OFF for notice in plan.notices)
    assert told is (goes_on and chosen is not None and chosen.cut_off)


def own_sessions(plan: Plan) -> list[Session]:
    known = plan.situation
    listed = [each for read in known.sources for each in read.sessions]
    return [each for each in listed if (each.lane, each.scope) == (known.lane, known.scope)]


def seen_before(plan: Plan) -> int:
    """What counts as seen: with the catch-up after it, it makes the whole journal."""
    if plan.outcome is Outcome.BLANK or isinstance(plan.situation.scope, RunScope):
        return HEAD
    if plan.outcome is Outcome.RESEED:
        return 0
    assert plan.session is not None
    if plan.outcome is Outcome.TRANSFER:
        assert plan.session.archive is not None
        return plan.session.archive.seen
    return plan.session.seen


@pytest.mark.case("C03", "C06", "C19", "C21", "C27", "C29", "W19", "X01")
@pytest.mark.parametrize("name", DEMANDS)
@pytest.mark.parametrize("state", SessionState)
def test_one_candidate(state: SessionState, name: str) -> None:
    number = 0
    policy = Policy()
    demanded = DEMANDS[name]
    source = Source.ASKED if demanded.resume_run is not None else Source.LANE
    for one in walk(candidates(state)):
        sources = (SourceRead(source, ReadState.ANSWERED, (one,)),)
        for scope in (LaneScope(LANE), ISOLATED):
            own = is_its_own(one, scope, name)
            ended = state in (SessionState.POISONED, SessionState.RETIRED, SessionState.MOVED)
            for able, there in BY_ABILITY:
                plan = decide(
                    Situation(
                        run=RUN,
                        lane=LANE,
                        scope=scope,
                        here=there,
                        demand=demanded,
                        sources=sources,
                        head=HEAD,
                        place=PLACE,
                        policy=policy,
                        now=1000.0,
                        fresh_id=FRESH_ID,
                    )
                )
                number += 1
                check_every_plan(plan, name)
                is_here = one.directory == WORKTREE.directory
                reachable = own and not ended and one.cursor == CURSORS[0] and able.resume
                waits = own and (state is SessionState.SEALED or one.busy_with is not None)
                movable = is_here or able.fork_into or able.resume_elsewhere
                native = reachable and one.runtime == HERE and state is SessionState.HEALTHY and movable
                away = one.runtime != HERE or state is SessionState.LOST
                carried = reachable and one.runtime is not None and away and able.archive and one.archive == READY
                forks = native and not is_here and able.fork_into
                if waits:
                    assert (plan.outcome, plan.session) == (Outcome.HOLD, one)
                elif forks:
                    assert (plan.outcome, plan.session) == (Outcome.FORK, one)
                elif native:
                    assert (plan.outcome, plan.session) == (Outcome.RESUME, one)
                elif carried:
                    assert (plan.outcome, plan.session) == (Outcome.TRANSFER, one)
                else:
                    assert plan.session is None
                    fresh = (Outcome.HOLD,) if name == "asked" else (Outcome.BLANK, Outcome.RESEED)
                    assert plan.outcome in fresh
                    if isinstance(scope, RunScope) and name != "asked":
                        assert plan.outcome is Outcome.BLANK
    count("one candidate", number)


ARCHETYPES = tuple(
    session(1, **changes)
    for changes in (
        {},
        {"directory": ELSEWHERE},
        {"busy_with": "run-8"},
        {"busy_with": "run-8", "directory": ELSEWHERE},
        {"runtime": THERE},
        {"runtime": THERE, "archive": READY},
        {"runtime": THERE, "archive": READY, "busy_with": "run-8"},
        {"runtime": None},
        {"runtime": OTHER_HOME, "archive": READY, "directory": ELSEWHERE},
        {"state": SessionState.LOST},
        {"state": SessionState.LOST, "archive": READY},
        {"state": SessionState.POISONED},
        {"state": SessionState.RETIRED},
        {"state": SessionState.SEALED},
        {"state": SessionState.MOVED},
        {"account": OTHER_ACCOUNT},
        {"account": OTHER_ACCOUNT, "archive": READY, "runtime": THERE},
        {"provider": OTHER_PROVIDER},
        {"lane": OTHER_LANE},
        {"scope": ISOLATED},
        {"cursor": None},
        {"model": "small"},
        {"cut_off": True},
        {"cut_off": True, "runtime": THERE, "archive": READY},
        {"mode": PermissionMode.FULL},
        {"seen": EntrySeq(9)},
        {"turns": 99},
        {"turns": 99, "busy_with": "run-8"},
    )
)
POLICIES = tuple(
    Policy(parallel=parallel, transfer=transfer, history_across_accounts=across, limits=limits)
    for parallel, transfer, across, limits in product(
        (True, False), (True, False), (True, False), (UNLIMITED, SessionLimits(turns=50))
    )
)


@pytest.mark.case("C09", "C19", "C23", "C29", "C31", "P21", "T01", "W19")
@pytest.mark.parametrize("name", DEMANDS)
def test_two_candidates(name: str) -> None:
    number = 0
    ids = (Cursor(1, NativeId("n-2")), Cursor(1, NativeId("n-1")))
    for newer, older, policy, same_id in walk(product(ARCHETYPES, ARCHETYPES, POLICIES, (True, False))):
        cursor = newer.cursor and ids[1 if same_id else 0]
        rows = (older, replace(newer, id=SessionId("s2"), generation=2, cursor=cursor))
        plan = decide(known(rows, name, LaneScope(LANE), ABLE, policy))
        number += 1
        check_every_plan(plan, name)
        assert len(plan.considered) + len(plan.not_needed) == 2
        first = decide(known(rows[1:], name, LaneScope(LANE), ABLE, policy))
        # The newer one, alone able to serve on this runtime, is never passed over for the older.
        if first.outcome in (Outcome.RESUME, Outcome.FORK) or (
            first.outcome is Outcome.HOLD and first.session is not None
        ):
            assert (plan.outcome, plan.session) == (first.outcome, first.session)
        if plan.session is not None and plan.outcome is not Outcome.HOLD:
            assert plan.session.state in (SessionState.HEALTHY, SessionState.LOST)
            assert plan.session.busy_with is None or plan.outcome is Outcome.FORK
            assert plan.session.account == ACCOUNT
            if plan.outcome is not Outcome.TRANSFER:
                assert plan.session.runtime == HERE
            else:
                assert policy.transfer
        last = next((each for each in rows[::-1] if (each.lane, each.scope) == (LANE, LaneScope(LANE))), None)
        # A thread that is handed over is: what agents of the other account wrote is withheld by the plan's reader.
        withheld = last is not None and last.account == OTHER_ACCOUNT and name != "handed over"
        if plan.outcome is Outcome.RESEED and withheld:
            assert policy.history_across_accounts
        assert plan.reader.across_accounts == policy.history_across_accounts
        if policy.limits.turns and plan.outcome is not Outcome.HOLD and plan.session is not None and name != "asked":
            assert plan.session.turns < policy.limits.turns
        for mark in plan.session_changes:
            marked = next(each.session for each in plan.considered if each.session.id == mark.session)
            assert advance_session(marked.state, mark.event) is not None
            assert marked.busy_with is None
        same_lane = (newer.lane, newer.scope) == (older.lane, older.scope) == (LANE, LaneScope(LANE))
        if same_id and same_lane and newer.runtime == older.runtime and newer.cursor and older.cursor:
            assert plan.session != older
    count("two candidates", number)


ACCOUNTS = (None, ACCOUNT, OTHER_ACCOUNT)
KEYS = (None, "k1", "k2")


@pytest.mark.case("C23", "S15")
@pytest.mark.parametrize("name", DEMANDS)
def test_every_account_and_key(name: str) -> None:
    """A named account keeps sessions apart, also from what names none; a key never does, and is only noted."""
    number = 0
    for base, had, has, old_key, new_key, policy in walk(
        product(ARCHETYPES, ACCOUNTS, ACCOUNTS, KEYS, KEYS, (Policy(), Policy(history_across_accounts=True)))
    ):
        one = replace(base, account=had, credential=old_key)
        there = here(capabilities=ABLE, account=has, credential=new_key, agent="ada")
        plan = decide(replace(known((one,), name, LaneScope(LANE), ABLE, policy), here=there))
        kept = decide(replace(plan.situation, here=replace(there, credential=old_key)))
        number += 1
        # Another key changes nothing but its note.
        assert (plan.outcome, plan.reason, plan.session) == (kept.outcome, kept.reason, kept.session)
        noted = any(finding.code == "key:drift" for _, findings in plan.weighed for finding in findings)
        if plan.outcome in (Outcome.RESUME, Outcome.FORK, Outcome.TRANSFER):
            assert had == has
            # A key that is not known on either side is no change.
            assert noted == (None not in (old_key, new_key) and old_key != new_key)
        own = (one.lane, one.scope, one.provider) == (LANE, LaneScope(LANE), PROVIDER) and name not in RESETS
        if own and had != has and name != "asked":
            withheld = not policy.history_across_accounts
            assert plan.outcome is (Outcome.BLANK if withheld else Outcome.RESEED)
            assert (plan.reason.code == "account:withheld") == withheld
            assert ("clew agent edit ada --across-accounts yes" in plan.words) == withheld
        said = (plan.words, *(notice.words for notice in plan.notices))
        assert not any("account None" in words or "uses None" in words for words in said)
    count("accounts and keys", number)


ALONE = tuple(
    Unheard(RunId(f"run-{at}"), hears, asked, why)
    for at, (hears, asked, why) in enumerate(product((True, False), range(12), ("", "it is locked")))
)
UNHEARD = (*((each,) for each in ALONE), *product(ALONE[::9], ALONE[::7]))


@pytest.mark.case("P19")
@pytest.mark.parametrize("name", DEMANDS)
def test_nothing_is_planned_while_it_is_not_known_what_was_taken(name: str) -> None:
    """Every kind of session, beside every prompt of which nobody knows, and beside two of them."""
    number = 0
    asked = [(unheard, ask_next(unheard)) for unheard in UNHEARD]
    for newer, policy, (unheard, asks) in walk(product(ARCHETYPES, POLICIES[::5], asked)):
        plan = decide(replace(known((newer,), name, LaneScope(LANE), ABLE, policy), unheard=unheard))
        number += 1
        assert asks is not None
        assert (plan.outcome, plan.reason, plan.words) == (Outcome.HOLD, asks.reason, asks.words)
        assert plan.waits_for is (WaitsFor.PERSON if asks.wait is None else WaitsFor.ANOTHER_TRY)
        assert (plan.session, plan.session_changes, plan.notices, len(plan.catch_up)) == (None, (), (), 0)
    count("unheard prompts", number)


@pytest.mark.case("A01", "A02", "P03")
def test_every_permission() -> None:
    number = 0
    modes = tuple(PermissionMode)
    subsets = [frozenset(mode for at, mode in enumerate(modes) if bits >> at & 1) for bits in range(16)]
    carried: dict[str, Any] = {"runtime": THERE, "archive": READY}
    paths: tuple[dict[str, Any], ...] = ({}, {"directory": ELSEWHERE}, carried, {"cursor": None})
    for had, wanted, limit, expressible, reapply, path in walk(
        product((None, *modes), modes, (None, *modes), subsets, (True, False), paths)
    ):
        there = here(
            mode=wanted,
            mode_limits=() if limit is None else (limit,),
            capabilities=can(modes=expressible, reapply_mode=reapply),
        )
        plan = decide(situation([session(1, mode=had, **path)], here=there))
        number += 1
        allowed = wanted if limit is None else min(wanted, limit)
        if not any(mode <= allowed for mode in expressible):
            assert plan.outcome is Outcome.HOLD
            continue
        assert plan.mode is not None
        assert plan.mode <= allowed
        if plan.session is None or reapply:
            assert plan.mode in expressible
            assert not any(plan.mode < mode <= allowed for mode in expressible)
        else:
            assert plan.mode is had
    count("permissions", number)


PROBES = (
    Probe(ProbeKind.FOUND_HERE),
    Probe(ProbeKind.FOUND_ELSEWHERE, directory=ELSEWHERE),
    Probe(ProbeKind.MISSING, signal=GONE),
    Probe(ProbeKind.MISSING, signal="a text"),
    Probe(ProbeKind.MISSING),
    Probe(ProbeKind.REJECTED, signal=REFUSED),
    Probe(ProbeKind.REJECTED, signal=REFUSED, tool_ran=True),
    Probe(ProbeKind.REJECTED, signal=GONE),
    Probe(ProbeKind.REJECTED),
    Probe(ProbeKind.UNREACHABLE),
    Probe(ProbeKind.UNREACHABLE, signal=GONE),
    Probe(ProbeKind.BUSY),
)
TRANSIENT = {probe for probe in PROBES if probe.kind in (ProbeKind.UNREACHABLE, ProbeKind.BUSY)} | {
    Probe(ProbeKind.MISSING, signal="a text"),
    Probe(ProbeKind.MISSING),
    Probe(ProbeKind.REJECTED, signal=GONE),
    Probe(ProbeKind.REJECTED),
    Probe(ProbeKind.REJECTED, signal=REFUSED, tool_ran=True),
}


@pytest.mark.case("C13", "C14", "C15", "C16", "P08", "P11")
@pytest.mark.parametrize("parallel", [True, False])
def test_every_answer_to_every_plan(parallel: bool) -> None:
    number = 0
    able = (ABLE, can(fork_into=False), can(fork_into=False, resume_elsewhere=False), can(fork=False))
    for newer, older, ability in walk(product(ARCHETYPES, ARCHETYPES, able)):
        rows = (
            older,
            replace(newer, id=SessionId("s2"), generation=2, cursor=newer.cursor and Cursor(1, NativeId("n-2"))),
        )
        plan = decide(known(rows, "comment", LaneScope(LANE), ability, Policy(parallel=parallel)))
        for first, second in product(PROBES, PROBES):
            once = settle(plan, first)
            twice = settle(once, second)
            number += 1
            for before, probe, after in ((plan, first, once), (once, second, twice)):
                if before.session is None or before.outcome is Outcome.HOLD:
                    assert after is before
                    continue
                if probe in TRANSIENT:
                    # It waits; what is busy may be forked, or a newer one carried. Nothing is forgotten.
                    busy = probe.kind is ProbeKind.BUSY
                    allowed = (Outcome.HOLD, Outcome.FORK, Outcome.TRANSFER) if busy else (Outcome.HOLD,)
                    assert after.outcome in allowed
                    assert after.session is not None
                    assert after.session_changes == before.session_changes
                if after.outcome in (Outcome.RESUME, Outcome.FORK) and after.proven:
                    assert after.session is not None
                    assert after.session.id == before.session.id
                if before.outcome is Outcome.RESUME and probe.kind is ProbeKind.FOUND_HERE:
                    assert (after.outcome, after.proven) == (Outcome.RESUME, True)
                if after.outcome in (Outcome.RESEED, Outcome.BLANK) and probe.kind is not ProbeKind.FOUND_ELSEWHERE:
                    assert probe.signal in (GONE, REFUSED)
                    assert not probe.tool_ran
    count("answers to plans", number)


@pytest.mark.case("C17", "C32", "D10", "P07")
def test_every_landing_on_every_plan() -> None:
    number = 0
    found, carried = Probe(ProbeKind.FOUND_HERE), session(1, runtime=THERE, archive=replace(READY, turns=2))
    forked = session(1, directory=ELSEWHERE)
    plans = (
        settle(decide(situation([session(1)])), found),
        decide(situation([session(1)])),
        settle(decide(situation([forked])), Probe(ProbeKind.FOUND_ELSEWHERE, directory=ELSEWHERE)),
        settle(decide(situation([carried])), found),
        decide(situation([session(1, cursor=None)])),
        decide(situation([session(1)], demand=DEMANDS["fresh"])),
        decide(situation([session(1, busy_with="run-8")])),
    )
    for plan, native_id, directory, mode, model, account, turns in product(
        plans,
        (None, NativeId("n-1"), FRESH_ID, NativeId("n-9"), NativeId("?")),
        (None, WORKTREE.directory, Directory("/srv/maze/"), ELSEWHERE),
        (None, *PermissionMode),
        (None, "large", "small"),
        (None, ACCOUNT, OTHER_ACCOUNT),
        (None, 0, 1, 2),
    ):
        verification = verify(plan, Landing(native_id, directory, mode, model, account, turns))
        number += 1
        wanted_id = {Outcome.RESUME: "n-1", Outcome.TRANSFER: "n-1"}.get(plan.outcome, FRESH_ID)
        continues = plan.outcome in (Outcome.RESUME, Outcome.FORK, Outcome.TRANSFER)
        right = (
            native_id == wanted_id
            and directory == WORKTREE.directory
            and mode is not None
            and mode <= PermissionMode.EDIT
            and model is not None
            and account == ACCOUNT
            and turns is not None
            and (turns > 0) == continues
            and plan.outcome is not Outcome.HOLD
            and not plan.needs_probe
        )
        assert verification.may_continue == right
        assert (verification.claim is Claim.NOTHING) == (not right)
        assert set(verification.unverified) <= set(LandingField)
    count("landings", number)


@pytest.mark.case("D01", "D02", "D03")
def test_every_place() -> None:
    number = 0
    plain = Workspace(WorkspaceId("ws-2"), WorkspaceKind.DIRECTORY, Directory("/srv/notes"), machine=LAPTOP)
    remote = replace(WORKTREE, id=WorkspaceId("ws-3"), machine=SERVER)
    shared = replace(WORKTREE, id=WorkspaceId("ws-4"), machine=None)
    places = (None, AGENT_HOME, WORKTREE, remote, shared, plain)
    earlier = [tuple(each for each in pair if each is not None) for pair in product(places, repeat=2)]
    for project, remembered, before, prepared, machine in product(
        (None, PROJECT), places, earlier, (None, WORKTREE), (LAPTOP, SERVER)
    ):
        facts = PlaceFacts(AGENT_HOME, project, remembered, before, prepared)
        choice = choose_place(facts, machine)
        number += 1
        memory = [each for each in (remembered, *before) if each is not None and each is not AGENT_HOME]
        if choice.workspace is not None:
            assert choice.workspace.reachable_from(machine)
            if project or memory:
                assert choice.workspace is not AGENT_HOME
            if project or (memory and memory[0].project):
                assert choice.workspace.project == PROJECT
        assert choice.words
    count("places", number)
