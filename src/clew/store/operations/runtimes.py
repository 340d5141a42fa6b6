"""Runtimes and the programs on them: the same machine, provider and home are always the same runtime, whichever program
is started there."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, FromClause, bindparam, case, select, text
from sqlalchemy.sql import ClauseElement

from clew.kernel import AccountId, Capabilities, RuntimeId, runtime_id
from clew.protocol.control import Registration
from clew.store.engine.dialect import among, insert, now
from clew.store.engine.hints import hint_queue
from clew.store.engine.statement import Statement
from clew.store.operations.rows import read_capabilities
from clew.store.schema.tables import agents, machines, programs, runs, runtimes, sessions


def last_seen_runtime(provider: ColumnElement[str]) -> ColumnElement[str]:
    """The runtime for an agent without one of its own: the one of its provider that was seen last."""
    return (
        select(runtimes.c.id)
        .where(runtimes.c.provider == provider)
        .order_by(runtimes.c.seen_at.desc())
        .limit(1)
        .scalar_subquery()
    )


def _take(dialect: str) -> ClauseElement:
    here = (
        select(runtimes.c.id)
        .join(agents, agents.c.provider == runtimes.c.provider)
        .where(agents.c.id == runs.c.agent_id, agents.c.runtime_id.is_(None), among(dialect, runtimes.c.id, "runtimes"))
        .limit(1)
        .scalar_subquery()
    )
    # `hold <> 'person'` is for ix_runs_queue. It excludes nothing: a run without a runtime was never decided, so never
    # held.
    waits = (text("runs.state = 'queued' AND runs.hold <> 'person'"), runs.c.runtime_id.is_(None), here.is_not(None))
    return runs.update().where(*waits).values(runtime_id=here).returning(runs.c.runtime_id)


strays = Statement(_take)


def register_runtime(connection: Connection, registration: Registration) -> RuntimeId:
    """Insert or update the runtime, and record that it is online. Its id is derived, so it finds its sessions again.
    Safe to repeat.

    Account and capabilities are stored with the program; the runtime has only those that were registered last.
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
    _register_program(connection, runtime, registration)
    assign_strays(connection, [runtime])
    return runtime


def assign_strays(connection: Connection, of: Sequence[RuntimeId]) -> None:
    """Give these runtimes the runs that wait for any runtime of their agent's provider. Repeated with every heartbeat:
    a run that is queued while a runtime registers is not visible to that transaction."""
    for row in strays.rows(connection, runtimes=list(of)):
        hint_queue(connection, RuntimeId(row["runtime_id"]))


def started(program: FromClause, runtime: FromClause, name: str) -> ColumnElement[Any]:
    """The program's `account` or `capabilities`. The runtime's value, which was registered there last, counts only for
    an agent whose program was never registered: one of an older database, before its first start."""
    return case((program.c.key.is_not(None), program.c[name]), else_=runtime.c[name])


def is_program(program: FromClause, runtime: ColumnElement[Any], agent: FromClause) -> ColumnElement[bool]:
    """Whether it is the agent's program on that runtime: at most one is, by the primary key of `programs`."""
    return (program.c.runtime_id == runtime) & (program.c.key == agent.c.program)


def account_of_run(
    session: ColumnElement[Any], runtime: ColumnElement[Any], agent: ColumnElement[Any]
) -> ColumnElement[Any]:
    """The account of a run, given the columns with its session, runtime and agent. The session's own account counts if
    there is a session: the agent may have been changed since the run was claimed.

    Each select has one table: in RETURNING on SQLite, SQLAlchemy renders columns without their table, so two tables
    must not share a name. Everything else is correlated explicitly, also two levels down, where SQLAlchemy would join
    it again: one statement may return several runs, and each has its own account.
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
    """An agent's program as it was registered on that runtime; None if there is no such agent or runtime."""
    row = _as_started.first(connection, agent=agent, runtime=runtime)
    if row is None:
        return None
    account = None if row["account"] is None else AccountId(row["account"])
    return StartedProgram(account, read_capabilities(row["id"], row["capabilities"]))


def accounts_there(connection: Connection) -> dict[str, tuple[str, ...]]:
    """The accounts of the agents on each runtime."""
    found: dict[str, tuple[str, ...]] = {}
    for row in _accounts.rows(connection):
        found[row["runtime_id"]] = (*found.get(row["runtime_id"], ()), row["account"])
    return found


def _register_program(connection: Connection, runtime: str, registration: Registration) -> None:
    """Insert or update the program's account, credential and capabilities. Safe to repeat."""
    said = {
        "account": registration.account,
        "credential": registration.credential,
        "capabilities": registration.capabilities,
        "seen_at": now(),
    }
    row = insert(connection, programs).values(runtime_id=runtime, key=registration.program, **said)
    connection.execute(row.on_conflict_do_update(index_elements=[programs.c.runtime_id, programs.c.key], set_=said))
