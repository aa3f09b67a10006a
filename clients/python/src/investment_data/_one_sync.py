"""One synchronization of a copy at a time in a process."""

import asyncio
import threading
from contextlib import contextmanager
from typing import Any, Awaitable, Callable, Dict, Iterator, Optional, Tuple

from ._copies import SyncedCopies

#: Database and name of a copy.
_Key = Tuple[int, str]

_guard = threading.Lock()
#: Lock and number of users of each copy that a thread synchronizes.
_locks: Dict[_Key, Tuple[Any, int]] = {}
#: The last task of each copy that has not ended, with what its call asks for.
_tasks: Dict[_Key, Tuple[object, "asyncio.Task[SyncedCopies]"]] = {}


def _key_of(store: Any) -> _Key:
    database, name = getattr(store, "key", (store, ""))
    # The store is in use until the end, so no other object has its number.
    return id(database), name


@contextmanager
def one_at_a_time(store: Any) -> Iterator[None]:
    """Waits for another thread that synchronizes the same copy.

    The lock is reentrant: a nested call of ``on_changes`` gets the error of the open transaction.
    """
    key = _key_of(store)
    with _guard:
        lock, users = _locks.get(key, (threading.RLock(), 0))
        _locks[key] = lock, users + 1
    try:
        with lock:
            yield
    finally:
        with _guard:
            lock, users = _locks[key]
            if users == 1:
                del _locks[key]
            else:
                _locks[key] = lock, users - 1


async def shared(
    store: Any, call: object, run: Callable[[], Awaitable[SyncedCopies]]
) -> SyncedCopies:
    """Shares the task of an equal call, or waits for another one of the same copy.

    A caller that is cancelled ends its own wait alone.
    """
    key = _key_of(store)
    last = _tasks.get(key)
    before = None if last is None else last[1]
    if before is not None and before.get_loop() is not asyncio.get_running_loop():
        before = None
    if before is not None and last is not None and last[0] == call:
        try:
            return await asyncio.shield(before)
        except asyncio.CancelledError:
            if not before.cancelled():
                raise

    async def work() -> SyncedCopies:
        await _end_of(before)
        return await run()

    task = asyncio.ensure_future(work())
    _tasks[key] = call, task
    try:
        return await task
    finally:
        if _tasks.get(key) == (call, task):
            del _tasks[key]


async def _end_of(task: "Optional[asyncio.Task[SyncedCopies]]") -> None:
    if task is not None:
        await asyncio.wait([task])
