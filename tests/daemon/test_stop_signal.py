"""The stop signal: a step that is abandoned leaves nothing behind, however late it ends."""

import asyncio

import pytest

from clew.daemon.stop_signal import RunStopped, StopCause, StopSignal, TooLong
from tests.daemon.kit import run


def test_a_step_that_ends_after_it_was_left_behind_is_undone_only_where_it_made_something() -> None:
    async def scene() -> None:
        late = asyncio.Event()
        undone: list[str] = []

        async def deaf(makes: str) -> str:
            while not late.is_set():
                try:
                    await late.wait()
                except asyncio.CancelledError:
                    continue
            if not makes:
                raise RuntimeError("it failed in the end")
            return makes

        async def undo(made: str) -> None:
            undone.append(made)

        for makes in ("a session", ""):
            with pytest.raises(TooLong):
                await StopSignal().within("step", 0.01, 0.01, deaf(makes), undo)
        assert undone == []
        late.set()
        while others := asyncio.all_tasks() - {asyncio.current_task()}:
            await asyncio.wait(others)
            await asyncio.sleep(0)
        assert undone == ["a session"]

    run(scene())


def test_a_stop_ends_the_step_that_is_going() -> None:
    async def scene() -> None:
        signal, going = StopSignal(), asyncio.Event()

        async def works() -> None:
            going.set()
            await asyncio.Event().wait()

        async def stops() -> None:
            await going.wait()
            signal.set(StopCause.CANCEL)

        stopping = asyncio.create_task(stops())
        with pytest.raises(RunStopped):
            await signal.within("step", 3600.0, 1.0, works())
        await stopping

    run(scene(), 20.0)
