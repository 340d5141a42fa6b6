"""Previews: what a message sent now would do, in a sentence, before it is sent. Nothing is written."""

from clew.control.actor import Actor, author_of
from clew.control.services import Services
from clew.control.wakes import (
    addressee,
    check_words,
    fits_turn,
    message,
    message_request,
    new_wake,
    policy_of,
    with_run,
)
from clew.kernel import AdmissionVerdict, Outcome, Overlap, Plan, PlanReason, WaitReason
from clew.protocol.preview import Foretold, PreviewOutcome, PreviewView, write_foretold
from clew.protocol.requests import Words
from clew.protocol.views import ThreadView
from clew.protocol.wakes import WakeRequest
from clew.store.engine.database import Transaction
from clew.store.engine.dialect import read_clock
from clew.store.faults import ThreadClosed
from clew.store.operations.threads import must_be_open
from clew.store.queries.agents import show_agent
from clew.store.queries.names import thread_called
from clew.store.queries.preview import Foreseen, foresee
from clew.store.queries.spoken import spoken
from clew.store.queries.threads import show_thread


async def preview_message(services: Services, actor: Actor, ref: str, words: Words) -> PreviewView:
    """`words` as they would be sent; their text does not matter."""
    overlap = check_words(words)
    named, said = new_wake(), message(author_of(actor), words.text or "…")

    def read(tx: Transaction) -> PreviewView:
        found = thread_called(tx, ref)
        thread = show_thread(tx, found.id)
        agent = addressee(tx, found, words)
        if agent is None:
            return _other(tx, thread, None, "nobody", _nobody(thread, words))
        name = show_agent(tx, agent).name
        try:
            must_be_open(found, ref)
        except ThreadClosed as closed:
            return _other(tx, thread, name, "refused", str(closed), closed.code)
        request = with_run(tx, message_request(named, agent, found, actor, words, said), words.resume_run)
        return spoken(tx, _view(thread, name, request, foresee(tx, request, thread.entries, policy_of(overlap))))

    return await services.read(read)


def _nobody(thread: ThreadView, words: Words) -> str:
    if not words.wakes:
        return "Wakes no agent: it is only written into the thread."
    return f"Wakes no agent: {thread.ref} is not assigned. Name an agent, or assign it."


def _other(
    tx: Transaction, thread: ThreadView, agent: str | None, outcome: PreviewOutcome, words: str, code: str = ""
) -> PreviewView:
    """A message that no run would get."""
    return PreviewView(
        thread=thread.ref,
        agent=agent,
        outcome=outcome,
        code=code or f"preview:{outcome}",
        words=words,
        entry=thread.entries + 1,
        at=read_clock(tx),
        token=write_foretold(Foretold(outcome)),
    )


def _view(thread: ThreadView, agent: str, request: WakeRequest, found: Foreseen) -> PreviewView:
    outcome, code, words = _outcome(agent, request, found)
    plan = found.plan if outcome in set(Outcome) else None
    session = None if plan is None else plan.session
    place = None if plan is None else plan.workspace
    first, last = (None, None) if plan is None else _earlier(plan, found.entry)
    return PreviewView(
        thread=thread.ref,
        agent=agent,
        outcome=outcome,
        code=code,
        words=words,
        entry=found.entry,
        at=found.at,
        token=write_foretold(Foretold(outcome, None if session is None else session.id, code)),
        session=None if session is None else session.id,
        generation=None if session is None else session.generation,
        machine=found.machine or None,
        directory=None if place is None else place.directory.path,
        branch=None if place is None else place.branch,
        mode=None if plan is None or plan.mode is None else plan.mode.value,
        first=first,
        last=last,
        run=found.live_run,
        until=None if found.wait is None else found.wait.until,
    )


def _outcome(agent: str, request: WakeRequest, found: Foreseen) -> tuple[PreviewOutcome, str, str]:
    """The outcome, its code and the sentence."""
    admission, code = found.admission, found.admission.reason.code
    if admission.verdict in (AdmissionVerdict.REFUSE, AdmissionVerdict.SKIP):
        return "refused", code, f"It would not wake {agent}: {admission.words}"
    if found.live_run is not None:
        return _meets(agent, request, found, found.live_run)
    if found.plan is not None:
        return _OUTCOMES[found.plan.outcome], found.plan.reason.code, _continues(found, found.plan)
    if found.alone:
        return "queued", code, f"Queued: {agent} first does what was asked for in a context of its own."
    wait = found.wait
    return "hold", code if wait is None or wait.code is None else wait.code, "" if wait is None else wait.words


def _meets(agent: str, request: WakeRequest, found: Foreseen, run: str) -> tuple[PreviewOutcome, str, str]:
    """What it does to a turn that is going."""
    code, busy = found.admission.reason.code, f"{agent} is busy ({run})"
    match found.admission.overlap:
        case Overlap.STEER if found.steerable and fits_turn(request):
            return "steered", code, f"{busy}: it is told during this turn, or at the start of the next."
        case Overlap.STEER:
            return "queued", code, f"{busy} and cannot be told within this turn: queued behind {run}."
        case Overlap.INTERRUPT:
            return "interrupts", code, f"{busy}: {run} is interrupted, and {agent} is told next."
        case Overlap.QUEUE | Overlap.REJECT | None:
            return "queued", code, f"Queued behind {run}: {agent} is told when that one ends."


_OUTCOMES: dict[Outcome, PreviewOutcome] = {
    Outcome.RESUME: "resume",
    Outcome.FORK: "fork",
    Outcome.TRANSFER: "transfer",
    Outcome.RESEED: "reseed",
    Outcome.BLANK: "blank",
    Outcome.HOLD: "hold",
}


def _continues(found: Foreseen, plan: Plan) -> str:
    place = plan.workspace
    where = f"on {found.machine}"
    where += "" if place is None else f" in {place.branch or place.directory.path}"
    number, told = 0 if plan.session is None else plan.session.generation, _told(plan, found.entry)
    match plan.outcome:
        case Outcome.RESUME:
            words = f"Continues session {number} {where}, told {told}."
        case Outcome.FORK:
            words = f"Continues in a copy of session {number} {where}, told {told}. {plan.words}"
        case Outcome.TRANSFER:
            words = f"Moves session {number}, and continues it {where}, told {told}. {plan.words}"
        case Outcome.RESEED:
            words = f"Starts a new session {where}, told {told}. {plan.words}"
        case Outcome.BLANK:
            why = "" if plan.reason is PlanReason.FIRST else f" {plan.words}"
            words = f"Starts a new conversation {where}, told {told}.{why}"
        case Outcome.HOLD:
            return f"Held: {plan.words}"
    wait = found.wait
    waits = wait is not None and wait.code != WaitReason.NEXT.code
    return f"{words} It does not start at once: {wait.words}" if wait is not None and waits else words


def _told(plan: Plan, entry: int) -> str:
    first, last = _earlier(plan, entry)
    if first is None or last is None:
        return "this message"
    return f"entry {first} and this message" if first == last else f"entries {first} to {last} and this message"


def _earlier(plan: Plan, entry: int) -> tuple[int | None, int | None]:
    """The first and the last of the entries before the message that the agent is told."""
    told = {*plan.kept, *plan.act_on, *range(plan.catch_up.after + 1, plan.catch_up.through + 1)}
    earlier = sorted(told - {entry} - set(plan.already_told))
    return (earlier[0], earlier[-1]) if earlier else (None, None)
