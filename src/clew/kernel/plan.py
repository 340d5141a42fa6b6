"""The plan: what was decided for a run, with all facts behind it, and as text for a person."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from clew.kernel.contract import must_be
from clew.kernel.ids import EntrySeq, NativeId, RunScope, SessionId
from clew.kernel.journal import Reader
from clew.kernel.permission import ModeChoice, PermissionMode
from clew.kernel.place import PlaceChoice, Workspace
from clew.kernel.probe import Probe
from clew.kernel.reason import Reason
from clew.kernel.rule import Wanted
from clew.kernel.session import Session, SessionEvent, was_told
from clew.kernel.situation import Floor, ReadState, Situation, SourceRead
from clew.kernel.trace import FIT, Considered, Route, Step, Weighed, in_brief, passed_over, steps_of


class Outcome(StrEnum):
    """The closed set of outcomes of a decision."""

    RESUME = "resume"
    FORK = "fork"
    TRANSFER = "transfer"
    RESEED = "reseed"
    BLANK = "blank"
    HOLD = "hold"


USES_EARLIER_SESSION = frozenset({Outcome.RESUME, Outcome.FORK, Outcome.TRANSFER})
STARTS_NEW_SESSION = frozenset({Outcome.RESEED, Outcome.BLANK})


class WaitsFor(StrEnum):
    """What a held run waits for."""

    ANOTHER_TRY = "another-try"
    SESSION_FREE = "session-free"
    PERSON = "person"


class PlanReason(Reason):
    FITS = "session:fits", "Continuing the same conversation (session {session.generation})."
    FIRST = "lane:first", "New conversation."
    NONE_OF_ITS_OWN = "lane:none-of-its-own", "New session: no earlier session belongs to this conversation."
    ISOLATED = "scope:isolated", "Isolated run: a new conversation that gets only what the wake says."
    FRESH_DEMANDED = "reset:demanded", "New conversation, as asked for."
    POLICY_ASSIGNMENT = "policy:assignment", "New assignment: starting a new conversation."
    HANDED_OVER = (
        "policy:handed-over",
        "New assignment: starting a new conversation with the thread's history.",
    )
    POLICY_COMMENT = "policy:comment", "The policy starts a new conversation for each comment."
    POLICY_MENTION = "policy:mention", "The policy starts a new conversation for each mention."
    POLICY_CHAT = "policy:chat", "The policy starts a new conversation for each chat message."
    POLICY_REVIEW = "policy:review", "The policy starts a new conversation for each review."
    POLICY_TIMER = "policy:timer", "The policy starts a new conversation for each timer."
    POLICY_EVENT = "policy:event", "The policy starts a new conversation for each event."
    POLICY_MANUAL = "policy:manual", "The policy starts a new conversation for each manual wake."
    POLICY_RETRY = "policy:retry", "The policy starts a new conversation for each retry."
    ACCOUNT_WITHHELD = (
        "account:withheld",
        (
            "The account changed from {session.whose} to {here.whose}, so the agent does not get the earlier history. "
            "`clew agent edit {agent} --across-accounts yes` allows it from the next change on."
        ),
    )
    SOURCE_NOT_READ = (
        "source:not-read",
        "The sessions were not looked up ({source}), so the run cannot be decided.",
    )
    SOURCE_FAILED = "source:failed", "The sessions could not be looked up ({source}): {detail}"
    ASKED_NONE = "asked:none", "Run {run} was asked for, but it has no known session."
    ASKED_UNUSABLE = "asked:unusable", "The session of run {run} was asked for but cannot be used: {why}"


class Audience(StrEnum):
    USER = "user"
    AGENT = "agent"


class NoticeReason(Reason):
    """Something that the user or the agent must be told in addition to the plan."""

    HISTORY_WITHHELD = "notice:history-withheld", "The history made with {session.whose} was not given to the agent."
    MACHINERY_GONE = (
        "notice:machinery-gone",
        "The last run ended abruptly. Do not wait for what is gone: {gone}.",
    )
    CUT_OFF = (
        "notice:cut-off",
        (
            "Your last turn here was cut off. What it had going is gone: commands and servers in the background, "
            "timers, and tools that had not come to their end. Do not wait for them; start again what you still need."
        ),
    )
    WORKSPACE_REMADE = "notice:workspace-remade", "{remade}"
    ASKED_OVER_POLICY = "notice:asked", "The session of run {run} is used because a person asked for it."


@dataclass(frozen=True, slots=True)
class Notice:
    audience: Audience
    reason: NoticeReason
    words: str


@dataclass(frozen=True, slots=True)
class SessionChange:
    """A change of a session's state that follows from the decision. The store records it."""

    session: SessionId
    event: SessionEvent
    reason: Reason


