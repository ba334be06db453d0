"""Running a parser. Reading a format is written once, as a generator of steps ``(source, start, stop)``:
`now` drives it by blocking reads, `later` by awaiting them. So a parser needs neither threads nor an event
loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Generator
from typing import Any

from ..device import steps
from .source import IN_PAGE

_BESIDE = 6  # files that are opened at a time

# A parser yields reads and gets their bytes; it yields lists of parsers that may run at one time and gets
# their results.
Steps = Generator[Any, Any, Any]


def now(parser: Steps) -> Any:
    """Run the steps of a parser by blocking reads; the parser's result."""
    return steps.now(parser, _read)


def _read(step: Any) -> Any:
    return _beside(step) if isinstance(step, list) else step[0].read(*step[1:])


def _beside(several: list[Steps]) -> list:
    if IN_PAGE:
        from .source_browser import wait

        return wait(_gather(several), "opening several files")
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(_BESIDE) as pool:
        return list(pool.map(now, several))


async def later(parser: Steps) -> Any:
    """Run the steps of a parser by awaiting reads; the parser's result."""
    return await steps.later(parser, _read_async)


def _read_async(step: Any) -> Awaitable[Any]:
    return _gather(step) if isinstance(step, list) else step[0].read_async(*step[1:])


async def _gather(several: list[Steps]) -> list:
    gate = asyncio.Semaphore(_BESIDE)

    async def one(parser: Steps) -> Any:
        async with gate:
            return await later(parser)

    return await asyncio.gather(*map(one, several))
