"""End of the call that runs, for stores, whose functions get no parameter for it."""

from contextlib import contextmanager
from contextvars import ContextVar
from typing import Iterator, Optional

from ._http import Call

_running: "ContextVar[Optional[Call]]" = ContextVar("investment_data_call", default=None)


@contextmanager
def running(call: Call) -> Iterator[None]:
    token = _running.set(call)
    try:
        yield
    finally:
        _running.reset(token)


def seconds_left() -> Optional[float]:
    """Seconds that are left to the call; None without a limit.

    :raises TransportError: ``call_timeout``, if none are left
    """
    call = _running.get()
    return None if call is None else call.seconds_left()
