"""The landing: what the agent says it opened, as it is reported to the server and pinned as the session."""

import json
from dataclasses import dataclass

from clew.kernel import (
    NOTHING_SEEN,
    USES_EARLIER_SESSION,
    Cursor,
    Directory,
    EntrySeq,
    Landing,
    Outcome,
    Plan,
    Session,
    Verification,
    Weight,
)
from clew.ports.fault import Fault
from clew.protocol.reports import Landed, NewSession


class LandingRefused(Fault):
    """The session is not as planned, so no prompt is sent to it."""

    code = "landing:refused"

    def __init__(self, verification: Verification, landed: Landed) -> None:
        first = next(each for each in verification.differences if each.weight is Weight.REFUSE)
        self.reason = first.reason.code
        self.landed = landed
        words = " ".join(each.words for each in verification.differences if each.weight is Weight.REFUSE)
        super().__init__(words, "Nothing was sent. Check the agent's settings, or wake it with a fresh start.")


ON_ITS_WORD = "The agent showed nothing of the session's history: only its own word says that it continues there."


def landed_of(verification: Verification, landing: Landing) -> Landed:
    said = {
        "native_id": landing.native_id,
        "directory": None if landing.directory is None else str(landing.directory),
        "mode": None if landing.mode is None else str(landing.mode),
        "model": landing.model,
        "account": landing.account,
        "turns": None if landing.turns is None else str(landing.turns),
        "on_its_word": ON_ITS_WORD if verification.on_its_word else None,
        "unverified": ", ".join(field.value for field in verification.unverified),
        "noted": " ".join(each.words for each in verification.differences if each.weight is Weight.NOTE),
    }
    text = json.dumps({name: value for name, value in said.items() if value})
    refused = " ".join(each.words for each in verification.differences if each.weight is Weight.REFUSE)
    return Landed(text, verification.claim.value, refused or None)


@dataclass(slots=True)
class Pins:
    """The records of a run's session: one as soon as the session can be found again, and one after each change."""

    plan: Plan
    directory: Directory
    landing: Landing
    last: NewSession | None = None

    def due(self, cursor: Cursor | None) -> NewSession | None:
        """The record to send now; None where the server has it already."""
        if cursor is None or (self.last is not None and self.last.cursor == cursor):
            return None
        new = _new_session(self.plan, cursor, self.landing, self.directory)
        if self.last is None and self.plan.outcome is Outcome.RESUME and _is_known(new, self.plan.session):
            self.last = new
            return None
        self.last = new
        return new

    def at(self, address: Cursor | None) -> NewSession | None:
        """The record that counts once it is known that the session took its prompt."""
        return None if address is None else _new_session(self.plan, address, self.landing, self.directory)


def _new_session(plan: Plan, cursor: Cursor, landing: Landing, directory: Directory) -> NewSession:
    here, mode = plan.situation.here, landing.mode or plan.mode
    begins, also = _told_from(plan)
    return NewSession(
        cursor=cursor,
        directory=directory,
        account=here.account,
        begins=begins,
        also=also,
        floor=plan.new_floor,
        model=landing.model or plan.model,
        mode=None if mode is None else mode.value,
        instructions=here.instructions,
        tools=here.tools,
        # Entries of this run's prompt count only once it is known that the agent took it.
        seen=plan.catch_up.after if plan.outcome in USES_EARLIER_SESSION else NOTHING_SEEN,
        credential=here.credential,
    )


def _told_from(plan: Plan) -> tuple[EntrySeq, tuple[EntrySeq, ...]]:
    """The entry after which the session has the journal, and the earlier entries that it has as well. A fork keeps
    its origin's values."""
    if plan.session is not None and plan.outcome in USES_EARLIER_SESSION:
        return plan.session.begins, plan.session.also
    begins = plan.catch_up.after
    if begins <= NOTHING_SEEN:
        return NOTHING_SEEN, ()
    return begins, tuple(entry for entry in (*plan.kept, *plan.act_on) if entry <= begins)


def _is_known(new: NewSession, session: Session | None) -> bool:
    """Whether the server has all of it on record."""
    return session is not None and (
        new.cursor == session.cursor
        and (new.directory.path, new.directory.real) == (session.directory.path, session.directory.real)
        and (new.model, new.instructions, new.tools) == (session.model, session.instructions, session.tools)
        and new.credential == session.credential
        and new.mode == (None if session.mode is None else session.mode.value)
    )


def planned_directory(plan: Plan, directory: Directory) -> Directory:
    """The planned directory under its planned name, with its links resolved."""
    known = directory.path if plan.workspace is None else plan.workspace.directory.path
    return Directory(known, directory.place)
