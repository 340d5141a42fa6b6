"""What every context engine promises. An engine of another package runs these checks with an engine of its own.

Each check gets a function that makes an engine with no state, and fails with an AssertionError.
"""

from collections.abc import Callable, Coroutine, Sequence
from dataclasses import replace
from typing import Any

from clew.kernel import Budget, EntrySeq, LaneId, LaneScope, PromptId, RunId, RunScope, ScopeKey
from clew.ports.context import ContextEngine, Entry, Prompt, PromptRequest, TurnEnded
from clew.ports.fault import Fault
from tests.context.kit import BOB, PERSON, entry, order, planned, request_of
from tests.kernel.kit import LANE, RUN, wake

Make = Callable[[], ContextEngine]
Promise = Callable[[Make], Coroutine[Any, Any, None]]

LANE_SCOPE = LaneScope(LANE)
TICK = RunScope(LANE, RUN)
NEXT_TICK = RunScope(LANE, RunId("run-next"))
OTHER_LANE = LaneScope(LaneId("ln_other"))
SECRET = "the thread leads to the left"
EARLIER = entry(4, BOB, SECRET)
ASKED = entry(5, PERSON, "Is it fixed?")


def request(*entries: Entry, budget: Budget = Budget(10_000, 500)) -> PromptRequest:  # noqa: B008 - a frozen value
    return replace(request_of(order(planned()), budget), entries=entries)


async def prompt(engine: ContextEngine, scope: ScopeKey, entries: Sequence[Entry] = (EARLIER, ASKED)) -> Prompt:
    await engine.bootstrap(scope)
    await engine.ingest(scope, entries)
    return await engine.assemble(scope, request(*entries))


def turn(number: int = 1) -> TurnEnded:
    return TurnEnded(PromptId(f"prompt-{number}"), RUN, EntrySeq(5), completed=True, tokens=100)


async def it_has_a_name(make: Make) -> None:
    assert make().name


async def it_tells_what_was_not_seen_and_how_far_that_goes(make: Make) -> None:
    told = await prompt(make(), LANE_SCOPE)
    assert SECRET in told.text
    assert "Is it fixed?" in told.text
    assert told.told == 5


async def a_budget_that_is_too_small_is_a_fault(make: Make) -> None:
    """What is to be acted on is told whole or not at all."""
    long = entry(5, PERSON, "x" * 40_000)
    engine = make()
    await engine.bootstrap(LANE_SCOPE)
    await engine.ingest(LANE_SCOPE, [long])
    try:
        told = await engine.assemble(LANE_SCOPE, request(long, budget=Budget(1_000, 100)))
    except Fault:
        return
    raise AssertionError(f"a prompt of {len(told.text)} characters for a budget of 1000 tokens")


async def a_long_history_stays_within_the_budget(make: Make) -> None:
    history = [entry(number, PERSON, f"message {number} " + "x" * 400) for number in range(1, 200)]
    asked = entry(200, PERSON, "What next?")
    plan = planned(wake(1, entries=(EntrySeq(200),)), seen=None, head=200)
    of = replace(request_of(order(plan), Budget(2_000, 300)), entries=[*history, asked])
    engine = make()
    await engine.bootstrap(LANE_SCOPE)
    await engine.ingest(LANE_SCOPE, of.entries)
    told = await engine.assemble(LANE_SCOPE, of)
    assert "What next?" in told.text
    # A token is not less than three characters of this text; what frames the entries comes on top.
    assert len(told.text) < 3 * 2_000 + 6_000
    assert told.words, "that something was shortened is said"


async def calls_may_be_repeated(make: Make) -> None:
    once = make()
    await once.after_turn(LANE_SCOPE, turn())
    first = await prompt(once, LANE_SCOPE)
    twice = make()
    for _ in range(2):
        await twice.bootstrap(LANE_SCOPE)
        await twice.ingest(LANE_SCOPE, [EARLIER])
        await twice.ingest(LANE_SCOPE, [EARLIER, ASKED])
        await twice.after_turn(LANE_SCOPE, turn())
        await twice.maintain(LANE_SCOPE)
    assert await prompt(twice, LANE_SCOPE) == first


async def a_scope_sees_nothing_of_another(make: Make) -> None:
    """Neither of the lane's, nor of an earlier isolated run, nor of another lane; also not after compaction."""
    for other in (LANE_SCOPE, TICK, OTHER_LANE):
        engine = make()
        await prompt(engine, other)
        await engine.after_turn(other, turn())
        await engine.compact(other, Budget(1_000, 100))
        await engine.maintain(other)
        assert SECRET not in (await prompt(engine, NEXT_TICK, [ASKED])).text, other


async def a_scope_that_is_disposed_leaves_nothing(make: Make) -> None:
    engine = make()
    await engine.dispose(TICK)
    await prompt(engine, TICK)
    await engine.after_turn(TICK, turn())
    await engine.dispose(TICK)
    await engine.dispose(TICK)
    assert await prompt(engine, TICK, [ASKED]) == await prompt(make(), TICK, [ASKED])


async def disposing_of_one_scope_leaves_the_others(make: Make) -> None:
    engine, untouched = make(), make()
    for each in (engine, untouched):
        await prompt(each, LANE_SCOPE, [EARLIER])
    await prompt(engine, TICK)
    await engine.dispose(TICK)
    assert await prompt(engine, LANE_SCOPE, [ASKED]) == await prompt(untouched, LANE_SCOPE, [ASKED])


async def what_is_asked_survives_compaction(make: Make) -> None:
    engine = make()
    await prompt(engine, LANE_SCOPE, [EARLIER])
    done = await engine.compact(LANE_SCOPE, Budget(1_000, 100))
    assert done.through <= 4
    assert "Is it fixed?" in (await prompt(engine, LANE_SCOPE, [ASKED])).text


PROMISES: tuple[Promise, ...] = (
    it_has_a_name,
    it_tells_what_was_not_seen_and_how_far_that_goes,
    a_budget_that_is_too_small_is_a_fault,
    a_long_history_stays_within_the_budget,
    calls_may_be_repeated,
    a_scope_sees_nothing_of_another,
    a_scope_that_is_disposed_leaves_nothing,
    disposing_of_one_scope_leaves_the_others,
    what_is_asked_survives_compaction,
)
