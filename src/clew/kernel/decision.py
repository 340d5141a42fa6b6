"""The decision: how a wake continues. `decide` is one pure function from a situation to a plan with its trace."""

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from operator import attrgetter

from clew.kernel.candidates import weigh_all
from clew.kernel.contract import must_be
from clew.kernel.ids import EntrySeq, NativeId, RunScope
from clew.kernel.permission import PermissionMode, choose_mode
from clew.kernel.place import PlaceChoice, choose_place
from clew.kernel.plan import (
    USES_EARLIER_SESSION,
    Audience,
    CatchUp,
    Notice,
    NoticeReason,
    Outcome,
    Plan,
    PlanReason,
    SessionChange,
)
from clew.kernel.probe import Learned, Probe, Probed, learn
from clew.kernel.rule import Wanted
from clew.kernel.rule_reason import RuleName, RuleReason
from clew.kernel.session import Cursor, Session, SessionEvent, known_ids
from clew.kernel.situation import Situation, decisive, is_reset
from clew.kernel.verdict import Verdict, judge


def decide(situation: Situation) -> Plan:
    """Decide how the run's wakes continue. The same situation always gives the same plan."""
    must_be(situation, Situation, "what is to be decided")
    here = situation.here
    place = choose_place(situation.place, here.machine)
    mode = choose_mode(here.mode, here.mode_limits, here.capabilities.modes)
    wanted = _wanted(situation, place, mode.mode)
    learned = _learned(situation, wanted)
    sessions = _sessions(situation)
    if situation.probes:
        sessions = [learned.sessions[session.id] for session in sessions]
    if len(sessions) > 1:
        sessions.sort(key=_generation, reverse=True)
    weighing = weigh_all(sessions, wanted)
    verdict = judge(situation, place, mode, wanted, learned, weighing)
    session, outcome = verdict.session, verdict.outcome
    after, kept = _beginning(situation, verdict, sessions)
    return Plan(
        outcome=outcome,
        reason=verdict.reason,
        words=verdict.words,
        situation=situation,
        session=session,
        native_id=_native_id(situation, outcome, session, sessions, wanted.id_shape),
        workspace=place.workspace,
        mode=_mode(outcome, session, wanted),
        model=here.model,
        catch_up=CatchUp(after, situation.head),
        kept=kept,
        act_on=situation.demand.entries,
        proven=session is not None and session.id in learned.proven,
        waits_for=verdict.waits_for,
        session_changes=_session_changes(verdict, learned),
        notices=_notices(situation, verdict),
        weighed=weighing.weighed,
        not_needed=weighing.not_needed,
        place=place,
        mode_choice=mode,
        wanted=wanted,
    )


def settle(plan: Plan, probe: Probe) -> Plan:
    """Decide again with the agent's answer about the session as one more fact.

    A plan that continues no session needs no probe and is returned as it is. A held plan is decided again from a new
    situation when its wait is over.
    """
    must_be(plan, Plan, "the plan to settle")
    must_be(probe, Probe, "the agent's answer")
    if plan.session is None or plan.outcome not in USES_EARLIER_SESSION:
        return plan
    probed = Probed(plan.session.id, probe, restored=plan.outcome is Outcome.TRANSFER)
    return decide(replace(plan.situation, probes=(*plan.situation.probes, probed)))


_generation = attrgetter("generation")
_NOTHING_LEARNED = Learned({}, frozenset(), (), (), None, None)


def _wanted(situation: Situation, place: PlaceChoice, mode: PermissionMode | None) -> Wanted:
    here, policy = situation.here, situation.policy
    shape = here.capabilities.id_shape
    return Wanted(
        situation=situation,
        scope=situation.scope,
        here=here,
        policy=policy,
        reset=is_reset(situation.demand, policy),
        floor=_floor(situation),
        directory=None if place.workspace is None else place.workspace.directory,
        mode=mode,
        id_shape=None if shape is None else _pattern(shape),
    )


def _floor(situation: Situation) -> int:
    """The newest generation that may not be used. None is barred when a run is asked for by name, or runs isolated."""
    reaches_all = situation.demand.resume_run is not None or isinstance(situation.scope, RunScope)
    return 0 if reaches_all else situation.floor.generation


@lru_cache(maxsize=64)
def _pattern(shape: str) -> re.Pattern[str]:
    return re.compile(shape)


def _sessions(situation: Situation) -> list[Session]:
    """The candidates, from the one source that counts: the run that was asked for, or the lane."""
    if situation.demand.fresh_asked_by is not None:
        return [session for read in situation.sources for session in read.sessions]
    source = decisive(situation.demand)
    return [session for read in situation.sources if read.source is source for session in read.sessions]


def _learned(situation: Situation, wanted: Wanted) -> Learned:
    if not situation.probes:
        return _NOTHING_LEARNED
    return learn(_sessions(situation), situation.probes, wanted.directory, situation.here.capabilities)