@dataclass(frozen=True, slots=True)
class CatchUp:
    """The journal entries a session has not seen: from `after` (exclusive) to `through` (inclusive)."""

    after: EntrySeq
    through: EntrySeq

    def __contains__(self, entry: EntrySeq) -> bool:
        return self.after < entry <= self.through

    def __len__(self) -> int:
        return self.through - self.after


@dataclass(frozen=True, slots=True)
class Plan:
    """What was decided. `session` is the one to continue or to wait for; None for a new session.

    `native_id` is the id that the agent must report, where it is known beforehand. `act_on` are the entries the wakes
    want answered; everything else in `catch_up`, and `kept` from before it, is background. `proven`: a probe found the
    session.
    """

    outcome: Outcome
    reason: Reason
    words: str
    situation: Situation
    session: Session | None
    native_id: NativeId | None
    workspace: Workspace | None
    mode: PermissionMode | None
    model: str | None
    catch_up: CatchUp
    kept: tuple[EntrySeq, ...]
    act_on: tuple[EntrySeq, ...]
    proven: bool
    waits_for: WaitsFor | None
    session_changes: tuple[SessionChange, ...]
    notices: tuple[Notice, ...]
    weighed: tuple[Weighed, ...]
    not_needed: tuple[Session, ...]
    place: PlaceChoice
    mode_choice: ModeChoice
    wanted: Wanted

    @property
    def considered(self) -> tuple[Considered, ...]:
        """Every candidate that was weighed, newest first."""
        return tuple(Considered(session, findings) for session, findings in self.weighed)

    @property
    def reader(self) -> Reader:
        """The agent that the catch-up is selected for."""
        here = self.situation.here
        return Reader(here.provider, here.account, self.situation.policy.history_across_accounts)

    @property
    def already_told(self) -> tuple[EntrySeq, ...]:
        """The entries to act on that this session already has. They are not sent again: the agent continues."""
        return tuple(entry for entry in self.act_on if self.has_told(entry))

    def has_told(self, entry: EntrySeq) -> bool:
        """Whether the session that this plan continues already has that entry."""
        if self.session is None or self.outcome not in USES_EARLIER_SESSION:
            return False
        copy = self.session.archive if self.outcome is Outcome.TRANSFER else None
        return was_told(self.session, entry, self.session.seen if copy is None else copy.seen)

    @property
    def told_late(self) -> tuple[EntrySeq, ...]:
        """The entries to act on that are older than this session and that it is told now."""
        if self.session is None or self.outcome not in USES_EARLIER_SESSION:
            return ()
        known = frozenset(self.already_told)
        return tuple(entry for entry in self.act_on if entry <= self.session.begins and entry not in known)

    @property
    def new_floor(self) -> Floor | None:
        """The lane's floor once the session of this plan exists, if the plan cuts the lane's history off.

        Its generation is the newest of the lane among the candidates; a store that has a newer one uses that. A
        session that takes over the thread's history only ends the use of earlier sessions: the history begins where it
        did.
        """
        known = self.situation
        hands_over = self.reason is PlanReason.HANDED_OVER
        cuts = hands_over or (self.outcome is Outcome.BLANK and self.reason not in _CUTS_NOTHING)
        if not cuts or isinstance(known.scope, RunScope):
            return None
        own = [each for read in known.sources for each in read.sessions if each.lane == known.lane]
        newest = max((each.generation for each in own if each.scope == known.scope), default=0)
        generation = max(newest, known.floor.generation)
        return replace(known.floor, generation=generation) if hands_over else Floor(generation, known.head, self.act_on)

    @property
    def needs_probe(self) -> bool:
        """Whether the agent must be asked for the session before it is opened."""
        return self.outcome in USES_EARLIER_SESSION and not self.proven

    @property
    def trace(self) -> tuple[Step, ...]:
        """Every source, session and rule in order, with its result. Built when read."""
        return self._trace(steps_of)

    @property
    def brief_trace(self) -> tuple[Step, ...]:
        """The trace as it is recorded: one line names all rules that a session fits."""
        return self._trace(in_brief)

    def _trace(self, steps: Callable[[Considered, Wanted], tuple[Step, ...]]) -> tuple[Step, ...]:
        return (
            *map(_read_step, self.situation.sources),
            Step(
                "workspace", "place", "hold" if self.workspace is None else "use", self.place.reason, self.place.words
            ),
            Step("mode", "permission", str(self.mode), self.mode_choice.reason, self.mode_choice.words),
            *(step for each in self.considered for step in steps(each, self.wanted)),
            *map(passed_over, self.not_needed),
            *(
                Step(probed.session, "probe", probed.probe.kind, f"probe:{probed.probe.kind}", _answer(probed.probe))
                for probed in self.situation.probes
            ),
            *(Step(notice.audience, "notice", "told", notice.reason.code, notice.words) for notice in self.notices),
            Step("plan", "outcome", self.outcome, self.reason.code, self.words),
        )


