"""Runs as views, newest first, and the facts that explain one run."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson
from sqlalchemy import (
    ColumnElement,
    Connection,
    Select,
    TextClause,
    bindparam,
    func,
    literal_column,
    select,
    text,
    tuple_,
)

from clew.kernel import LIVE, RUN_ENDS, AgentId, Evidence, LaneId, RunId, RunOutcome, RunState, ThreadId
from clew.protocol.reports import read_prompted
from clew.protocol.usage import UsedView
from clew.protocol.views import RunView
from clew.protocol.why_views import EvidenceView, SteerView
from clew.store.engine.dialect import among
from clew.store.engine.statement import Row, Statement
from clew.store.faults import NoSuchRun
from clew.store.operations.rows import read_object
from clew.store.queries.refs import RUNTIME_NAME, THREAD_NAME, run_ref, runtime_ref, thread_ref, with_owner
from clew.store.queries.spoken import spoken
from clew.store.queries.usage import used_of
from clew.store.queries.waits import Wait, delays, queued_waits
from clew.store.schema.tables import (
    NOT_ENDED,
    agents,
    decisions,
    events,
    landings,
    lanes,
    machines,
    runs,
    runtimes,
    threads,
)

LAST = "~"
"""Sorts after every id."""

_MANY = 5000
"""How many rows are filtered where two conditions are given and only one of them has an index."""

_STEER = "steer"


@dataclass(frozen=True, slots=True)
class RunRecord:
    """What a use case has to know of a run. `isolated`: it has a context of its own, which ends with it."""

    id: RunId
    name: str
    """Its name for people: run-17."""
    lane: LaneId
    thread: ThreadId
    agent: AgentId
    agent_name: str
    ref: str
    """The name of its thread."""
    state: RunState
    held: bool
    isolated: bool

    @property
    def live(self) -> bool:
        return self.state in LIVE


@dataclass(frozen=True, slots=True)
class RunDetails:
    """A run with what explains it. `landing` is what the agent said it opened, field by field; `refused` says why
    something it opened was refused; `evidence` is None where no prompt was sent."""

    record: RunRecord
    view: RunView
    landing: Mapping[str, str]
    refused: tuple[str, ...]
    steered: tuple[SteerView, ...]
    evidence: EvidenceView | None


def _shown(*which: ColumnElement[bool] | TextClause) -> Select[Any]:
    source = (
        runs.join(lanes, lanes.c.id == runs.c.lane_id)
        .join(threads, threads.c.id == lanes.c.thread_id)
        .outerjoin(runtimes, runtimes.c.id == runs.c.runtime_id)
        .outerjoin(machines, machines.c.id == runtimes.c.machine_id)
    )
    return (
        select(*runs.c, lanes.c.thread_id, agents.c.name.label("agent_name"), *THREAD_NAME, *RUNTIME_NAME)
        .select_from(with_owner(source.join(agents, agents.c.id == runs.c.agent_id)))
        .where(*which)
        .limit(bindparam("most"))
    )


_before = runs.c.id < bindparam("before")

newest = Statement(lambda _: _shown(_before).order_by(runs.c.id.desc()))
of_agent = Statement(lambda _: _shown(runs.c.agent_id == bindparam("agent"), _before).order_by(runs.c.id.desc()))
of_lane = Statement(
    lambda _: _shown(
        runs.c.lane_id == bindparam("lane"),
        tuple_(runs.c.queued_at, runs.c.id) < tuple_(bindparam("before_at"), bindparam("before")),
    ).order_by(runs.c.queued_at.desc(), runs.c.id.desc())
)
_is = runs.c.state == bindparam("state")
answered = Statement(lambda _: _shown(_is, _before).order_by(runs.c.id.desc()))
unserved = Statement(
    lambda _: _shown(text("runs.ended_at IS NOT NULL AND runs.state <> 'succeeded'"), _is, _before).order_by(
        runs.c.id.desc()
    )
)
# coalesce() keeps the planner off the primary key: it would read every run there ever was in the order of ids. The
# partial index of runs that have not ended answers this.
_id: ColumnElement[str] = func.coalesce(runs.c.id, literal_column("''"))
going = Statement(lambda _: _shown(text(f"runs.{NOT_ENDED}"), _is, _id < bindparam("before")).order_by(_id.desc()))

one = Statement(lambda _: _shown(runs.c.id == bindparam("run")))
some = Statement(lambda dialect: _shown(among(dialect, runs.c.id, "runs")))

_open = Statement(lambda _: _shown(runs.c.lane_id == bindparam("lane"), text(f"runs.{NOT_ENDED}")))

_lanes = Statement(lambda _: select(lanes.c.id).where(lanes.c.thread_id == bindparam("thread")))

decisions_of_runs = Statement(
    lambda dialect: select(
        decisions.c.run_id, decisions.c.outcome, decisions.c.code, decisions.c.record, decisions.c.at
    ).where(among(dialect, decisions.c.run_id, "runs"))
)

steers_of_run = Statement(
    lambda _: (
        select(events.c.seq, events.c.body, events.c.at)
        .where(events.c.run_id == bindparam("run"), events.c.kind == literal_column(f"'{_STEER}'"))
        .order_by(events.c.seq)
    )
)

_refused = Statement(
    lambda _: (
        select(landings).where(landings.c.run_id == bindparam("run")).order_by(landings.c.attempt, landings.c.step)
    )
)


def read_run(connection: Connection, run: str) -> RunRecord:
    return _record(run_row(connection, run))


def run_row(connection: Connection, run: str) -> Row:
    """For operations of the store."""
    row = one.first(connection, run=run, most=1)
    if row is None:
        raise NoSuchRun(f"There is no run {run}.", "See them with `clew runs`.")
    return row


def show_run(connection: Connection, run: str) -> RunView:
    return _views(connection, [run_row(connection, run)])[0]


def run_details(connection: Connection, run: str) -> RunDetails:
    row = run_row(connection, run)
    return RunDetails(
        record=_record(row),
        view=_views(connection, [row])[0],
        landing=_landing(row["landing"]),
        refused=tuple(each["words"] for each in _refused.rows(connection, run=run)),
        steered=tuple(map(_steer, steers_of_run.rows(connection, run=run))),
        evidence=_evidence(row),
    )


def open_run_of(connection: Connection, lane: str) -> RunRecord | None:
    """The lane's run that has not ended."""
    row = _open.first(connection, lane=lane, most=1)
    return None if row is None else _record(row)


