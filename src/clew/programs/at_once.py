"""Questions asked at the same time."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

One = TypeVar("One")
Other = TypeVar("Other")


async def both(one: Coroutine[Any, Any, One], other: Coroutine[Any, Any, Other]) -> tuple[One, Other]:
    """What both answer. When one fails, or nobody waits any more, the other is called off and has ended."""
    first, second = asyncio.ensure_future(one), asyncio.ensure_future(other)
    try:
        answer, other_answer = await asyncio.gather(first, second)
    finally:
        for task in (first, second):
            task.cancel()
        await asyncio.gather(first, second, return_exceptions=True)
    return answer, other_answer
