"""Sessions: the ones that Clew knows, the ones that the agents of a machine have, and adopting one of them."""

from functools import partial

from clew.control.actor import Actor
from clew.control.faults import BadRequest, NoSuchSession, NotNow
from clew.control.services import Services
from clew.control.threads import open_chat
from clew.control.validation import check_limit
from clew.kernel import (
    LIVE,
    Directory,
    LaneId,
    NativeId,
    RunState,
    RuntimeId,
    ThreadId,
    Workspace,
    WorkspaceId,
    WorkspaceKind,
)
from clew.ports.fault import Fault
from clew.ports.provider import FoundSession
from clew.protocol.checks import ReleasedView
from clew.protocol.reports import NewSession
from clew.protocol.requests import Adopt, AdoptFound, NewChat
from clew.protocol.views import FoundSessionView, SessionView
from clew.store.engine.database import Transaction
from clew.store.faults import NoSuchRuntime
from clew.store.operations.ids import derived_id
from clew.store.operations.runtimes import as_started
from clew.store.operations.sessions import Adoption
from clew.store.operations.sessions import adopt_session as adopt
from clew.store.operations.threads import give_thread, lock_thread, must_be_open
from clew.store.operations.workspaces import remember_place
from clew.store.queries.names import ThreadRecord, agent_named, thread_called
from clew.store.queries.runs import list_runs
from clew.store.queries.runtimes import RuntimeRecord, read_runtime, runtime_records
from clew.store.queries.sessions import recent_sessions, sessions_of_thread, show_session, threads_of_natives
from clew.store.queries.threads import has_workspace, show_thread

_TITLE = 120
"""Characters of a found session's title that a new chat gets."""
_RUNS = 100
"""How many of a thread's newest runs and sessions are looked at."""


async def list_sessions(
    services: Services, actor: Actor, thread: str | None = None, agent: str | None = None, limit: int = 100
) -> tuple[SessionView, ...]:
    """The sessions of a thread. Without a thread, the sessions that the newest runs used, of one agent or of all."""
    most = check_limit(limit)

    def read(tx: Transaction) -> tuple[SessionView, ...]:
        of = None if agent is None else agent_named(tx, agent)
        if thread is not None:
            return sessions_of_thread(tx, thread_called(tx, thread).id, None if of is None else of.name, most)
        return recent_sessions(tx, None if of is None else of.id, most)

    return await services.read(read)


async def found_sessions(services: Services, actor: Actor, agent: str | None = None) -> tuple[FoundSessionView, ...]:
    """The sessions that the agents of all connected machines have, whether Clew knows them or not; with `agent`, those
    in that agent's home. An agent that cannot list its sessions is left out."""
    machines = {machine.id: machine for machine in services.connected()}
    of = None if agent is None else await services.read(lambda tx: agent_named(tx, agent))
    shown: list[FoundSessionView] = []
    for runtime in await services.read(runtime_records):
        machine = machines.get(runtime.machine)
        if machine is None or (of is not None and runtime.id != of.runtime):
            continue
        try:
            found = await machine.sessions(runtime.id)
        except Fault:
            continue
        natives = [each.cursor.native_id for each in found]
        known = await services.read(partial(threads_of_natives, runtime=runtime.id, natives=natives))
        shown += [_view(runtime, each, known.get(each.cursor.native_id)) for each in found]
    return tuple(shown)


async def adopt_session(services: Services, actor: Actor, ref: str, asked: Adopt) -> SessionView:
    """Continue a session that a person has with an agent already, in a thread. A lane without a workspace works in the
    session's directory; a lane with one keeps it, and the session's history is forked into it. A thread without an
    agent is given to that one."""
    found = await _find(services, asked)
    directory = found.directory
    if directory is None:
        raise NotNow(f"{asked.native_id} does not say in which directory it is.", "Open it once with its own program.")

    def write(tx: Transaction) -> SessionView:
        thread = lock_thread(tx, thread_called(tx, ref).id)
        must_be_open(thread, ref)
        agent, runtime = agent_named(tx, asked.agent), read_runtime(tx, asked.runtime)
        if runtime is None or runtime.provider != agent.provider:
            raise BadRequest(
                f"{asked.agent} is a {agent.provider} agent; that session is of another provider.",
                "Choose an agent of the session's provider.",
            )
        started = as_started(tx, agent.id, asked.runtime)
        session = NewSession(found.cursor, directory, None if started is None else started.account)
        adopted = adopt(tx, Adoption(agent.id, thread.id, runtime.id, session, found.turns or 0))
        _work_there(tx, thread, adopted.lane, directory, runtime)
        if thread.assignee is None:
            # Otherwise no message in the thread would wake the agent that has its conversation.
            give_thread(tx, thread.id, agent.id)
        return show_session(tx, adopted.session)

    adopted = await services.write(write)
    services.record(actor, f"adopted session {asked.native_id} in {adopted.thread}")
    return adopted