def list_runs(
    connection: Connection,
    thread: str | None,
    agent: str | None,
    state: RunState | None,
    most: int,
    before: str | None,
    folded: bool = False,
) -> tuple[RunView, ...]:
    """The newest first, of that thread, agent and state; with `before`, those older than that run. `folded` leaves out
    failed tries that another try followed."""
    found: list[Row] = []
    while len(found) < most:
        page = _page(connection, thread, agent, state, most, before)
        found += [row for row in page if not (folded and row["outcome"] == RunOutcome.RETRYING.code)]
        if not folded or len(page) < most:
            break
        before = page[-1]["id"]
    return _views(connection, found[:most])


def _page(
    connection: Connection, thread: str | None, agent: str | None, state: RunState | None, most: int, before: str | None
) -> Sequence[Row]:
    if thread is not None:
        found = _of_thread(connection, thread, most, before, None if agent is None and state is None else _MANY)
    elif agent is not None and (state is None or state is RunState.SUCCEEDED):
        found = of_agent.rows(connection, agent=agent, before=before or LAST, most=most if state is None else _MANY)
    else:
        wanted = most if agent is None else _MANY
        found = _of_state(connection, state, wanted, before or LAST)
    return [row for row in found if _fits(row, agent, state)][:most]


def show_runs(connection: Connection, wanted: Collection[str]) -> tuple[RunView, ...]:
    """These runs, in no order."""
    rows = some.rows(connection, runs=list(wanted), most=len(wanted)) if wanted else ()
    return _views(connection, rows)


def _of_state(connection: Connection, state: RunState | None, most: int, before: str) -> Sequence[Row]:
    if state is None:
        return newest.rows(connection, before=before, most=most)
    statement = answered if state is RunState.SUCCEEDED else unserved if state in RUN_ENDS else going
    return statement.rows(connection, state=state.value, before=before, most=most)


def _of_thread(connection: Connection, thread: str, most: int, before: str | None, look: int | None) -> Sequence[Row]:
    """Lane by lane: a thread has few lanes, and ix_runs_lane orders the runs of each."""
    place = {"before": LAST, "before_at": 1e15}
    if before is not None:
        place = {"before": before, "before_at": run_row(connection, before)["queued_at"]}
    found = [
        row
        for lane in _lanes.rows(connection, thread=thread)
        for row in of_lane.rows(connection, lane=lane["id"], most=look or most, **place)
    ]
    return sorted(found, key=lambda row: (row["queued_at"], row["id"]), reverse=True)


def _fits(row: Row, agent: str | None, state: RunState | None) -> bool:
    return (agent is None or row["agent_id"] == agent) and (state is None or row["state"] == state.value)


