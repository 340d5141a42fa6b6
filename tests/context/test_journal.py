"""A context engine that fails: another takes over or the run is held, and the words say which."""

import asyncio
from pathlib import Path

import pytest

from clew.context import EngineFailed, FallbackEngine, JournalEngine, engine_named
from clew.kernel import Budget, EnginePolicy, EntrySeq, LaneScope, ScopeKey
from clew.ports.context import EngineSettings, Prompt, PromptRequest
from clew.ports.plugins import Engines, UnknownPlugin, find_engines
from tests.context.kit import PERSON, entry, order, planned, request_of
from tests.kernel.kit import LANE, wake

SCOPE = LaneScope(LANE)


class Broken(JournalEngine):
    name = "broken"

    async def assemble(self, scope: ScopeKey, request: PromptRequest) -> Prompt:  # noqa: ARG002
        raise RuntimeError("no model")


def long_request() -> PromptRequest:
    entries = [entry(number, PERSON, f"message {number} " + "x" * 400) for number in range(1, 21)]
    plan = planned(wake(1, entries=(EntrySeq(20),)), seen=None, head=20)
    return request_of(order(plan, *entries), Budget(1_200, 300))


@pytest.mark.case("X03")
def test_an_engine_that_fails_is_replaced_and_that_is_said() -> None:
    told = asyncio.run(FallbackEngine(Broken(), JournalEngine()).assemble(SCOPE, long_request()))
    assert "The context engine broken failed, and journal takes over as configured: no model" in told.words
    assert "Earlier in this thread, in short:" in told.text


@pytest.mark.case("X03")
def test_an_engine_that_fails_holds_the_run_where_it_is_to() -> None:
    with pytest.raises(EngineFailed, match="the run is held as configured: no model"):
        asyncio.run(FallbackEngine(Broken(), JournalEngine(), EnginePolicy.HOLD).assemble(SCOPE, long_request()))


@pytest.mark.case("X03")
def test_an_engine_is_not_its_own_fallback() -> None:
    with pytest.raises(EngineFailed, match="none is left to take over: no model"):
        asyncio.run(FallbackEngine(Broken(), Broken()).assemble(SCOPE, long_request()))


def test_any_engine_but_the_journal_has_the_journal_behind_it(tmp_path: Path) -> None:
    engines: Engines = Engines(
        "context engine", "assemble", {"broken": lambda _: Broken(), "journal": lambda _: JournalEngine()}, {}
    )
    settings = EngineSettings(tmp_path)
    told = asyncio.run(engine_named("broken", engines, settings).assemble(SCOPE, long_request()))
    assert "journal takes over" in told.words
    assert type(engine_named("journal", engines, settings)) is JournalEngine


def test_the_journal_is_found_by_its_entry_point(tmp_path: Path) -> None:
    assert engine_named("journal", find_engines(), EngineSettings(tmp_path)).name == "journal"
    with pytest.raises(UnknownPlugin, match=r"There is no context engine 'nobody'.*journal") as refused:
        engine_named("nobody", find_engines(), EngineSettings(tmp_path))
    assert refused.value.code == "context-engine:unknown"