async def adopt_found(services: Services, actor: Actor, asked: AdoptFound) -> SessionView:
    """The same for a session that was found, in that thread or in a new chat."""
    adoption = Adopt(asked.agent, asked.runtime, asked.native_id)
    if asked.thread is not None:
        return await adopt_session(services, actor, asked.thread, adoption)
    # Looked for first: a session that is gone leaves no empty chat behind.
    found = await _find(services, adoption)
    chat = await open_chat(services, actor, NewChat(asked.agent, title=found.title[:_TITLE]))
    return await adopt_session(services, actor, chat.ref, adoption)


async def release_thread(services: Services, actor: Actor, ref: str) -> ReleasedView:
    """Let go of the sessions of a thread that are kept open between turns, so that a person can open them. Nothing is
    lost: the next wake opens them again."""

    def read(tx: Transaction) -> tuple[str, tuple[SessionView, ...], tuple[str, ...]]:
        thread = show_thread(tx, thread_called(tx, ref).id)
        runs = list_runs(tx, ThreadId(thread.id), None, None, _RUNS, None)
        live = tuple(run.id for run in runs if RunState(run.state) in LIVE)
        return thread.ref, sessions_of_thread(tx, thread.id, None, _RUNS), live

    name, sessions, live = await services.read(read)
    runtimes = {runtime.id: runtime for runtime in await services.read(runtime_records)}
    natives: dict[RuntimeId, list[NativeId]] = {}
    for session in sessions:
        natives.setdefault(RuntimeId(session.runtime), []).append(NativeId(session.native_id))
    freed: list[str] = []
    for id_, those in natives.items():
        runtime = runtimes.get(id_)
        machine = None if runtime is None else services.machines.get(runtime.machine)
        if machine is not None:
            freed += await machine.release(id_, those)
    services.record(actor, f"let go of {len(freed)} sessions of {name}")
    return ReleasedView(name, tuple(freed), live)


async def _find(services: Services, asked: Adopt) -> FoundSession:
    runtime = await services.read(lambda tx: read_runtime(tx, asked.runtime))
    there = () if runtime is None else await services.machine(runtime.machine).sessions(runtime.id)
    for each in there:
        if each.cursor.native_id == asked.native_id:
            return each
    if runtime is None:
        raise NoSuchRuntime(f"There is no runtime {asked.runtime!r}.", "See them with `clew runtimes`.")
    where = f"{runtime.provider} in {runtime.home}"
    raise NoSuchSession(f"{where} has no session {asked.native_id!r}.", "See them with `clew sessions --found`.")


def _work_there(
    tx: Transaction, thread: ThreadRecord, lane: LaneId, directory: Directory, runtime: RuntimeRecord
) -> None:
    if thread.project is not None or has_workspace(tx, thread.id, lane):
        return
    name = WorkspaceId(derived_id("ws", lane, runtime.machine, directory.path))
    remember_place(tx, lane, Workspace(name, WorkspaceKind.DIRECTORY, directory, None, runtime.machine))


def _view(runtime: RuntimeRecord, found: FoundSession, thread: str | None) -> FoundSessionView:
    return FoundSessionView(
        provider=runtime.provider,
        runtime=runtime.id,
        native_id=found.cursor.native_id,
        directory=None if found.directory is None else found.directory.path,
        title=found.title,
        updated_at=found.updated_at,
        turns=found.turns,
        thread=thread,
    )
