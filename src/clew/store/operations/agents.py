"""Agents: added with the runtime they work on, changed, moved to another runtime, paused."""

from dataclasses import dataclass

from sqlalchemy import Connection, bindparam, case, func, insert, literal_column, null, select, text, update

from clew.kernel import AgentId, AgentState, RunId, RuntimeId, own_thread
from clew.store.engine.dialect import insert as insert_or
from clew.store.engine.dialect import now
from clew.store.engine.hints import hint_queue, hint_run
from clew.store.engine.statement import Statement
from clew.store.faults import NameTaken
from clew.store.operations.ids import new_id
from clew.store.operations.moves import lock_agent
from clew.store.operations.updates import AGENT_COLUMNS, AgentUpdate, column_values
from clew.store.schema.tables import NOT_ENDED, agents, lanes, runs, threads


@dataclass(frozen=True, slots=True)
class AgentFacts:
    """`settings` is its program as JSON, and `program` the key that program is registered with; `home` is the directory
    it works in without a project; `policy` is the kernel's, as JSON."""

    name: str
    provider: str
    runtime: RuntimeId
    home: str
    mode: str
    model: str | None = None
    instructions: str | None = None
    settings: str = "{}"
    max_live: int = 1
    program: str = ""
    policy: str = "{}"


_MOST_HINTS = 200
"""How many of an agent's queued runs are hinted at, each one a line that somebody may be looking at."""

_runtime_of = Statement(lambda _: select(agents.c.runtime_id).where(agents.c.id == bindparam("agent")))

_named = Statement(lambda _: select(agents.c.id, agents.c.state).where(agents.c.name == bindparam("name")))

_leave_runtime = Statement(
    lambda _: (
        lanes.update()
        .where(lanes.c.agent_id == bindparam("agent"), lanes.c.runtime_id == bindparam("before"))
        .values(runtime_id=null())
    )
)

_follow = Statement(
    lambda _: (
        runs.update()
        .where(
            text(f"runs.{NOT_ENDED} AND runs.state = 'queued'"),
            # `|| ''` keeps the planner off ix_runs_agent, which has every run the agent ever had; few have not ended.
            runs.c.agent_id + literal_column("''") == bindparam("agent"),
            runs.c.lane_id.in_(select(lanes.c.id).where(lanes.c.id == runs.c.lane_id, lanes.c.runtime_id.is_(None))),
        )
        .values(runtime_id=bindparam("runtime"))
    )
)

_set_missing = Statement(
    lambda _: (
        agents.update()
        .where(
            agents.c.id == bindparam("agent"),
            func.coalesce(agents.c.missing, literal_column("''")) != bindparam("missing"),
        )
        .values(missing=func.nullif(bindparam("missing", type_=agents.c.missing.type), literal_column("''")))
    )
)

_queued_of = Statement(
    lambda _: (
        select(runs.c.id)
        .where(
            text(f"runs.{NOT_ENDED} AND runs.state = 'queued'"),
            # As in _follow.
            runs.c.agent_id + literal_column("''") == bindparam("agent"),
        )
        .limit(_MOST_HINTS)
    )
)

_look_again = Statement(
    lambda _: (
        runs.update()
        .where(
            text(f"runs.{NOT_ENDED} AND runs.state = 'queued' AND runs.hold <> ''"),
            runs.c.agent_id == bindparam("agent"),
        )
        .values(
            hold=literal_column("''"),
            hold_code=null(),
            not_before=case((runs.c.hold == literal_column("''"), runs.c.not_before), else_=null()),
        )
    )
)


def new_agent() -> AgentId:
    """A new id, made before the first write: an operation that is run again then adds the same agent."""
    return AgentId(new_id("ag"))


def add_agent(connection: Connection, agent: AgentId, facts: AgentFacts) -> None:
    """Add the agent, with its own thread for pokes and heartbeats. Safe to repeat."""
    there = _named.first(connection, name=facts.name)
    if there is not None and there["id"] == agent:
        return
    if there is not None and there["state"] == AgentState.ARCHIVED:
        raise NameTaken(
            f"An agent {facts.name!r} was removed; its threads and runs keep that name.",
            f"Bring it back with `clew agent resume {facts.name}`, or choose another name.",
        )
    if there is not None:
        raise NameTaken(f"There is already an agent {facts.name!r}.", "Choose another name, or change that agent.")
    connection.execute(
        insert(agents).values(
            id=agent,
            name=facts.name,
            provider=facts.provider,
            runtime_id=facts.runtime,
            model=facts.model,
            mode=facts.mode,
            instructions=facts.instructions,
            max_live=facts.max_live,
            home=facts.home,
            settings=facts.settings,
            program=facts.program,
            policy=facts.policy,
        )
    )
    own = insert_or(connection, threads).values(id=own_thread(agent), kind="own", created_at=now(), assignee=agent)
    connection.execute(own.on_conflict_do_nothing())


def change_agent(connection: Connection, agent: AgentId, change: AgentUpdate) -> None:
    """Queued runs follow the agent to another runtime, and held runs are decided again."""
    values = column_values(change, AGENT_COLUMNS)
    before = lock_agent(connection, agent) if "runtime_id" in values else _runtime_of.first(connection, agent=agent)
    assert before is not None
    if values:
        connection.execute(update(agents).where(agents.c.id == agent).values(**values))
    runtime = values.get("runtime_id", before["runtime_id"])
    if runtime != before["runtime_id"]:
        # A lane that was set to the agent's old runtime follows it; one that was set to another stays there.
        _leave_runtime.count(connection, agent=agent, before=before["runtime_id"])
        _follow.count(connection, agent=agent, runtime=runtime)
    _look_again.count(connection, agent=agent)
    hint_queue(connection, None if runtime is None else RuntimeId(str(runtime)))


def set_missing(connection: Connection, agent: AgentId, missing: str) -> bool:
    """Record why the agent's program cannot be started; empty when it was found. Returns whether that is new. Its
    queued runs wait for the program; when it is there again, all of them are decided again."""
    if not _set_missing.count(connection, agent=agent, missing=missing):
        return False
    for row in _queued_of.rows(connection, agent=agent):
        hint_run(connection, RunId(row["id"]))
    if not missing:
        change_agent(connection, agent, AgentUpdate())
    return True
