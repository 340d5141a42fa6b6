"""A mode put to a session: its rules are exactly those of the mode, however often they are put."""

import asyncio
from dataclasses import dataclass

from clew.kernel import PermissionMode
from clew.programs.faults import Refused, TooSlow
from clew.programs.tasks import gather_or_cancel
from clew.providers.opencode.api import Api
from clew.providers.opencode.http import Json
from clew.providers.opencode.rules import Action, Rules, mode_of, read, rules_for


@dataclass(frozen=True, slots=True)
class Agent:
    """OpenCode's own agent that answers the prompts, and the rules that its configuration gives it."""

    name: str
    rules: Rules

    def rules_for(self, mode: PermissionMode) -> Rules:
        return rules_for(mode, self.rules)

    def mode_of(self, rules: Rules) -> PermissionMode:
        return mode_of(self.rules, rules)


async def agent_in(api: Api, directory: str, wanted: str | None) -> Agent:
    """The agent that is asked for, or the one that is the default there."""
    try:
        config, agents = await gather_or_cancel(api.config(directory), api.agents(directory))
    except TooSlow as fault:
        # These are the first calls that it reads its configuration for.
        words = f"OpenCode did not read its configuration for {directory} in time."
        todo = "It may be fetching packages for it: see that the network is there, or give it more time."
        raise TooSlow(words, todo) from fault
    name = wanted or str(config.get("default_agent") or "build")
    for each in agents:
        if each.get("name") == name and each.get("mode") != "subagent":
            return Agent(name, read(each.get("permission")))
    raise Refused(f"OpenCode has no agent {name} for sessions in {directory}.", "Name another in the option `agent`.")


async def apply(api: Api, session: Json, mode: PermissionMode, agent: Agent) -> PermissionMode:
    """The mode that the session has then, by the rules that the server tells. Never a wider one than asked."""
    wanted, rules = agent.rules_for(mode), read(session.get("permission"))
    if rules != wanted:
        id_ = str(session["id"])
        if rules:
            await asyncio.shield(asyncio.ensure_future(_reset(api, id_, wanted, agent)))
        rules = read((await api.add_rules(id_, wanted[1:] if rules else wanted)).get("permission"))
    landed = agent.mode_of(rules)
    if rules != wanted or landed > mode:
        raise Refused(
            f"The mode is {mode}, and OpenCode keeps other rules for session {session['id']}.",
            "Look at its permissions in OpenCode; no prompt was sent.",
        )
    return landed


async def _reset(api: Api, id_: str, wanted: Rules, agent: Agent) -> None:
    """The session's rules become the first of the wanted ones, and the note that brought it about is removed."""
    first = wanted[0]
    note = await api.note(id_, agent.name, {first.permission: first.action is Action.ALLOW})
    await api.delete_message(id_, note)
