"""Tasks of a provider whose caller is cancelled, or whose provider is closed."""

import asyncio
import threading

import pytest

from clew.programs.faults import HomeFailed, Refused
from clew.programs.tasks import ProviderTasks, gather_or_cancel, in_thread, run_to_end


def test_both_are_answered_at_the_same_time() -> None:
    async def story() -> tuple[str, int]:
        met = asyncio.Barrier(2)

        async def one() -> str:
            await met.wait()
            return "a"

        async def other() -> int:
            await met.wait()
            return 1

        async with asyncio.timeout(10):
            return await gather_or_cancel(one(), other())

    assert asyncio.run(story()) == ("a", 1)


@pytest.mark.parametrize("why", ["one fails", "nobody waits"])
def test_where_it_does_not_come_to_both_none_goes_on(why: str) -> None:
    async def story() -> str:
        began, ended = asyncio.Event(), ""

        async def hangs() -> None:
            nonlocal ended
            began.set()
            try:
                await asyncio.Event().wait()
            finally:
                await asyncio.sleep(0)
                ended = "ended"

        async def fails() -> None:
            await began.wait()
            if why == "one fails":
                raise LookupError(why)
            await asyncio.Event().wait()

        asked = asyncio.create_task(gather_or_cancel(fails(), hangs()))
        await began.wait()
        if why == "nobody waits":
            asked.cancel()
        with pytest.raises(asyncio.CancelledError if why == "nobody waits" else LookupError):
            await asked
        return ended

    assert asyncio.run(story()) == "ended"


def test_the_result_of_a_thread_whose_caller_was_cancelled_is_undone() -> None:
    done, undone = threading.Event(), threading.Event()

    async def scene() -> None:
        waiting = asyncio.create_task(in_thread(lambda: done.wait(5), "Parrot", lambda _: undone.set()))
        await asyncio.sleep(0.05)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert not undone.is_set()
        done.set()
        assert await asyncio.to_thread(undone.wait, 5)

    asyncio.run(scene())


def test_an_error_of_the_system_names_the_agent_and_the_file() -> None:
    def work() -> None:
        raise PermissionError(13, "Permission denied", "/h/store")

    with pytest.raises(HomeFailed, match=r"files of Parrot .*Permission denied: /h/store") as caught:
        asyncio.run(in_thread(work, "Parrot"))
    assert caught.value.remedy


def test_a_cleanup_is_finished_however_often_its_caller_is_cancelled() -> None:
    async def scene() -> list[str]:
        done = list[str]()

        async def cleanup() -> None:
            await asyncio.sleep(0.05)
            done.append("done")

        waiting = asyncio.create_task(run_to_end(cleanup()))
        for _ in range(3):
            await asyncio.sleep(0.01)
            waiting.cancel()
        await waiting
        return done

    assert asyncio.run(scene()) == ["done"]


@pytest.mark.parametrize("moment", ["cancelled", "closed"])
def test_work_that_is_done_in_the_moment_in_which_it_is_not_wanted_any_more_is_undone(moment: str) -> None:
    async def scene() -> list[str]:
        tasks, undone, closing = ProviderTasks(), list[str](), list[asyncio.Task[None]]()

        async def work() -> str:
            # Runs before the caller that waits for the result can.
            if moment == "cancelled":
                asyncio.get_running_loop().call_soon(waiting.cancel)
            else:
                closing.append(asyncio.create_task(tasks.close()))
            return "done"

        async def undo(result: str) -> None:
            undone.append(result)

        waiting = asyncio.create_task(tasks.run(work(), undo))
        with pytest.raises(asyncio.CancelledError if moment == "cancelled" else Refused):
            await waiting
        await asyncio.gather(*closing)
        return undone

    assert asyncio.run(scene()) == ["done"]


def test_closing_cancels_what_is_under_way_and_refuses_what_comes_then() -> None:
    async def scene() -> None:
        tasks = ProviderTasks()
        waiting = asyncio.create_task(tasks.run(asyncio.Event().wait()))
        await asyncio.sleep(0)
        await tasks.close()
        with pytest.raises(Refused, match="closed"):
            await waiting
        with pytest.raises(Refused, match="closed"):
            await tasks.run(asyncio.sleep(0))

    asyncio.run(scene())
