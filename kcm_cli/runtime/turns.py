"""Long loops that yield to the event loop."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from typing import TypeVar

T = TypeVar("T")


async def in_turns(items: Iterable[T], most: int) -> AsyncIterator[T]:
    """The items one by one. Yields to the loop after each ``most`` of them."""
    for number, item in enumerate(items, 1):
        yield item
        if number % most == 0:
            await asyncio.sleep(0)
