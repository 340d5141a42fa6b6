"""Two questions at once: both answers, or nothing left of either."""

import asyncio

import pytest

from clew.programs.tasks import gather_or_cancel


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
