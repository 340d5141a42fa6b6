"""Logins of agents: which one an agent has, and whether a first prompt is answered with it."""

from clew.control.actor import Actor
from clew.control.services import Services
from clew.kernel import PermissionMode
from clew.ports.logins import Logins, with_login
from clew.protocol.checks import LoginView, TrialView
from clew.protocol.machine import Machine
from clew.store.engine.database import Transaction
from clew.store.queries.agents import AgentRecord, show_agent
from clew.store.queries.names import agent_named
from clew.store.queries.runtimes import read_runtime


async def show_login(services: Services, actor: Actor, name: str) -> LoginView:
    """Reads the files of its home; starts nothing."""
    agent, machine = await _where(services, name)
    known = await machine.logins(agent.program)
    return LoginView(name, "" if known is None else known.used, login_words(known, name))


async def try_agent(services: Services, actor: Actor, name: str) -> TrialView:
    """One prompt in a session and a directory of its own: no thread has it, and no run waits for it."""
    agent, machine = await _where(services, name)
    model = await services.read(lambda tx: show_agent(tx, agent.id).model)
    tried = await machine.try_prompt(agent.program, model, PermissionMode(agent.mode))
    services.record(actor, f"tried agent {name}")
    words = tried.failed or tried.reply
    known = await machine.logins(agent.program) if tried.login else None
    if known is not None:
        words = with_login(words, known, name)
    return TrialView(name, not tried.failed, words, tried.seconds, tried.mode)


def login_words(known: Logins | None, agent: str) -> str:
    """The login an agent has, or how it gets one; empty where nothing is known of its program's logins."""
    if known is None:
        return ""
    if known.used:
        return f"It asks its model with {known.used}."
    return f"No login is known for {agent}. {known.remedy(agent)}"


async def _where(services: Services, name: str) -> tuple[AgentRecord, Machine]:
    def read(tx: Transaction) -> tuple[AgentRecord, str | None]:
        agent = agent_named(tx, name)
        runtime = None if agent.runtime is None else read_runtime(tx, agent.runtime)
        return agent, None if runtime is None else runtime.machine

    agent, machine = await services.read(read)
    return agent, services.remaining_machine(machine)
