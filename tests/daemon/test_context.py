"""The context engine as a daemon calls it: by scope, in order, and never in the way of a run's end."""

from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from clew.context import JournalEngine
from clew.kernel import LaneScope, Origin, OriginKind, RunScope, ScopeKey, WakeReason
from clew.ports.context import Entry, Prompt, PromptRequest, TurnEnded
from clew.ports.events import Done, Ending, ErrorCode, Event, Failed
from tests.daemon.kit import run, until, world
from tests.daemon.scripted import Session


class Watched(JournalEngine):
    """It writes down each call with its scope."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, ScopeKey]] = []
        self.entries: list[list[str]] = []
        self.turns: list[TurnEnded] = []
        self.fails: set[str] = set()

    def note(self, call: str, scope: ScopeKey) -> None:
        self.calls.append((call, scope))
        if call in self.fails:
            raise RuntimeError(f"{call} is broken")

    async def bootstrap(self, scope: ScopeKey) -> None:
        self.note("bootstrap", scope)

    async def ingest(self, scope: ScopeKey, entries: Sequence[Entry]) -> None:
        self.note("ingest", scope)
        self.entries.append([each.body for each in entries])

    async def assemble(self, scope: ScopeKey, request: PromptRequest) -> Prompt:
        self.note("assemble", scope)
        return await super().assemble(scope, request)

    async def after_turn(self, scope: ScopeKey, turn: TurnEnded) -> None:
        self.turns.append(turn)
        self.note("after_turn", scope)

    async def dispose(self, scope: ScopeKey) -> None:
        self.note("dispose", scope)


TURN = ["bootstrap", "ingest", "assemble", "after_turn"]
TICK: dict[str, Any] = {"reason": WakeReason.TIMER, "origin": Origin(OriginKind.TIMER), "isolated": True}


async def overloaded(session: Session, prompt: str) -> AsyncIterator[Event]:
    session.take(prompt)
    yield Failed(ErrorCode.MODEL_FAILED, "overloaded", retryable=True)
    yield Done(Ending.FAILED)


@pytest.mark.case("X01")
def test_each_turn_of_a_lane_is_called_under_the_lanes_scope(tmp_path: Path) -> None:
    async def scene() -> None:
        engine = Watched()
        async with world(tmp_path, context=engine) as there:
            await there.add_agent()
            there.add_thread()
            first, second = await there.tell("one"), await there.tell("two")
            scope = LaneScope(first.lane_id)
            assert engine.calls == [(call, scope) for call in (*TURN, *TURN)]
            assert engine.entries == [["one"], ["two"]]
            assert [(turn.run, turn.completed) for turn in engine.turns] == [(first.id, True), (second.id, True)]
            assert [turn.told for turn in engine.turns] == [1, 3]
            assert len({turn.key for turn in engine.turns}) == 2
            assert {turn.key for turn in engine.turns} == set(next(iter(there.loom.kept.values())).holds)

    run(scene())


@pytest.mark.case("H02")
def test_an_isolated_run_has_a_scope_of_its_own_that_ends_with_it(tmp_path: Path) -> None:
    async def scene() -> None:
        engine = Watched()
        async with world(tmp_path, context=engine) as there:
            await there.add_agent()
            ticks = [await there.served(there.wake("ada", **TICK)) for _ in range(2)]
        scopes = [RunScope(tick.lane_id, tick.id) for tick in ticks]
        assert engine.calls == [(call, scope) for scope in scopes for call in (*TURN, "dispose")]

    run(scene())


def test_an_isolated_run_that_is_queued_again_keeps_its_scope(tmp_path: Path) -> None:
    async def scene() -> None:
        engine = Watched()
        async with world(tmp_path, context=engine) as there:
            await there.add_agent()
            (there.place / "homes").write_text("in the way")
            there.wake("ada", **TICK)
            await until(
                lambda: there.runs()[0].attempt == 1 and there.runs()[0].state == "queued", "it is queued again"
            )
            await until(lambda: there.daemon.live == 0, "it is over here")
        assert engine.calls == []

    run(scene())


def test_a_turn_that_failed_is_told_as_such(tmp_path: Path) -> None:
    async def scene() -> None:
        engine = Watched()
        async with world(tmp_path, context=engine) as there:
            await there.add_agent()
            there.add_thread()
            there.loom.turns.append(overloaded)
            await there.tell("one")
        assert [turn.completed for turn in engine.turns] == [False, True]

    run(scene())


@pytest.mark.parametrize("call", ["after_turn", "dispose"])
def test_an_engine_that_fails_after_the_turn_changes_no_end(tmp_path: Path, call: str) -> None:
    async def scene() -> None:
        engine = Watched()
        engine.fails.add(call)
        async with world(tmp_path, context=engine) as there:
            await there.add_agent()
            row = await there.served(there.wake("ada", **TICK))
            assert row.state == "succeeded"
        assert call in [each for each, _ in engine.calls]

    run(scene())


@pytest.mark.parametrize("call", ["bootstrap", "ingest", "assemble"])
def test_an_engine_that_fails_before_the_turn_sends_no_prompt(tmp_path: Path, call: str) -> None:
    async def scene() -> None:
        engine = Watched()
        engine.fails.add(call)
        async with world(tmp_path, context=engine) as there:
            await there.add_agent()
            there.add_thread()
            there.say("one")
            await until(lambda: there.runs()[0].state == "failed", "it fails")
            assert f"{call} is broken" in there.runs()[0].words
            assert there.loom.prompts == []

    run(scene())
