"""The engine `journal`: each prompt is made from the entries that the order brings, and no state is kept."""

from collections.abc import Sequence

from clew.context.prompt import prompt_for
from clew.kernel import Budget, ScopeKey
from clew.ports.context import Compacted, EngineSettings, Entry, Prompt, PromptRequest, TurnEnded


class JournalEngine:
    """The server keeps how far each session has seen, and its orders bring the rest. So most calls do nothing."""

    name = "journal"

    async def bootstrap(self, scope: ScopeKey) -> None:
        """Nothing: there is no state to prepare."""

    async def ingest(self, scope: ScopeKey, entries: Sequence[Entry]) -> None:
        """Nothing: the entries come with each request."""

    async def assemble(self, scope: ScopeKey, request: PromptRequest) -> Prompt:  # noqa: ARG002 - no state, so no key
        return prompt_for(request)

    async def after_turn(self, scope: ScopeKey, turn: TurnEnded) -> None:
        """Nothing: the server raises how far the session has seen."""

    async def compact(self, scope: ScopeKey, budget: Budget) -> Compacted:  # noqa: ARG002 - no state, so no key
        """Nothing: each prompt is cut to its own budget."""
        return Compacted()

    async def maintain(self, scope: ScopeKey) -> None:
        """Nothing: there is no state to look after."""

    async def dispose(self, scope: ScopeKey) -> None:
        """Nothing: there is no state to remove."""


def make(settings: EngineSettings) -> JournalEngine:  # noqa: ARG001 - it writes no files
    return JournalEngine()
