"""The engine `journal`, which makes each prompt from the order's entries and keeps no state; and the fallback to it.

If another engine fails, `journal` makes the prompt, or the run is held; either way the prompt or the hold says so.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from clew.context.prompt import prompt_for
from clew.kernel import Budget, EnginePolicy, ScopeKey, on_engine_failure
from clew.ports.context import Compacted, ContextEngine, EngineSettings, Entry, Prompt, PromptRequest, TurnEnded
from clew.ports.fault import Fault
from clew.ports.plugins import Engines


class JournalEngine:
    """The server stores how far each session has seen, and its orders contain the rest. So most calls do nothing."""

    name = "journal"

    async def bootstrap(self, scope: ScopeKey) -> None:
        """Nothing: there is no state to prepare."""

    async def ingest(self, scope: ScopeKey, entries: Sequence[Entry]) -> None:
        """Nothing: the entries come with each request."""

    async def assemble(self, scope: ScopeKey, request: PromptRequest) -> Prompt:  # noqa: ARG002 - no state, so no key
        return prompt_for(request)

    async def after_turn(self, scope: ScopeKey, turn: TurnEnded) -> None:
        """Nothing: the server records how far the session has seen."""

    async def compact(self, scope: ScopeKey, budget: Budget) -> Compacted:  # noqa: ARG002 - no state, so no key
        """Nothing: each prompt is cut to its own budget."""
        return Compacted()

    async def maintain(self, scope: ScopeKey) -> None:
        """Nothing: there is no state to maintain."""

    async def dispose(self, scope: ScopeKey) -> None:
        """Nothing: there is no state to remove."""


def make(settings: EngineSettings) -> JournalEngine:  # noqa: ARG001 - it writes no files
    return JournalEngine()


class EngineFailed(Fault):
    code = "context:engine-failed"


@dataclass(frozen=True, slots=True)
class FallbackEngine:
    """`engine`, with `fallback` for a prompt that it fails to make. `fallback` must need no state: it is called for
    that prompt only."""

    engine: ContextEngine
    fallback: ContextEngine
    policy: EnginePolicy = EnginePolicy.FALL_BACK

    @property
    def name(self) -> str:
        return self.engine.name

    async def assemble(self, scope: ScopeKey, request: PromptRequest) -> Prompt:
        try:
            return await self.engine.assemble(scope, request)
        except Exception as fault:
            failed = on_engine_failure(self.policy, self.name, str(fault) or repr(fault), self.fallback.name)
            if failed.fallback is None:
                raise EngineFailed(failed.words, "Choose another engine, or allow another to take over.") from fault
        prompt = await self.fallback.assemble(scope, request)
        return replace(prompt, words=f"{prompt.words} {failed.words}".strip())

    async def bootstrap(self, scope: ScopeKey) -> None:
        await self.engine.bootstrap(scope)

    async def ingest(self, scope: ScopeKey, entries: Sequence[Entry]) -> None:
        await self.engine.ingest(scope, entries)

    async def after_turn(self, scope: ScopeKey, turn: TurnEnded) -> None:
        await self.engine.after_turn(scope, turn)

    async def compact(self, scope: ScopeKey, budget: Budget) -> Compacted:
        return await self.engine.compact(scope, budget)

    async def maintain(self, scope: ScopeKey) -> None:
        await self.engine.maintain(scope)

    async def dispose(self, scope: ScopeKey) -> None:
        await self.engine.dispose(scope)


def engine_named(name: str, engines: Engines, settings: EngineSettings) -> ContextEngine:
    """The engine of that name; every other engine than `journal` falls back to `journal`."""
    engine = engines.make(name, settings)
    return engine if name == JournalEngine.name else FallbackEngine(engine, JournalEngine())
