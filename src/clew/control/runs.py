"""Runs: listed, shown with their logs, stopped, retried, and repeated."""

from collections.abc import Sequence
from dataclasses import replace

from clew.control.actor import Actor, name_of, origin_of
from clew.control.faults import BadRequest, NotNow
from clew.control.services import Services
from clew.control.validation import check_limit
from clew.kernel import RunId, RunOutcome, RunState
from clew.protocol.requests import Retry
from clew.protocol.views import Cancelled, EventView, RunView, WakeView
from clew.protocol.wakes import Accepted
from clew.store.engine.database import Transaction
from clew.store.operations import cancel
from clew.store.operations.evidence import attest_by_person
from clew.store.operations.ids import new_id
from clew.store.operations.retry import ask_again, go_now
from clew.store.operations.sessions import run_session
from clew.store.operations.threads import must_be_open
from clew.store.queries import run_log
from clew.store.queries import runs as queries
from clew.store.queries.names import agent_named, run_called, thread_called
from clew.store.queries.runs import RunRecord, read_run
from clew.store.queries.wakes import pending_wakes, show_wake

HELD = "held"
"""The state that people see of a queued run that does not wait for its turn alone."""


async def list_runs(
    services: Services,
    actor: Actor,
    thread: str | None = None,
    agent: str | None = None,
    state: str | None = None,
    limit: int = 50,
    before: str | None = None,
    folded: bool = False,
) -> tuple[RunView, ...]:
    """The newest first; with `before`, those older than that run. `folded` leaves out failed tries that another try
    followed. A state is one of a run's, or held: queued, and not for its turn alone."""
    most, of_state = check_limit(limit), None if state is None else _state(state)

    def read(tx: Transaction) -> tuple[RunView, ...]:
        in_thread = None if thread is None else thread_called(tx, thread).id
        of_agent = None if agent is None else agent_named(tx, agent).id
        older_than = None if before is None else run_called(tx, before)
        found: list[RunView] = []
        while len(found) < most:
            page = queries.list_runs(tx, in_thread, of_agent, of_state, most, older_than, folded)
            found += [run for run in page if state != HELD or run.held]
            if state != HELD or len(page) < most:
                break
            older_than = RunId(page[-1].id)
        return tuple(found[:most])

    return await services.read(read)


async def show_run(services: Services, actor: Actor, run: str) -> RunView:
    """By its id, or by a prefix that only this run has."""
    return await services.read(lambda tx: queries.show_run(tx, run_called(tx, run)))


async def list_events(
    services: Services, actor: Actor, run: str, after: int = 0, limit: int = 500
) -> tuple[EventView, ...]:
    """The lines of its log after a given one, in order."""
    most = check_limit(limit)
    if not 0 <= after < 2**31:
        raise BadRequest(f"There is no line {after}.", "Lines are numbered from 1; 0 is before all of them.")
    return await services.read(lambda tx: run_log.list_events(tx, run_called(tx, run), after, most))


async def last_events(services: Services, actor: Actor, run: str, limit: int) -> tuple[EventView, ...]:
    """The last lines of its log, in order."""
    most = check_limit(limit)
    return await services.read(lambda tx: run_log.last_events(tx, run_called(tx, run), most))


async def cancel_run(services: Services, actor: Actor, run: str) -> Cancelled:
    """End it with the wakes it carries. Its session stays, and can be continued."""

    def write(tx: Transaction) -> Cancelled:
        found = read_run(tx, run_called(tx, run))
        stopped = _stop(tx, found.id, RunOutcome.BY_USER, actor)
        return stopped if stopped.taken else replace(stopped, words=f"{found.name} has ended already: {stopped.state}.")

    return await services.write(write)


async def interrupt_run(services: Services, actor: Actor, run: str) -> Cancelled:
    """End the turn that is going; the next message continues in the same session."""

    def write(tx: Transaction) -> Cancelled:
        found = read_run(tx, run_called(tx, run))
        if found.live:
            return _stop(tx, found.id, RunOutcome.STOPPED, actor)
        return Cancelled(False, found.state.value, _no_turn(found))

    return await services.write(write)


def _no_turn(run: RunRecord) -> str:
    how = "waits and has no turn" if run.state is RunState.QUEUED else f"has ended already: {run.state}"
    return f"{run.name} {how}. There is nothing to interrupt."


