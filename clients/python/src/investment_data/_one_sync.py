"""One synchronization of a copy at a time in a process."""

import asyncio
import threading
from contextlib import contextmanager
from typing import Any, Awaitable, Callable, Dict, Iterator, Optional, Tuple

from ._copies import SyncedCopies
from ._errors import CopyError
from ._http import Call
from ._transaction import transaction_of

#: Database and name of a copy.
_Key = Tuple[int, str]

_guard = threading.Lock()
#: Lock and number of users of each copy that a thread synchronizes.
_locks: Dict[_Key, Tuple[Any, int]] = {}
#: The last task of each copy that has not ended, with what its call asks for.
_tasks: Dict[_Key, Tuple[object, "asyncio.Task[SyncedCopies]"]] = {}


def _key_of(store: Any) -> _Key:
    database, name = getattr(store, "key", (store, ""))
    # A call that waits for itself would never end.
    if transaction_of(database) is not None:
        raise CopyError("transaction_open", "on_changes cannot synchronize its own database")
    # The store is in use until the end, so no other object has its number.
    return id(database), name


@contextmanager
def one_at_a_time(store: Any, call: Call) -> Iterator[None]:
    """Waits for another thread that synchronizes the same copy, until the end of the call.

    The lock is reentrant: a nested call of ``on_changes`` gets the error of the open transaction.
    """
    key = _key_of(store)
    with _guard:
        lock, users = _locks.get(key, (threading.RLock(), 0))
        _locks[key] = lock, users + 1
    try:
        left = call.seconds_left()
        if not lock.acquire(timeout=-1 if left is None else left):
            call.seconds_left()
        try:
            yield
        finally:
            lock.release()
    finally:
        with _guard:
            lock, users = _locks[key]
            if users == 1:
                del _locks[key]
            else:
                _locks[key] = lock, users - 1


async def shared(
    store: Any, wanted: object, call: Call, run: Callable[[], Awaitable[SyncedCopies]]
) -> SyncedCopies:
    """Shares the task of an equal call, or waits for another one of the same copy.

    A caller that is cancelled ends its own wait alone.
    """
    key = _key_of(store)
    last = _tasks.get(key)
    before = None if last is None else last[1]
    if before is not None and before.get_loop() is not asyncio.get_running_loop():
        before = None
    if before is not None and last is not None and last[0] == wanted:
        try:
            return await asyncio.shield(before)
        except asyncio.CancelledError:
            if not before.cancelled():
                raise

    async def work() -> SyncedCopies:
        await _end_of(before, call)
        return await run()

    task = asyncio.ensure_future(work())
    _tasks[key] = wanted, task
    try:
        return await task
    finally:
        if _tasks.get(key) == (wanted, task):
            del _tasks[key]


async def _end_of(task: "Optional[asyncio.Task[SyncedCopies]]", call: Call) -> None:
    if task is not None:
        await asyncio.wait([task], timeout=call.seconds_left())
        call.seconds_left()
