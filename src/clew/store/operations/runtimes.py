"""Registering a program and its runtime: the same machine, provider and home are the same runtime, however often they
come and whichever program is started there."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, FromClause, bindparam, case, select, text
from sqlalchemy.sql import ClauseElement

from clew.kernel import AccountId, Capabilities, RuntimeId, runtime_id
from clew.protocol.runtimes import Registration
from clew.store.engine.dialect import among, insert, now
from clew.store.engine.hints import hint_queue
from clew.store.engine.statement import Statement
from clew.store.operations.rows import read_capabilities
from clew.store.schema.tables import agents, machines, programs, runs, runtimes, sessions


def _take(dialect: str) -> ClauseElement:
    here = (
        select(runtimes.c.id)
        .join(agents, agents.c.provider == runtimes.c.provider)
        .where(agents.c.id == runs.c.agent_id, agents.c.runtime_id.is_(None), among(dialect, runtimes.c.id, "runtimes"))
        .limit(1)
        .scalar_subquery()
    )
    # What waits for a runtime was never claimed, so it waits for nobody else.
    waits = (text("runs.state = 'queued' AND runs.hold <> 'person'"), runs.c.runtime_id.is_(None), here.is_not(None))
    return runs.update().where(*waits).values(runtime_id=here).returning(runs.c.runtime_id)


strays = Statement(_take)


def register_runtime(connection: Connection, registration: Registration) -> RuntimeId:
    """Put or renew it, and note that it was seen. Its sessions are found again by its id. Safe to repeat.

    What the program says of itself is kept with the program; the runtime keeps only what was said there last.
    """
    runtime = runtime_id(registration.machine, registration.provider, registration.home)
    machine = insert(connection, machines).values(
        id=registration.machine, name=registration.machine_name, root=registration.root, seen_at=now()
    )
    connection.execute(
        machine.on_conflict_do_update(
            index_elements=[machines.c.id],
            set_={"name": registration.machine_name, "root": registration.root, "seen_at": now()},
        )
    )
    said = {
        "account": registration.account,
        "capabilities": registration.capabilities,
        "max_live": registration.max_live,
        "seen_at": now(),
    }
    row = insert(connection, runtimes).values(
        id=runtime,
        machine_id=registration.machine,
        provider=registration.provider,
        home=registration.home,
        **said,
    )
    connection.execute(row.on_conflict_do_update(index_elements=[runtimes.c.id], set_=said))
    register_program(connection, runtime, registration)
    assign_strays(connection, [runtime])
    return runtime


def assign_strays(connection: Connection, of: Sequence[RuntimeId]) -> None:
    """What waits for any runtime of its agent's provider, because there was none, has found one of these. Asked for
    again and again: what is queued in the very moment in which a runtime registers is not seen by it."""
    for row in strays.rows(connection, runtimes=list(of)):
        hint_queue(connection, RuntimeId(row["runtime_id"]))


def started(program: FromClause, runtime: FromClause, name: str) -> ColumnElement[Any]:
    """`account` or `capabilities` as the program has it. The runtime's own is what was registered there last. It counts
    only for an agent whose program was never registered: one of an older database before its first start."""
    return case((program.c.key.is_not(None), program.c[name]), else_=runtime.c[name])


def is_program(program: FromClause, runtime: ColumnElement[Any], agent: FromClause) -> ColumnElement[bool]:
    """Whether it is the agent's program in that runtime: at most one is, by the primary key of `programs`."""
    return (program.c.runtime_id == runtime) & (program.c.key == agent.c.program)


def account_of_run(
    session: ColumnElement[Any], runtime: ColumnElement[Any], agent: ColumnElement[Any]
) -> ColumnElement[Any]:
    """As whom a run works, by the columns that point to its session, runtime and agent. Its session says so where there
    is one: the agent may have been changed since the run was claimed.

    One table in each select: where SQLite returns rows, SQLAlchemy leaves the tables out, and names must not be shared.
    All else is correlated, also two selects down, where SQLAlchemy would join it anew: several runs end in one
    statement, and each has one account.
    """
    who, there, own, known = (
        agents.alias("who"),
        runtimes.alias("there"),
        programs.alias("own"),
        sessions.alias("known"),
    )
    key = select(who.c.program).where(who.c.id == agent).correlate_except(who).scalar_subquery()
    in_session = select(known.c.account).where(known.c.id == session).correlate_except(known)
    as_program = select(own.c.account).where(own.c.runtime_id == runtime, own.c.key == key).correlate_except(own)
    at_runtime = select(there.c.account).where(there.c.id == runtime).correlate_except(there)
    return case(
        (in_session.exists(), in_session.scalar_subquery()),
        (as_program.exists(), as_program.scalar_subquery()),
        else_=at_runtime.scalar_subquery(),
    )


_as_started = Statement(
    lambda _: (
        select(
            started(programs, runtimes, "account").label("account"),
            started(programs, runtimes, "capabilities").label("capabilities"),
            runtimes.c.id,
        )
        .select_from(
            agents.join(runtimes, runtimes.c.id == bindparam("runtime")).outerjoin(
                programs, is_program(programs, runtimes.c.id, agents)
            )
        )
        .where(agents.c.id == bindparam("agent"))
    )
)

_accounts = Statement(
    lambda _: (
        select(agents.c.runtime_id, programs.c.account)
        .join(programs, is_program(programs, agents.c.runtime_id, agents))
        .where(programs.c.account.is_not(None))
        .distinct()
        .order_by(agents.c.runtime_id, programs.c.account)
    )
)


@dataclass(frozen=True, slots=True)
class StartedProgram:
    account: AccountId | None
    capabilities: Capabilities


def as_started(connection: Connection, agent: str, runtime: str) -> StartedProgram | None:
    """An agent's program as that runtime registered it; None where there is no such agent or runtime."""
    row = _as_started.first(connection, agent=agent, runtime=runtime)
    if row is None:
        return None
    account = None if row["account"] is None else AccountId(row["account"])
    return StartedProgram(account, read_capabilities(row["id"], row["capabilities"]))


def accounts_there(connection: Connection) -> dict[str, tuple[str, ...]]:
    """The accounts that agents name, by the runtime they are in."""
    found: dict[str, tuple[str, ...]] = {}
    for row in _accounts.rows(connection):
        found[row["runtime_id"]] = (*found.get(row["runtime_id"], ()), row["account"])
    return found


def register_program(connection: Connection, runtime: str, registration: Registration) -> None:
    """Put or renew what the program says of itself. Safe to repeat."""
    said = {
        "account": registration.account,
        "credential": registration.credential,
        "capabilities": registration.capabilities,
        "seen_at": now(),
    }
    row = insert(connection, programs).values(runtime_id=runtime, key=registration.program, **said)
    connection.execute(row.on_conflict_do_update(index_elements=[programs.c.runtime_id, programs.c.key], set_=said))