async def retry_run(services: Services, actor: Actor, run: str, asked: Retry | None = None) -> tuple[WakeView, ...]:
    """Try now what waits, and what a run that gave up had carried; the wakes that this is about.

    With `taken`, the actor says whether the agent took a prompt, where the agent's own store cannot tell."""

    def write(tx: Transaction) -> tuple[WakeView, ...]:
        found = _in_open_thread(tx, run)
        if found.live:
            raise NotNow(f"{found.name} is {found.state} already.", "Wait for its end, or cancel it first.")
        if asked is not None and asked.taken is not None:
            return _decide(tx, found, asked.taken, actor)
        if found.state is RunState.SUCCEEDED:
            raise NotNow(f"{found.name} has succeeded.", _instead(tx, found))
        retried = (
            []
            if found.state is RunState.QUEUED
            else ask_again(tx, found.id, origin_of(actor), only_unserved=True, resume=None)
        )
        waiting = go_now(tx, found.lane, found.thread)
        if waiting is None and not retried:
            raise NotNow(f"{found.name} has nothing left to retry.", _new_message(found))
        return _views(tx, found, retried)

    return await services.write(write)


def _decide(tx: Transaction, run: RunRecord, taken: bool, actor: Actor) -> tuple[WakeView, ...]:
    if not attest_by_person(tx, run.lane, taken, by=name_of(actor)):
        words = f"It is known what happened to every prompt in {run.ref}; there is nothing left to decide."
        raise NotNow(words, f"`clew why {run.name}` shows it. Retry it without --taken or --not-taken.")
    go_now(tx, run.lane, run.thread)
    return _views(tx, run, ())


async def rerun(services: Services, actor: Actor, run: str) -> tuple[WakeView, ...]:
    """Ask once more for what the run was asked, in the session that it used."""
    # Named before anything is written: however often the transaction is tried, it asks once.
    name = new_id("again")

    def write(tx: Transaction) -> tuple[WakeView, ...]:
        found = _in_open_thread(tx, run)
        if found.isolated:
            raise NotNow(f"{found.name} had a context of its own, which ended with it.", _new_message(found))
        if not run_session(tx, found.id):
            raise NotNow(f"No session of {found.name} is known, so there is none to continue.", _without_session(found))
        asked = ask_again(tx, found.id, origin_of(actor), only_unserved=False, resume=name)
        if not asked:
            raise NotNow(
                f"{found.name} carries no wake: its wakes went to another run, or wait for one.",
                f"See `clew thread show {found.ref}` and `clew why {found.name}`.",
            )
        return _views(tx, found, asked)

    return await services.write(write)


def _instead(tx: Transaction, run: RunRecord) -> str:
    """What to do instead of retrying a run that succeeded; `clew rerun` only where it would not refuse."""
    if run.isolated or not run_session(tx, run.id):
        return _new_message(run)
    return f"{_new_message(run)} `clew rerun {run.name}` repeats it."


def _without_session(run: RunRecord) -> str:
    return _new_message(run) if run.state is RunState.SUCCEEDED else f"`clew retry {run.name}` serves its wakes again."


def _new_message(run: RunRecord) -> str:
    return f"Send a new message with `clew say {run.ref} TEXT`."


def _stop(tx: Transaction, run: RunId, why: RunOutcome, actor: Actor) -> Cancelled:
    stopped = cancel.cancel_run(tx, run, why, by=name_of(actor))
    return Cancelled(stopped.taken, stopped.state.value, stopped.words)


def _in_open_thread(tx: Transaction, run: str) -> RunRecord:
    found = read_run(tx, run_called(tx, run))
    must_be_open(thread_called(tx, found.thread, locked=True), found.ref)
    return found


def _views(tx: Transaction, run: RunRecord, asked: Sequence[Accepted]) -> tuple[WakeView, ...]:
    if not asked:
        return pending_wakes(tx, run.lane)
    return tuple(show_wake(tx, each.wake, each.repeated) for each in asked)


def _state(state: str) -> RunState:
    try:
        return RunState.QUEUED if state == HELD else RunState(state)
    except ValueError as fault:
        known = ", ".join((*RunState, HELD))
        raise BadRequest(f"Unknown run state {state!r}.", f"Use one of: {known}.") from fault
