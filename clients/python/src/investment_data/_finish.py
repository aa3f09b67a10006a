from typing import Awaitable, TypeVar

T = TypeVar("T")


def finish(work: Awaitable[T]) -> T:
    """Runs a coroutine that never waits for an event loop: the blocking and the asynchronous code is one."""
    steps = work.__await__()
    try:
        next(steps)
    except StopIteration as end:
        value: T = end.value
        return value
    steps.close()
    raise TypeError("a function for the synchronous client must not be asynchronous")