# A change of account hides the history from the other account only; for its own account it continues.
_CUTS_NOTHING = frozenset({PlanReason.FIRST, PlanReason.NONE_OF_ITS_OWN, PlanReason.ACCOUNT_WITHHELD})

_READ_WORDS: Mapping[ReadState, str] = {
    ReadState.ANSWERED: "It has sessions to consider.",
    ReadState.EMPTY: "It has no session.",
    ReadState.NOT_READ: "It was not read: {detail}.",
    ReadState.FAILED: "It could not be read: {detail}",
}


def _answer(probe: Probe) -> str:
    """The detail may or may not end with a full stop."""
    return f"The agent was asked for it: {(probe.detail or probe.kind).removesuffix('.')}."


def _read_step(read: SourceRead) -> Step:
    """A source that answered with no session is shown as empty, however the caller has put it."""
    answered = read.state is ReadState.ANSWERED
    state = ReadState.EMPTY if answered and not read.sessions else read.state
    return Step(read.source, "source", state, f"source:{state}", _READ_WORDS[state].format(detail=read.detail))


def headline(plan: Plan) -> str:
    """The outcome and its reason in one line."""
    must_be(plan, Plan, "the plan to explain")
    return f"{plan.outcome}: {plan.words} [{plan.reason.code}]"


def explain(plan: Plan, every_rule: bool = False) -> str:
    """The headline, what the run gets, and each session with the rules that applied; with `every_rule`, all rules."""
    must_be(plan, Plan, "the plan to explain")
    lines = [headline(plan)]
    if plan.workspace is not None:
        lines.append(f"  directory  {plan.workspace.directory}  ({plan.place.words})")
    lines.append(f"  mode       {plan.mode or 'none'}  ({plan.mode_choice.words})")
    lines.append(f"  catch-up   {_catch_up(plan)}")
    lines.extend(f"  note       {notice.words}" for notice in plan.notices)
    steps = plan.trace
    for read in plan.situation.sources:
        words = next(step.words for step in steps if step.subject == read.source and step.rule == "source")
        lines.append(f"  source     {read.source}: {words}")
    for each in plan.considered:
        session = each.session
        lines.append(f"  session    {session.id}, generation {session.generation}: {_VERBS[each.route]}")
        lines.extend(
            f"    {step.outcome:<11} {step.rule:<13} {step.words}"
            for step in steps
            if step.subject == session.id and (every_rule or step.outcome != FIT)
        )
    lines.extend(
        f"  session    {session.id}, generation {session.generation}: was not weighed" for session in plan.not_needed
    )
    return "\n".join(lines)


_VERBS: Mapping[Route, str] = {
    Route.RESUME: "can be resumed",
    Route.FORK: "can be forked",
    Route.TRANSFER: "can be carried here",
    Route.WAIT: "must be waited for",
    Route.OUT: "cannot be used",
}


def _catch_up(plan: Plan) -> str:
    kept = [f"entry {entry}" for entry in plan.kept]
    first, last = plan.catch_up.after + 1, plan.catch_up.through
    later = [] if first > last else [f"entry {last}" if first == last else f"entries {first} to {last}"]
    return ", ".join(kept + later) or "nothing"
