"""Which runs of a lane were given an entry of the journal: those agents have it, or may have it."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, bindparam, func, literal_column, select, text

from clew.kernel import EntrySeq, Evidence, Instant, LaneId
from clew.protocol.reports import read_steer
from clew.store.engine.statement import Row, Statement
from clew.store.operations.rows import read_object
from clew.store.schema.tables import LIVE, agents, decisions, runs

MOST_READ = 50
"""How many runs since an entry was written are looked at, the oldest first: the first that is told has it."""


@dataclass(frozen=True, slots=True)
class Reader:
    """A run that was given entries after `after` up to `through`, and `others`. `certain`: its agent has them, or gets
    them in the turn that is going; else it is not known yet whether it does."""

    run: str
    """Its name for people: run-17."""
    agent: str
    since: Instant
    certain: bool
    after: EntrySeq
    through: EntrySeq
    others: frozenset[EntrySeq]

    def has(self, entry: EntrySeq) -> bool:
        return self.after < entry <= self.through or entry in self.others


_step = decisions.alias("s")
_before = runs.alias("b")
_newest_step = (
    select(func.max(_step.c.step)).where(_step.c.run_id == runs.c.id, _step.c.attempt == runs.c.attempt)
).scalar_subquery()
# The run that was the lane's newest when the entry was written may have been claimed since.
_newest_then = (
    select(func.max(_before.c.queued_at)).where(
        _before.c.lane_id == bindparam("lane"), _before.c.queued_at <= bindparam("at")
    )
).scalar_subquery()

_SENT = f"(runs.prompt_sent = 1 AND runs.evidence <> '{Evidence.UNSENT}')"

# Along ix_runs_lane, from the run that was the newest when the entry was written.
given_since = Statement(
    lambda _: (
        select(
            runs.c.number,
            runs.c.lease_until,
            runs.c.started_at,
            runs.c.prompt_sent,
            runs.c.evidence,
            runs.c.told,
            runs.c.steer,
            agents.c.name.label("agent_name"),
            decisions.c.record,
        )
        .select_from(
            runs.join(agents, agents.c.id == runs.c.agent_id).join(
                decisions,
                (decisions.c.run_id == runs.c.id)
                & (decisions.c.attempt == runs.c.attempt)
                & (decisions.c.step == _newest_step),
            )
        )
        .where(
            runs.c.lane_id == bindparam("lane"),
            runs.c.queued_at >= func.coalesce(_newest_then, literal_column("0.0")),
            runs.c.scope_run == literal_column("''"),
            runs.c.attempt > literal_column("0"),
            text(f"(runs.{LIVE} OR runs.steer IS NOT NULL OR {_SENT})"),
        )
        .order_by(runs.c.queued_at, runs.c.id)
        .limit(MOST_READ)
    )
)


def readers_since(connection: Connection, lane: LaneId, at: Instant) -> Sequence[Reader]:
    """The runs of the lane that may have been given what was written at that time or later."""
    return [_reader(row) for row in given_since.rows(connection, lane=lane, at=at)]


def _reader(row: Row) -> Reader:
    plan = (read_object(row["record"]) or {}).get("plan")
    given = plan if isinstance(plan, dict) else {}
    after, through = given.get("catch_up") or (0, 0)
    live = row["lease_until"] is not None
    known = row["evidence"] not in ("", Evidence.UNKNOWN.value)
    return Reader(
        run=f"run-{row['number']}",
        agent=row["agent_name"],
        since=row["started_at"] or 0.0,
        certain=bool(row["prompt_sent"]) and (live or known) and row["steer"] is None,
        after=EntrySeq(after),
        # A message within the turn raises `told`, and is in `steer` until it is known whether the agent took it.
        through=EntrySeq(max(through, row["told"], _steered(row["steer"]))),
        others=frozenset(map(EntrySeq, (*given.get("kept", ()), *given.get("act_on", ())))),
    )


def _steered(steer: str | None) -> int:
    try:
        return 0 if steer is None else read_steer(steer).through
    except ValueError:
        return 0
