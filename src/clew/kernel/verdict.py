"""The verdict: the outcome, from the weighed candidates and the rest of the situation."""

from collections.abc import Mapping
from typing import NamedTuple

from clew.kernel.candidates import Weighing
from clew.kernel.evidence import ask_next
from clew.kernel.ids import RunScope
from clew.kernel.permission import ModeChoice
from clew.kernel.place import PlaceChoice
from clew.kernel.plan import Outcome, PlanReason, WaitsFor
from clew.kernel.probe import Learned, ProbeReason
from clew.kernel.reason import Reason
from clew.kernel.rule import Wanted
from clew.kernel.rule_reason import Effect, RuleReason
from clew.kernel.session import Session
from clew.kernel.situation import ReadState, Situation, decisive
from clew.kernel.trace import Route, Weighed, route_of
from clew.kernel.wake import WakeReason


class Verdict(NamedTuple):
    """An outcome and its reason. `session`: the one to continue or wait for. `about`: the one the reason is about."""

    outcome: Outcome
    reason: Reason
    words: str
    session: Session | None = None
    waits_for: WaitsFor | None = None
    about: Session | None = None


def judge(
    situation: Situation,
    place: PlaceChoice,
    mode: ModeChoice,
    wanted: Wanted,
    learned: Learned,
    weighing: Weighing,
) -> Verdict:
    """The first check with an answer decides; a new session is the last resort."""
    return (
        _must_ask(situation)
        or _cannot_start(situation, place, mode)
        or _must_wait(learned, wanted)
        or _continue(weighing.chosen, wanted)
        or _asked_in_vain(situation, weighing.weighed, wanted)
        or _start_new(situation, weighing.weighed, wanted, learned)
    )


def _must_ask(situation: Situation) -> Verdict | None:
    """Hold while there is no evidence on whether the agent took an earlier prompt in this lane."""
    asks = ask_next(situation.unheard)
    if asks is None:
        return None
    waits_for = WaitsFor.PERSON if asks.wait is None else WaitsFor.ANOTHER_TRY
    return Verdict(Outcome.HOLD, asks.reason, asks.words, waits_for=waits_for)


def _cannot_start(situation: Situation, place: PlaceChoice, mode: ModeChoice) -> Verdict | None:
    unread = _unread(situation)
    if unread is not None:
        return unread
    if mode.mode is None:
        return Verdict(Outcome.HOLD, mode.reason, mode.words, waits_for=WaitsFor.PERSON)
    if place.workspace is None:
        return Verdict(Outcome.HOLD, place.reason, place.words, waits_for=WaitsFor.PERSON)
    return None


_READ = (ReadState.ANSWERED, ReadState.EMPTY)


def _unread(situation: Situation) -> Verdict | None:
    """Unknown sessions are not the same as no sessions: the claim goes back. Only a demanded fresh start needs none."""
    if situation.demand.fresh_asked_by is not None:
        return None
    source = decisive(situation.demand)
    read = next((read for read in situation.sources if read.source is source), None)
    if read is not None and read.state in _READ:
        return None
    reason = (
        PlanReason.SOURCE_NOT_READ if read is None or read.state is ReadState.NOT_READ else PlanReason.SOURCE_FAILED
    )
    words = reason.fill(source=source, detail="" if read is None else read.detail)
    return Verdict(Outcome.HOLD, reason, words, waits_for=WaitsFor.ANOTHER_TRY)


_TRY_AGAIN = frozenset({ProbeReason.UNREACHABLE, ProbeReason.UNSTRUCTURED})


def _must_wait(learned: Learned, wanted: Wanted) -> Verdict | None:
    """An answer that settles nothing holds the run; the cursor is kept and nothing is made."""
    if learned.hold is None or wanted.reset:
        return None
    probed, reason = learned.hold.probed, learned.hold.reason
    waits_for = WaitsFor.ANOTHER_TRY if reason in _TRY_AGAIN else WaitsFor.PERSON
    return Verdict(Outcome.HOLD, reason, reason.fill(probe=probed.probe), learned.sessions[probed.session], waits_for)


def _continue(chosen: Weighed | None, wanted: Wanted) -> Verdict | None:
    if chosen is None:
        return None
    session, findings = chosen
    match route_of(findings):
        case Route.RESUME:
            return Verdict(Outcome.RESUME, PlanReason.FITS, PlanReason.FITS.fill(session=session), session)
        case Route.FORK:
            return _because(Effect.FORK, Outcome.FORK, chosen, wanted)
        case Route.TRANSFER:
            return _because(Effect.CARRY, Outcome.TRANSFER, chosen, wanted)
        case Route.WAIT:
            return _because(Effect.WAIT, Outcome.HOLD, chosen, wanted, WaitsFor.SESSION_FREE)
        case Route.OUT:
            return None


_LEAD: Mapping[Outcome, str] = {
    Outcome.FORK: "Continuing in a copy of session {}.",
    Outcome.TRANSFER: "Restoring session {} here.",
    Outcome.RESEED: "New conversation with the thread's history, in place of session {}.",
    Outcome.HOLD: "Waiting for session {}.",
}


def _about(outcome: Outcome, session: Session, finding: str) -> str:
    """A finding says "it"; the lead says what "it" is, and what happens."""
    return f"{_LEAD[outcome].format(session.generation)} {finding}"


def _because(
    effect: Effect, outcome: Outcome, chosen: Weighed, wanted: Wanted, waits_for: WaitsFor | None = None
) -> Verdict:
    session, findings = chosen
    reason = next(finding for finding in findings if finding.effect is effect)
    words = _about(outcome, session, reason.fill(session=session, wanted=wanted))
    return Verdict(outcome, reason, words, session, waits_for)


