"""Context engines: what makes a brief of the entries that are not told word for word."""

from collections.abc import Sequence
from typing import Protocol

from clew.context.measure import tokens_of
from clew.kernel import AgentId, EnginePolicy, on_engine_failure, voice
from clew.ports.fault import Fault
from clew.protocol.orders import Entry

_LONGEST = 200
"""Characters of an entry that a listing shows."""


class EngineFailed(Fault):
    code = "context:engine-failed"


class ContextEngine(Protocol):
    """One that keeps more than a listing, or asks a model, takes this place. It is handed its scope's entries alone."""

    @property
    def name(self) -> str: ...

    async def brief(self, entries: Sequence[Entry], tokens: int, reader: AgentId) -> str:
        """These entries in at most so many tokens."""
        ...


class Listing:
    """A line for each entry, and for the oldest of them, where there is no room, their number."""

    name = "listing"

    async def brief(self, entries: Sequence[Entry], tokens: int, reader: AgentId) -> str:
        lines: list[str] = []
        # The line that counts what is left out needs room, too.
        left = tokens - 20
        for entry in reversed(entries):
            line = _line(entry, reader)
            left -= tokens_of(line)
            if left < 0:
                break
            lines.append(line)
        if len(lines) < len(entries):
            lines.append(f"({len(entries) - len(lines)} earlier entries are left out.)")
        return "\n".join(reversed(lines))


async def brief_by(
    engine: ContextEngine,
    entries: Sequence[Entry],
    tokens: int,
    reader: AgentId,
    policy: EnginePolicy = EnginePolicy.FALL_BACK,
) -> tuple[str, str]:
    """The brief, and what is to be said of an engine that failed: never nothing."""
    try:
        return await engine.brief(entries, tokens, reader), ""
    except Exception as fault:
        failed = on_engine_failure(policy, engine.name, str(fault) or repr(fault), Listing.name)
        if failed.fallback is None:
            raise EngineFailed(failed.words, "Choose another engine, or allow that another takes over.") from fault
    return await Listing().brief(entries, tokens, reader), failed.words


def _line(entry: Entry, reader: AgentId) -> str:
    text = " ".join(entry.body.split())
    short = text if len(text) <= _LONGEST else f"{text[:_LONGEST]} …"
    return f"[{entry.seq}] {voice(entry.facts, reader).words} {short}"
