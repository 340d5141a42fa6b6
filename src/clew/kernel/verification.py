"""Verification: compare what the agent says it opened with the plan, before the prompt is sent."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from clew.kernel.capability import LandingField
from clew.kernel.contract import must_be
from clew.kernel.ids import AccountId, NativeId
from clew.kernel.permission import PermissionMode
from clew.kernel.place import Directory
from clew.kernel.plan import STARTS_NEW_SESSION, USES_EARLIER_SESSION, Outcome, Plan
from clew.kernel.reason import Reason
from clew.kernel.session import Cursor, known_ids


@dataclass(frozen=True, slots=True)
class Landing:
    """What the agent itself reports it opened. None for what it does not report."""

    native_id: NativeId | None = None
    directory: Directory | None = None
    mode: PermissionMode | None = None
    model: str | None = None
    account: AccountId | None = None
    turns: int | None = None


class Weight(StrEnum):
    NOTE = "note"
    REFUSE = "refuse"


class Claim(StrEnum):
    """What Clew may say about the run once the agent has answered. Before that, nothing."""

    RESUMED = "resumed"
    FORKED = "forked"
    TRANSFERRED = "transferred"
    STARTED = "started"
    NOTHING = "nothing"


class LandingReason(Reason):
    NOT_STARTED = "landing:held", "The plan holds the run, so nothing may be opened."
    NOT_PROVEN = "landing:not-proven", "The agent was not asked for the session, so it may not be opened yet."
    SILENT = "landing:silent", "The agent did not report its {field}, which it must."
    ID_OTHER = "landing:id-other", "Expected session {planned}; the agent opened {landed}."
    ID_SHAPE = "landing:id-shape", "{landed} is not a session id of this provider's shape ({planned})."
    ID_KNOWN = (
        "landing:id-known",
        "Session {landed} is an earlier session, not the one to open.",
    )
    DIRECTORY_OTHER = "landing:directory-other", "The run belongs in {planned}; the agent works in {landed}."
    MODE_WIDER = "landing:mode-wider", "The mode is {planned}; the agent has the wider {landed}."
    MODE_STRICTER = "landing:mode-stricter", "The mode is {planned}; the agent has the stricter {landed}."
    MODEL_OTHER = "landing:model-other", "The model is {planned}; the agent uses {landed}."
    ACCOUNT_OTHER = "landing:account-other", "The account is {planned}; the agent uses {landed}."
    HISTORY_GONE = "landing:history-gone", "The session has had {planned} turns; the agent knows of none."
    HISTORY_SHORT = "landing:history-short", "The session has had {planned} turns; the agent knows of {landed}."
    HISTORY_UNEXPECTED = "landing:history-unexpected", "Expected a new session; this one has {landed} turns."


_REFUSING = frozenset(LandingReason) - {
    LandingReason.MODE_STRICTER,
    LandingReason.MODEL_OTHER,
    LandingReason.HISTORY_SHORT,
}


@dataclass(frozen=True, slots=True)
class Difference:
    """One field in which the landing differs from the plan."""

    field: str
    planned: str
    landed: str
    weight: Weight
    reason: LandingReason
    words: str


@dataclass(frozen=True, slots=True)
class Verification:
    """Whether the prompt may be sent, every difference, and the fields that could not be checked.

    `on_its_word`: an earlier session is continued without proof from the agent. It showed no history, or it does not
    name the session it is in.
    """

    claim: Claim
    differences: tuple[Difference, ...]
    unverified: tuple[LandingField, ...]
    on_its_word: bool = False

    @property
    def may_continue(self) -> bool:
        return self.claim is not Claim.NOTHING


_CLAIMS: Mapping[Outcome, Claim] = {
    Outcome.RESUME: Claim.RESUMED,
    Outcome.FORK: Claim.FORKED,
    Outcome.TRANSFER: Claim.TRANSFERRED,
    Outcome.RESEED: Claim.STARTED,
    Outcome.BLANK: Claim.STARTED,
    Outcome.HOLD: Claim.NOTHING,
}


def verify(plan: Plan, landing: Landing) -> Verification:
    """Compare field by field. A provider must report the fields it declares; the others stay unverified."""
    must_be(plan, Plan, "the plan to verify")
    must_be(landing, Landing, "what the agent opened")
    differences: list[Difference] = []
    unverified: list[LandingField] = []

    def differs(field: str, reason: LandingReason, planned: object, landed: object) -> None:
        weight = Weight.REFUSE if reason in _REFUSING else Weight.NOTE
        words = reason.fill(field=field, planned=planned, landed=landed)
        differences.append(Difference(field, str(planned), str(landed), weight, reason, words))

    if plan.outcome is Outcome.HOLD:
        differs("plan", LandingReason.NOT_STARTED, plan.outcome, "opened")
    if plan.needs_probe:
        differs("plan", LandingReason.NOT_PROVEN, "probed", "opened")
    must_say = plan.wanted.here.capabilities.reports | _said_to_continue(plan)
    for field, landed, check in (
        (LandingField.NATIVE_ID, landing.native_id, _native_id),
        (LandingField.DIRECTORY, landing.directory, _directory),
        (LandingField.MODE, landing.mode, _mode),
        (LandingField.MODEL, landing.model, _model),
        (LandingField.ACCOUNT, landing.account, _account),
        (LandingField.TURNS, landing.turns, _turns),
    ):
        if landed is not None:
            for reason, planned in check(plan, landing):
                differs(field, reason, planned, landed)
        elif field in must_say:
            differs(field, LandingReason.SILENT, "said", "nothing")
        else:
            unverified.append(field)
    refused = any(difference.weight is Weight.REFUSE for difference in differences)
    claim = Claim.NOTHING if refused else _CLAIMS[plan.outcome]
    return Verification(claim, tuple(differences), tuple(unverified), not refused and _on_its_word(plan, landing))


def _said_to_continue(plan: Plan) -> frozenset[LandingField]:
    """A continuation is claimed only when the agent itself named the session it is in. An agent that is declared not to
    name it on opening is resumed on its word: it confirmed the session in the probe."""
    if plan.outcome not in USES_EARLIER_SESSION:
        return frozenset()
    unnamed = plan.outcome is Outcome.RESUME and not plan.wanted.here.capabilities.names_itself
    return frozenset() if unnamed else frozenset({LandingField.NATIVE_ID})


def _on_its_word(plan: Plan, landing: Landing) -> bool:
    if plan.outcome not in USES_EARLIER_SESSION:
        return False
    return landing.native_id is None or (landing.turns is None and _turns_had(plan) > 0)


_Differences = Iterator[tuple[LandingReason, object]]


def _native_id(plan: Plan, landing: Landing) -> _Differences:
    landed, shape = landing.native_id, plan.wanted.id_shape
    if shape is not None and shape.fullmatch(str(landed)) is None:
        yield LandingReason.ID_SHAPE, shape.pattern
    if plan.native_id is not None and landed != plan.native_id:
        yield LandingReason.ID_OTHER, plan.native_id
    # A transferred session may keep its own id, in any of its records.
    own = plan.session.cursor if plan.session is not None and plan.outcome is Outcome.TRANSFER else None
    expected = {plan.native_id, own.native_id if isinstance(own, Cursor) else None}
    known = known_ids((*(session for session, _ in plan.weighed), *plan.not_needed))
    if plan.outcome is not Outcome.HOLD and landed in known - expected:
        yield LandingReason.ID_KNOWN, "new"


def _directory(plan: Plan, landing: Landing) -> _Differences:
    if plan.workspace is not None and landing.directory != plan.workspace.directory:
        yield LandingReason.DIRECTORY_OTHER, plan.workspace.directory


def _mode(plan: Plan, landing: Landing) -> _Differences:
    if plan.mode is None or landing.mode is None or landing.mode is plan.mode:
        return
    yield LandingReason.MODE_WIDER if landing.mode > plan.mode else LandingReason.MODE_STRICTER, plan.mode


def _model(plan: Plan, landing: Landing) -> _Differences:
    if plan.model is not None and landing.model != plan.model:
        yield LandingReason.MODEL_OTHER, plan.model


def _account(plan: Plan, landing: Landing) -> _Differences:
    if landing.account != plan.wanted.here.account:
        yield LandingReason.ACCOUNT_OTHER, plan.wanted.here.account or "not named"


def _turns(plan: Plan, landing: Landing) -> _Differences:
    landed = landing.turns or 0
    if plan.outcome in STARTS_NEW_SESSION:
        if landed > 0:
            yield LandingReason.HISTORY_UNEXPECTED, 0
        return
    had = _turns_had(plan)
    if landed < had:
        yield LandingReason.HISTORY_SHORT if landed > 0 else LandingReason.HISTORY_GONE, had


def _turns_had(plan: Plan) -> int:
    session = plan.session
    if session is None:
        return 0
    if plan.outcome is Outcome.TRANSFER and session.archive is not None:
        # A copy that does not say how many turns it has is not empty, if the session was not.
        return min(session.turns, 1) if session.archive.turns is None else session.archive.turns
    return session.turns
