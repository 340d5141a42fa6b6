"""Logins: how an agent's program proves to its model who asks. Names and places only, never a secret value."""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable


@dataclass(frozen=True, slots=True)
class Logins:
    """`used` is what the program will ask its model with: the name of a variable, or the place of a login; empty where
    none is known. `keys` are the variables it takes a key from, and `command` is how a person logs in to this home.
    `storing` is set for a program that takes no key from its environment: the command that stores one in its home.
    `there` are the keys that the daemon's own environment has: an agent gets none of them unless it is given one."""

    used: str = ""
    keys: tuple[str, ...] = ()
    command: str = ""
    storing: str = ""
    there: tuple[str, ...] = ()

    def remedy(self, agent: str, giving: str = "") -> str:
        """What gives the agent a login. `giving` is the command that passes a variable on; default: to this agent."""
        ways = [f"log in with `{self.command}`"] if self.command else []
        if self.storing:
            ways.append(f"store a key with `{self.storing}`")
        elif self.keys:
            ways.append(
                f"pass a key on with `{giving or f'clew agent edit {agent} --add-env'} NAME` ({_either(self.keys)})"
            )
        if not ways:
            return f"Clew does not know which login its program takes; try it with `clew agent test {agent}`."
        words = " or ".join(ways)
        said = f"{words[:1].upper()}{words[1:]}."
        if self.there:
            are = "is" if len(self.there) == 1 else "are"
            said += f" {_all(self.there)} {are} set for the server, which passes on only what an agent is given."
        return said


def with_login(words: str, logins: Logins, agent: str) -> str:
    """Words of a refused login, with the login that was used, or with how to give the agent one."""
    sentence = words if words.endswith((".", "!", "?")) else f"{words}."
    if logins.used:
        return f"{sentence} It asked with {logins.used}."
    return f"{sentence} No login is known for {agent}. {logins.remedy(agent)}"


@runtime_checkable
class KnowsItsLogins(Protocol):
    """Also implemented by a provider that knows which keys and logins its program takes."""

    async def logins(self) -> Logins:
        """Reads files, and starts nothing."""
        ...


def _either(names: tuple[str, ...]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"


def _all(names: tuple[str, ...]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
