"""What an agent lets its client choose for a session, a mode or a model, in either way the protocol has had for it."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from clew.programs.acp.connection import Connection


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
