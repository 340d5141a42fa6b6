"""A run from its order to its end."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from clew.ports.events import Done, Ending, Event, Text
from tests.daemon.kit import TRUE, run, until, world
from tests.daemon.scripted import Session


def test_a_command_is_served(tmp_path: Path) -> None:
    async def scene() -> None:
        async with world(tmp_path) as there:
            await there.add_agent("ada", TRUE)
            there.add_thread()
            row = await there.tell("hello")
            assert row.state == "succeeded"
            assert there.steps(row.id) == ["workspace", "open", "verify"]

    run(scene())


@pytest.mark.case("X01", "C02", "C31")
def test_a_session_is_told_what_it_has_not_seen(tmp_path: Path) -> None:
    async def scene() -> None:
        async with world(tmp_path) as there:
            await there.add_agent()
            there.add_thread()
            first = await there.tell("one")
            second = await there.tell("two")
            (kept,) = there.loom.kept.values()
            assert kept.prompts == ["one", "two"]
            assert [there.outcomes(first.id)[-1][0], there.outcomes(second.id)[-1][0]] == ["blank", "resume"]
            assert [row.claim for row in there.runs()] == ["started", "resumed"]
            assert there.said() == [("human", "one"), ("agent", "reply 1"), ("human", "two"), ("agent", "reply 2")]

    run(scene())


def test_a_session_that_nobody_can_find_again_is_closed_after_its_run(tmp_path: Path) -> None:
    async def never_durable(_session: Session, _prompt: str) -> AsyncIterator[Event]:
        yield Text("fine")
        yield Done(Ending.COMPLETED, "fine")

    async def scene() -> None:
        async with world(tmp_path) as there:
            await there.add_agent()
            there.add_thread()
            there.loom.turns.append(never_durable)
            await there.tell("one")
            await until(lambda: there.loom.closed == ["loom-1"], "it is closed")

    run(scene())
