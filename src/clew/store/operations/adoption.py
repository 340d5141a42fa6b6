"""Adopting: a session that a person has with an agent already is put under a thread, and goes on there."""

from dataclasses import dataclass

from sqlalchemy import Connection, bindparam, select

from clew.kernel import AgentId, LaneId, RuntimeId, SessionId, ThreadId, lane_id
from clew.protocol.reports import NewSession
from clew.store.engine.clock import read_clock
from clew.store.engine.dialect import insert
from clew.store.engine.hints import hint_thread
from clew.store.engine.statement import Statement
from clew.store.faults import NoSuchAgent, NoSuchRuntime, NoSuchThread
from clew.store.operations.ids import new_id
from clew.store.operations.pins import append_session, held_by_another, holder_of, session_facts
from clew.store.schema.tables import UNKNOWN_RUNTIME, agents, lanes, runtimes, threads


@dataclass(frozen=True, slots=True)
class Adoption:
    agent: AgentId
    thread: ThreadId
    runtime: RuntimeId
    session: NewSession
    turns: int = 0


@dataclass(frozen=True, slots=True)
class Adopted:
    session: SessionId
    generation: int
    lane: LaneId
    repeated: bool = False


_agent = Statement(lambda _: select(agents.c.id).where(agents.c.id == bindparam("agent")))
_thread = Statement(lambda _: select(threads.c.id).where(threads.c.id == bindparam("thread")))
_runtime = Statement(lambda _: select(runtimes.c.provider).where(runtimes.c.id == bindparam("runtime")))


def adopt_session(connection: Connection, adoption: Adoption) -> Adopted:
    """One transaction: the lane, and the session as its newest generation. One that another lane has stays there."""
    runtime = _runtime.first(connection, runtime=adoption.runtime)
    if runtime is None or adoption.runtime == UNKNOWN_RUNTIME:
        raise NoSuchRuntime(f"There is no runtime {adoption.runtime}.", "Start its daemon once, so that it registers.")
    if _agent.first(connection, agent=adoption.agent) is None:
        raise NoSuchAgent(f"There is no agent {adoption.agent}.", "Name one that exists.")
    if _thread.first(connection, thread=adoption.thread) is None:
        raise NoSuchThread(f"There is no thread {adoption.thread}.", "Open it first.")
    lane = lane_id(adoption.agent, adoption.thread)
    # A new lane works where its session is; one that is there already stays where it is.
    made = insert(connection, lanes).values(
        id=lane, agent_id=adoption.agent, thread_id=adoption.thread, runtime_id=adoption.runtime
    )
    connection.execute(made.on_conflict_do_nothing())
    appended = append_session.first(
        connection,
        **session_facts(adoption.session)
        | {
            "id": new_id("ss"),
            "lane_id": lane,
            "scope_run": "",
            "provider": runtime["provider"],
            "runtime_id": adoption.runtime,
            "run_id": None,
            "adopted_at": read_clock(connection),
            "seen": adoption.session.begins,
            "inherited": adoption.session.begins,
            "turns": adoption.turns,
        },
    )
    hint_thread(connection, adoption.thread)
    if appended is not None:
        return Adopted(SessionId(appended["id"]), appended["generation"], lane)
    native = adoption.session.cursor.native_id
    known = holder_of.first(connection, runtime=adoption.runtime, native=native)
    if known is None or known["lane_id"] != lane or known["scope_run"]:
        raise held_by_another(native, known)
    return Adopted(SessionId(known["id"]), known["generation"], lane, repeated=True)
