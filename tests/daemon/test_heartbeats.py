"""Heartbeats: isolated ones know nothing of one another; replies take the same route all the same."""

from dataclasses import replace
from pathlib import Path

import pytest

from clew.kernel import Origin, OriginKind, RouteKey, RouteKind, WakeReason
from clew.store.schema.tables import runs, wakes
from tests.daemon.kit import QUICK, run, world

ROUTE = RouteKey(RouteKind.CHANNEL, "#maze")


@pytest.mark.case("H01", "H02")
def test_isolated_ticks_have_one_route_and_scopes_of_their_own(tmp_path: Path) -> None:
    async def scene() -> None:
        async with world(tmp_path, replace(QUICK, warm=0)) as there:
            await there.add_agent()
            for _ in range(3):
                tick = there.wake(
                    "ada", reason=WakeReason.TIMER, origin=Origin(OriginKind.TIMER), isolated=True, route=ROUTE
                )
                assert (await there.served(tick)).state == "succeeded"
            assert len(there.loom.kept) == 3
            prompts = there.loom.prompts
            assert len(prompts) == 3
            assert all(text.startswith("This is a heartbeat") and "reply" not in text for text in prompts)
            assert len({row.scope_run for row in there.rows(runs)}) == 3
            assert len({row.route for row in there.rows(wakes)}) == 1
            assert [outcome for row in there.runs() for outcome, _ in there.outcomes(row.id)] == ["blank"] * 3

    run(scene())


@pytest.mark.case("H05")
def test_shared_ticks_go_on_in_one_session(tmp_path: Path) -> None:
    async def scene() -> None:
        async with world(tmp_path) as there:
            await there.add_agent()
            for _ in range(3):
                tick = there.wake("ada", reason=WakeReason.TIMER, origin=Origin(OriginKind.TIMER))
                await there.served(tick)
            (kept,) = there.loom.kept.values()
            assert len(kept.prompts) == 3

    run(scene())
