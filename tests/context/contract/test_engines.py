"""Every engine that ships keeps the promises of the port; engines that break one are caught."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import pytest

from clew.context import FallbackEngine, JournalEngine
from clew.context.prompt import prompt_for
from clew.kernel import Budget, ScopeKey
from clew.ports.context import ContextEngine, Entry, Prompt, PromptRequest, TurnEnded
from tests.context.contract import promises
from tests.context.contract.promises import PROMISES, Make, Promise


@pytest.mark.parametrize("promise", PROMISES, ids=lambda each: each.__name__)
@pytest.mark.parametrize(
    "make", [JournalEngine, lambda: FallbackEngine(JournalEngine(), JournalEngine())], ids=["journal", "fallback"]
)
def test_an_engine_keeps_its_promises(make: Make, promise: Promise) -> None:
    asyncio.run(promise(make))


class Remembering(JournalEngine):
    """It tells all it was ever handed. Its `key` is what it finds its state by."""

    def __init__(self) -> None:
        self.kept: dict[object, list[str]] = {}

    def key(self, scope: ScopeKey) -> object:
        return scope

    async def ingest(self, scope: ScopeKey, entries: Sequence[Entry]) -> None:
        kept = self.kept.setdefault(self.key(scope), [])
        kept += [each.body for each in entries if each.body not in kept]

    async def assemble(self, scope: ScopeKey, request: PromptRequest) -> Prompt:
        told = prompt_for(request)
        return replace(told, text="\n".join([told.text, *self.kept.get(self.key(scope), [])]))

    async def dispose(self, scope: ScopeKey) -> None:
        self.kept.pop(self.key(scope), None)


class ByLane(Remembering):
    def key(self, scope: ScopeKey) -> object:
        return scope.lane


class Hoarding(Remembering):
    async def dispose(self, scope: ScopeKey) -> None:
        pass


class Forgetful(Remembering):
    async def dispose(self, scope: ScopeKey) -> None:  # noqa: ARG002
        self.kept.clear()


class Doubling(Remembering):
    async def ingest(self, scope: ScopeKey, entries: Sequence[Entry]) -> None:
        self.kept.setdefault(scope, []).extend(each.body for each in entries)


class Counting(JournalEngine):
    """It counts a turn as often as it is told of it."""

    def __init__(self) -> None:
        self.turns = 0

    async def after_turn(self, scope: ScopeKey, turn: TurnEnded) -> None:  # noqa: ARG002
        self.turns += 1

    async def assemble(self, scope: ScopeKey, request: PromptRequest) -> Prompt:  # noqa: ARG002
        told = prompt_for(request)
        return replace(told, text=f"{told.text}\nTurns so far: {self.turns}.")


class Cutting(JournalEngine):
    async def assemble(self, scope: ScopeKey, request: PromptRequest) -> Prompt:  # noqa: ARG002
        told = prompt_for(replace(request, budget=Budget(10**9, 10**6)))
        return replace(told, text=told.text[: request.budget.total])


class Boundless(JournalEngine):
    async def assemble(self, scope: ScopeKey, request: PromptRequest) -> Prompt:  # noqa: ARG002
        return prompt_for(replace(request, budget=Budget(10**9, 10**6)))


class Mute(JournalEngine):
    async def assemble(self, scope: ScopeKey, request: PromptRequest) -> Prompt:  # noqa: ARG002
        return Prompt("Go on.", request.plan.catch_up.after)


@pytest.mark.parametrize(
    ("wrong", "broken"),
    [
        (ByLane, promises.a_scope_sees_nothing_of_another),
        (Hoarding, promises.a_scope_that_is_disposed_leaves_nothing),
        (Forgetful, promises.disposing_of_one_scope_leaves_the_others),
        (Doubling, promises.calls_may_be_repeated),
        (Counting, promises.calls_may_be_repeated),
        (Cutting, promises.a_budget_that_is_too_small_is_a_fault),
        (Boundless, promises.a_long_history_stays_within_the_budget),
        (Mute, promises.it_tells_what_was_not_seen_and_how_far_that_goes),
        (Mute, promises.what_is_asked_survives_compaction),
    ],
)
def test_an_engine_that_breaks_a_promise_is_caught(wrong: type[ContextEngine], broken: Promise) -> None:
    with pytest.raises(AssertionError):
        asyncio.run(broken(wrong))


@pytest.mark.parametrize("promise", [promises.a_scope_sees_nothing_of_another, promises.calls_may_be_repeated])
def test_an_engine_may_keep_state_by_scope(promise: Promise) -> None:
    asyncio.run(promise(Remembering))