def _native_id(
    situation: Situation,
    outcome: Outcome,
    session: Session | None,
    sessions: Sequence[Session],
    shape: re.Pattern[str] | None,
) -> NativeId | None:
    """The id that the agent must confirm: the session's own, or the one chosen for a new session."""
    can = situation.here.capabilities
    own = session.cursor.native_id if session is not None and isinstance(session.cursor, Cursor) else None
    match outcome:
        case Outcome.RESUME | Outcome.HOLD:
            return own
        case Outcome.TRANSFER:
            return own if can.restore_keeps_id else None
        case Outcome.FORK | Outcome.RESEED | Outcome.BLANK:
            return situation.fresh_id if can.choose_id and _is_free(situation.fresh_id, sessions, shape) else None


def _is_free(fresh_id: NativeId | None, sessions: Sequence[Session], shape: re.Pattern[str] | None) -> bool:
    if fresh_id is None or (shape is not None and shape.fullmatch(fresh_id) is None):
        return False
    return fresh_id not in known_ids(sessions)


def _mode(outcome: Outcome, session: Session | None, wanted: Wanted) -> PermissionMode | None:
    """The chosen mode, or the session's own stricter mode where the provider cannot change it."""
    if outcome in USES_EARLIER_SESSION and session is not None and not wanted.here.capabilities.reapply_mode:
        return session.mode
    return wanted.mode


def _beginning(
    situation: Situation, verdict: Verdict, sessions: Sequence[Session]
) -> tuple[EntrySeq, tuple[EntrySeq, ...]]:
    """The entry after which the catch-up begins, and the earlier entries that are included too.

    A continued session gets the entries it has not seen. A session that replaces another gets that one's history. A
    session that takes over a thread gets everything since the lane's last fresh start. Blank and isolated sessions
    begin at the head.
    """
    head, outcome, session = situation.head, verdict.outcome, verdict.session
    if isinstance(situation.scope, RunScope):
        return head, ()
    if outcome is Outcome.RESEED:
        handed_over = verdict.reason is PlanReason.HANDED_OVER
        last = None if handed_over else _last_of_lane(situation, sessions)
        floor = situation.floor
        after, kept = floor.entry, floor.kept
        if last is not None and last.begins > floor.entry:
            after, kept = last.begins, last.also
        return min(after, head), kept
    if session is not None and outcome in USES_EARLIER_SESSION:
        copy = session.archive if outcome is Outcome.TRANSFER else None
        seen = session.seen if copy is None else copy.seen
        # An earlier run that was asked for by name continues where it stopped, even before a fresh start.
        lowest = situation.floor.entry if situation.demand.resume_run is None else seen
        # A session that never took its first prompt still has to get the entries it was created with.
        untold = tuple(entry for entry in session.also if seen < entry <= head)
        return min(max(seen, session.begins, lowest), head), untold
    return head, ()


def _last_of_lane(situation: Situation, sessions: Sequence[Session]) -> Session | None:
    """The newest session of this conversation since its last fresh start, in any state."""
    for session in sessions:
        if session.lane == situation.lane and session.scope == situation.scope:
            return session if session.generation > situation.floor.generation else None
    return None


def _session_changes(verdict: Verdict, learned: Learned) -> tuple[SessionChange, ...]:
    changes = [SessionChange(session, SessionEvent.CONFIRMED_MISSING, RuleReason.LOST) for session in learned.lost]
    changes += [SessionChange(session, SessionEvent.POISONED, RuleReason.POISONED) for session in learned.poisoned]
    rotates = isinstance(verdict.reason, RuleReason) and verdict.reason.rule is RuleName.LIMITS
    if verdict.about is not None and rotates and verdict.about.busy_with is None:
        changes.append(SessionChange(verdict.about.id, SessionEvent.ROTATED, verdict.reason))
    return tuple(changes)


def _notices(situation: Situation, verdict: Verdict) -> tuple[Notice, ...]:
    notices: list[Notice] = []

    def tell(audience: Audience, reason: NoticeReason, **facts: object) -> None:
        notices.append(Notice(audience, reason, reason.fill(**facts)))

    if situation.demand.resume_run is not None and verdict.outcome in USES_EARLIER_SESSION:
        tell(Audience.USER, NoticeReason.ASKED_OVER_POLICY, run=situation.demand.resume_run)
    if verdict.reason is PlanReason.ACCOUNT_WITHHELD:
        tell(Audience.USER, NoticeReason.HISTORY_WITHHELD, session=verdict.about)
    if verdict.outcome in USES_EARLIER_SESSION and verdict.session is not None and verdict.session.cut_off:
        tell(Audience.AGENT, NoticeReason.CUT_OFF)
    knows_of_it = verdict.outcome in USES_EARLIER_SESSION or verdict.outcome is Outcome.RESEED
    if situation.machinery_gone and knows_of_it:
        tell(Audience.AGENT, NoticeReason.MACHINERY_GONE, gone=", ".join(situation.machinery_gone))
    # An isolated run left nothing in the workspace; the lane's own conversation is told at its next wake.
    is_told = verdict.outcome is not Outcome.HOLD and not isinstance(situation.scope, RunScope)
    if situation.place.remade and is_told:
        tell(Audience.AGENT, NoticeReason.WORKSPACE_REMADE, remade=situation.place.remade)
    return tuple(notices)
