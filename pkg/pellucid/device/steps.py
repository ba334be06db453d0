"""Work that must wait, written once as a generator of its steps.

`now` takes the steps by blocking calls, `later` by awaiting. So neither a parser nor a loader needs threads,
an event loop or a second version of itself.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from typing import Any, TypeVar

Result = TypeVar("Result")


def call(step: tuple) -> Any:
    """Take a step (owner, name of a function, arguments, keywords)."""
    owner, name, arguments, keywords = step
    return getattr(owner, name)(*arguments, **keywords)


def call_async(step: tuple) -> Awaitable[Any]:
    """Take it by the twin, whose name ends in ``_async``."""
    owner, name, arguments, keywords = step
    return getattr(owner, f"{name}_async")(*arguments, **keywords)


def now(steps: Generator[Any, Any, Result], take: Callable[[Any], Any] = call) -> Result:
    """Run all steps; what the generator returns.

    Args:
        steps: yields a step and is sent its result, or has its error thrown: a missing file may be expected,
            and an interrupt leaves something to clear away.
        take: makes a step's result.
    """
    try:
        step = next(steps)
        while True:
            try:
                result = take(step)
            except GeneratorExit:
                raise
            except BaseException as error:  # an interrupt, too: what was begun is cleared away by steps
                step = steps.throw(error)
            else:
                step = steps.send(result)
    except StopIteration as end:
        return end.value
    finally:
        steps.close()


async def later(
    steps: Generator[Any, Any, Result], take: Callable[[Any], Awaitable[Any]] = call_async
) -> Result:
    """The awaitable twin of `now`."""
    try:
        step = next(steps)
        while True:
            try:
                result = await take(step)
            except GeneratorExit:
                raise
            except BaseException as error:  # an interrupt, too: what was begun is cleared away by steps
                step = steps.throw(error)
            else:
                step = steps.send(result)
    except StopIteration as end:
        return end.value
    finally:
        steps.close()
