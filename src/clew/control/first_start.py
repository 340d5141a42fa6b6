"""The first start: from what is installed to a chat with it, in one step."""

from clew.control.actor import Actor
from clew.control.agents import add_agent, list_agents
from clew.control.services import Services
from clew.control.threads import open_chat
from clew.protocol.requests import Begin, NewAgent, NewChat
from clew.protocol.views import ThreadView


async def begin(services: Services, actor: Actor, asked: Begin) -> ThreadView:
    """Open a chat with an agent of that provider; where there is none, one is added under the provider's name."""
    known = [agent for agent in await list_agents(services, actor) if agent.provider == asked.provider]
    working = [agent for agent in known if agent.state == "active"] or known
    agent = working[0] if working else await add_agent(services, actor, NewAgent(asked.provider, asked.provider))
    return await open_chat(services, actor, NewChat(agent.name))
