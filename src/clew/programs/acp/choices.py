"""The agent's own mode and model of a session, set in either of the two ways that the protocol has had."""

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
    """`option` is the id of the configuration option; None if the agent has the older call for it."""

    matter: Matter
    current: str | None = None
    offered: tuple[str, ...] = ()
    option: str | None = None

    async def choose(self, connection: Connection, session: str, value: str) -> "Choice":
        """Set it. The value in the agent's answer counts, even if it is another than was asked."""
        if self.option is not None:
            arguments = {"sessionId": session, "configId": self.option, "value": value}
            answer = await connection.must("session/set_config_option", arguments)
            return replace(self, current=choice(self.matter, answer).current or value)
        key = "modeId" if self.matter is Matter.MODE else "modelId"
        await connection.must(f"session/set_{self.matter}", {"sessionId": session, key: value})
        return replace(self, current=value)


def choice(matter: Matter, answer: Mapping[str, Any]) -> Choice:
    """The choice in the answer to an opening; without offers if the answer names none."""
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
    """The values of a list, or of all its groups."""
    found: list[str] = []
    for each in options if isinstance(options, list) else ():
        if isinstance(each, Mapping):
            found += _values(each.get("options")) if "options" in each else [str(each.get("value"))]
    return tuple(found)


class OwnMode:
    """The agent's own mode: set by Clew, and followed when the agent changes it by itself."""

    def __init__(self, connection: Connection, session: NativeId, agent: AcpAgent, modes: Choice) -> None:
        self._connection, self._session, self._agent = connection, session, agent
        self._modes = modes
        # The mode for rules that name none.
        self._first = modes.current
        self._said: list[str] = []
        """The modes it reported since one was last set."""

    def update(self, update: Mapping[str, Any]) -> bool:
        """Whether the agent reports its mode by this message."""
        match update.get("sessionUpdate"):
            case "current_mode_update":
                said = update.get("currentModeId")
            case "config_option_update":
                said = choice(Matter.MODE, update).current
            case _:
                return False
        if not isinstance(said, str):
            return False
        self._modes = replace(self._modes, current=said)
        self._said.append(said)
        return True

    def is_wider_than(self, mode: PermissionMode) -> bool:
        """Whether it may do more now than in that mode. An unknown mode counts as wider."""
        if _is_everything(self._agent.modes[mode]):
            return False
        narrower = [rule for each, rule in self._agent.modes.items() if each <= mode]
        return self._modes.current not in [self._meant(rule) for rule in narrower]

    async def apply(self, mode: PermissionMode) -> None:
        """Set the agent's mode for that mode of Clew, or raise: it gets no prompt in another."""
        rule = self._agent.modes[mode]
        wanted = self._meant(rule)
        if self._modes.current == wanted or (rule.id is None and _is_everything(rule)):
            return
        if wanted is None:
            raise Refused(f"The agent changed its mode to {self._modes.current} by itself.", "Open the session again.")
        self._said.clear()
        chosen = await self._modes.choose(self._connection, self._session, wanted)
        # What the agent reports meanwhile counts more than that it accepted the call.
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
