"""Which mode of its own an agent stands in: set by us, and told by it when it changed that itself."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from clew.kernel import NativeId, PermissionMode
from clew.programs.acp.agent import EVERYTHING, AcpAgent, ModeRule
from clew.programs.acp.choices import Choice, Matter, choice
from clew.programs.acp.connection import Connection
from clew.programs.faults import Refused


class Standing:
    def __init__(self, connection: Connection, session: NativeId, agent: AcpAgent, modes: Choice) -> None:
        self._connection, self._session, self._agent = connection, session, agent
        self._modes = modes
        # Where a rule names none, it is the one that the agent began with.
        self._first = modes.current
        self._said: list[str] = []

    def hear(self, update: Mapping[str, Any]) -> str | None:
        """The mode that the agent says it has now; None where it speaks of something else."""
        match update.get("sessionUpdate"):
            case "current_mode_update":
                said = update.get("currentModeId")
            case "config_option_update":
                said = choice(Matter.MODE, update).current
            case _:
                return None
        if not isinstance(said, str):
            return None
        self._modes = replace(self._modes, current=said)
        self._said = [*self._said[-1:], said]
        return said

    def is_astray(self, mode: PermissionMode) -> bool:
        """Whether it may do more now than in that mode; of one that is not known it is assumed."""
        if _is_everything(self._agent.modes[mode]):
            return False
        narrower = [rule for each, rule in self._agent.modes.items() if each <= mode]
        return self._modes.current not in [self._meant(rule) for rule in narrower]

    async def apply(self, mode: PermissionMode) -> None:
        """Put the agent into its mode for that one of ours, or raise; nothing is said to it in another."""
        rule = self._agent.modes[mode]
        wanted = self._meant(rule)
        if self._modes.current == wanted or (rule.id is None and _is_everything(rule)):
            return
        if wanted is None:
            raise Refused(f"The agent changed to a mode of its own, {self._modes.current}.", "Open the session again.")
        self._said.clear()
        chosen = await self._modes.choose(self._connection, self._session, wanted)
        # What it says of itself meanwhile counts for more than that it took the call.
        self._modes = replace(chosen, current=self._said[-1]) if self._said else chosen
        if self._modes.current != wanted:
            raise Refused(
                f"The agent has the mode {self._modes.current} instead of {wanted}.",
                "Nothing was sent; look at its settings.",
            )

    def _meant(self, rule: ModeRule) -> str | None:
        return self._first if rule.id is None else rule.id


def _is_everything(rule: ModeRule) -> bool:
    return rule.allows >= EVERYTHING
