"""What an agent lets its client choose for a session, a mode or a model, in either way the protocol has had for it."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from clew.kernel import NativeId, PermissionMode
from clew.programs.acp.agent import EVERYTHING, AcpAgent, ModeRule
from clew.programs.acp.connection import Connection
from clew.programs.faults import Refused


class Matter(StrEnum):
    MODE = "mode"
    MODEL = "model"


@dataclass(frozen=True, slots=True)
class Choice:
    """`option` is the id of the configuration option; None where the agent has the older call for it."""

    matter: Matter
    current: str | None = None
    offered: tuple[str, ...] = ()
    option: str | None = None

    async def choose(self, connection: Connection, session: str, value: str) -> "Choice":
        """Set it, and tell what it is now. An agent that tells of another value than it was given is believed."""
        if self.option is not None:
            arguments = {"sessionId": session, "configId": self.option, "value": value}
            told = await connection.must("session/set_config_option", arguments)
            return replace(self, current=choice(self.matter, told).current or value)
        key = "modeId" if self.matter is Matter.MODE else "modelId"
        await connection.must(f"session/set_{self.matter}", {"sessionId": session, key: value})
        return replace(self, current=value)


def choice(matter: Matter, answer: Mapping[str, Any]) -> Choice:
    """From the answer by which a session was opened; nothing is offered where it does not say."""
    for option in answer.get("configOptions") or ():
        if isinstance(option, Mapping) and option.get("category") == matter and option.get("type") == "select":
            return Choice(matter, option.get("currentValue"), _values(option.get("options")), option.get("id"))
    plural, single = ("modes", "Mode") if matter is Matter.MODE else ("models", "Model")
    state = answer.get(plural)
    if not isinstance(state, Mapping):
        return Choice(matter)
    key = "id" if matter is Matter.MODE else "modelId"
    offered = [each.get(key) for each in state.get(f"available{single}s") or () if isinstance(each, Mapping)]
    return Choice(matter, state.get(f"current{single}Id"), tuple(str(each) for each in offered if each))


def _values(options: object) -> tuple[str, ...]:
    """The values of a list, or of the lists in its groups."""
    found: list[str] = []
    for each in options if isinstance(options, list) else ():
        if isinstance(each, Mapping):
            found += _values(each.get("options")) if "options" in each else [str(each.get("value"))]
    return tuple(found)


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