def _asked_in_vain(situation: Situation, weighed: tuple[Weighed, ...], wanted: Wanted) -> Verdict | None:
    """A person who asked for one conversation does not get another: the run is held for them."""
    run = situation.demand.resume_run
    if run is None or wanted.reset:
        return None
    if not weighed:
        return Verdict(
            Outcome.HOLD, PlanReason.ASKED_NONE, PlanReason.ASKED_NONE.fill(run=run), waits_for=WaitsFor.PERSON
        )
    words = PlanReason.ASKED_UNUSABLE.fill(run=run, why=_why_not(weighed[0], wanted)[1])
    return Verdict(Outcome.HOLD, PlanReason.ASKED_UNUSABLE, words, waits_for=WaitsFor.PERSON)


_RESET_REASON: Mapping[WakeReason, PlanReason] = {
    WakeReason.ASSIGNMENT: PlanReason.POLICY_ASSIGNMENT,
    WakeReason.COMMENT: PlanReason.POLICY_COMMENT,
    WakeReason.MENTION: PlanReason.POLICY_MENTION,
    WakeReason.CHAT: PlanReason.POLICY_CHAT,
    WakeReason.REVIEW: PlanReason.POLICY_REVIEW,
    WakeReason.TIMER: PlanReason.POLICY_TIMER,
    WakeReason.EVENT: PlanReason.POLICY_EVENT,
    WakeReason.MANUAL: PlanReason.POLICY_MANUAL,
    WakeReason.RETRY: PlanReason.POLICY_RETRY,
}

_NOT_THIS_LANES = frozenset(
    {RuleReason.LANE_OTHER, RuleReason.SCOPE_OTHER, RuleReason.BEFORE_FRESH_START, RuleReason.SUPERSEDED}
)


def _start_new(situation: Situation, weighed: tuple[Weighed, ...], wanted: Wanted, learned: Learned) -> Verdict:
    demand = situation.demand
    if demand.fresh_asked_by is not None:
        return Verdict(Outcome.BLANK, PlanReason.FRESH_DEMANDED, PlanReason.FRESH_DEMANDED.sentence)
    if wanted.reset and demand.handed_over and not isinstance(situation.scope, RunScope):
        # Entries by agents of another account are withheld one by one (`Reader`), as in every brief.
        return Verdict(Outcome.RESEED, PlanReason.HANDED_OVER, PlanReason.HANDED_OVER.sentence)
    if wanted.reset:
        reason = next(_RESET_REASON[each] for each in demand.reasons if situation.policy.reset.resets(each))
        return Verdict(Outcome.BLANK, reason, reason.sentence)
    if isinstance(situation.scope, RunScope):
        return Verdict(Outcome.BLANK, PlanReason.ISOLATED, PlanReason.ISOLATED.sentence)
    other = _of_another_account(weighed, wanted)
    if other is not None and not situation.policy.history_across_accounts:
        here = wanted.here
        words = PlanReason.ACCOUNT_WITHHELD.fill(session=other, here=here, agent=here.agent or "AGENT")
        return Verdict(Outcome.BLANK, PlanReason.ACCOUNT_WITHHELD, words, about=other)
    # The reason is the agent's latest answer, if there is one; otherwise the lane's newest session.
    own = next((each for each in weighed if each[0].id == learned.last), None) or next(
        (each for each in weighed if each[1][-1] not in _NOT_THIS_LANES), None
    )
    if own is None:
        outcome = Outcome.RESEED if _has_history(situation) else Outcome.BLANK
        if weighed or situation.floor.generation > 0:
            return Verdict(outcome, PlanReason.NONE_OF_ITS_OWN, PlanReason.NONE_OF_ITS_OWN.sentence)
        if outcome is Outcome.RESEED and situation.told_before:
            return Verdict(outcome, RuleReason.NEVER_CAPTURED, RuleReason.NEVER_CAPTURED.sentence)
        return Verdict(outcome, PlanReason.FIRST, PlanReason.FIRST.sentence)
    because, words = _why_not(own, wanted)
    if because is not RuleReason.NEVER_CAPTURED:
        words = _about(Outcome.RESEED, own[0], words)
    return Verdict(Outcome.RESEED, because, words, about=own[0])


def _of_another_account(weighed: tuple[Weighed, ...], wanted: Wanted) -> Session | None:
    """The conversation's last session, in any state, if another account of the provider made it."""
    situation, here = wanted.situation, wanted.here
    # Only a session of this conversation stops the search, so the last one was weighed.
    for session, _ in weighed:
        if session.lane == situation.lane and session.scope == situation.scope:
            is_other = session.provider == here.provider and session.account != here.account
            return session if is_other and session.generation > wanted.floor else None
    return None


def _why_not(ruled_out: Weighed, wanted: Wanted) -> tuple[RuleReason, str]:
    """Why a session cannot be used. A need for transfer is named first; a lost session outweighs other reasons."""
    session, findings = ruled_out
    said = [finding for finding in findings[:-1] if finding.effect is Effect.CARRY] + [findings[-1]]
    words = " ".join(finding.fill(session=session, wanted=wanted) for finding in said)
    gone = RuleReason.LOST in said and said[-1] is RuleReason.ARCHIVE_MISSING
    return (RuleReason.LOST if gone else said[-1]), words


def _has_history(situation: Situation) -> bool:
    """Whether the journal has entries since the last fresh start besides those of the wakes."""
    floor = situation.floor
    said = set(situation.demand.entries)
    later = situation.head - floor.entry - sum(1 for entry in said if entry > floor.entry)
    return later > 0 or not said.issuperset(floor.kept)