def _newest_decisions(connection: Connection, of: Sequence[str]) -> dict[str, Row]:
    """The latest decision of each run, by time: one that held a run may be later than the one of its claim."""
    latest: dict[str, Row] = {}
    for row in decisions_of_runs.rows(connection, runs=list(of)) if of else ():
        if row["run_id"] not in latest or latest[row["run_id"]]["at"] <= row["at"]:
            latest[row["run_id"]] = row
    return latest


def _record(row: Row) -> RunRecord:
    return RunRecord(
        id=RunId(row["id"]),
        name=run_ref(row),
        lane=LaneId(row["lane_id"]),
        thread=ThreadId(row["thread_id"]),
        agent=AgentId(row["agent_id"]),
        agent_name=row["agent_name"],
        ref=thread_ref(row),
        state=RunState(row["state"]),
        held=bool(row["hold"]),
        isolated=bool(row["scope_run"]),
    )


def _views(connection: Connection, rows: Sequence[Row]) -> tuple[RunView, ...]:
    decided = _newest_decisions(connection, [row["id"] for row in rows])
    waits = queued_waits(connection, rows)
    delayed = delays(connection, rows)
    used = used_of(connection, [row["id"] for row in rows])
    return spoken(
        connection,
        tuple(
            _view(
                {**row, "words": delayed.get(row["id"], row["words"])},
                decided.get(row["id"]),
                waits.get(row["id"]),
                used.get(row["id"]),
            )
            for row in rows
        ),
    )


def _view(row: Row, decision: Row | None, wait: Wait | None, used: UsedView | None) -> RunView:
    state = RunState(row["state"])
    return RunView(
        id=row["id"],
        ref=run_ref(row),
        thread=thread_ref(row),
        agent=row["agent_name"],
        state=state.value,
        attempt=row["attempt"],
        queued_at=row["queued_at"],
        started_at=row["started_at"],
        ended_at=row["ended_at"],
        runtime=row["runtime_id"],
        place=runtime_ref(row),
        session=row["session_id"],
        decision=None if decision is None else decision["outcome"],
        decision_words=None if decision is None else _decision_words(decision),
        claim=row["claim"],
        code=row["outcome"] or row["stop_code"] or row["hold_code"] if wait is None else wait.code,
        words=row["words"] if wait is None else wait.words,
        not_before=row["not_before"] if wait is None or wait.held is None else wait.until,
        stopping=state is RunState.STOPPING,
        held=None if wait is None else wait.held,
        on_its_word='"on_its_word"' in (row["landing"] or ""),
        used=used,
        tries=row["tries"] + 1,
    )


def _decision_words(decision: Row) -> str:
    try:
        return str(orjson.loads(decision["record"])["plan"]["words"])
    except (ValueError, KeyError, TypeError):
        return str(decision["code"])


def _steer(row: Row) -> SteerView:
    """A line that cannot be read is shown without its text."""
    said = read_object(row["body"]) or {}
    return SteerView(
        tuple(map(str, said.get("wakes") or ())), str(said.get("text") or ""), said.get("taken") is True, row["at"]
    )


_EVIDENCE: Mapping[Evidence, str] = {
    Evidence.UNSENT: "The agent did not take the prompt",
    Evidence.TAKEN: "The agent took the prompt, and no answer to it is known",
    Evidence.CUT_OFF: "The agent took the prompt and its turn was cut off",
    Evidence.FINISHED: "The agent took the prompt and finished its turn",
    Evidence.UNKNOWN: "It is not known whether the agent took the prompt",
}


def _evidence(row: Row) -> EvidenceView | None:
    if row["prompt"] is None:
        return None
    if not row["evidence"]:
        ended = row["ended_at"] is not None
        finds_out = "a person decides, because this agent keeps no record that Clew can read"
        if _can_be_asked(row["prompt"]):
            finds_out = "Clew finds out before it sends anything else here"
        words = f"Not known yet whether the agent took the prompt; {finds_out}."
        return EvidenceView(Evidence.UNKNOWN.value, words, None) if ended else None
    evidence = Evidence(row["evidence"])
    detail = (row["evidence_words"] or "").strip().removesuffix(".")
    words = f"{_EVIDENCE[evidence]}: {detail}." if detail else f"{_EVIDENCE[evidence]}."
    return EvidenceView(evidence.value, words, row["evidence_at"], row["evidence_asked"])


def _can_be_asked(prompt: str) -> bool:
    try:
        return read_prompted(prompt).hears
    except ValueError:
        return False


def _landing(text: str | None) -> Mapping[str, str]:
    if text is None:
        return {}
    try:
        said = orjson.loads(text)
    except ValueError:
        said = text
    if not isinstance(said, dict):
        return {"said": str(said)}
    return {
        str(name): value if isinstance(value, str) else orjson.dumps(value).decode() for name, value in said.items()
    }
