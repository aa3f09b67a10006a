"""The transactions in which stores call ``on_changes``."""

from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Iterator, Optional, Tuple

from ._errors import CopyError


class StoreTransaction:
    """A transaction of a store. ``database`` is its connection or its pool, ``connection`` that of the transaction."""

    def __init__(self, database: Any, connection: Any, is_open: bool = True) -> None:
        self.database = database
        self.connection = connection
        self.is_open = is_open

    def expect_open(self) -> None:
        """:raises CopyError: ``transaction_ended``, after the transaction"""
        if not self.is_open:
            message = "The store of on_changes has ended with its transaction: use it inside on_changes"
            raise CopyError("transaction_ended", message)


_around: "ContextVar[Tuple[StoreTransaction, ...]]" = ContextVar("investment_data_around", default=())


@contextmanager
def inside(transaction: StoreTransaction) -> Iterator[None]:
    """Runs ``on_changes``. Other stores of the database then use the connection of the transaction."""
    token = _around.set((*_around.get(), transaction))
    try:
        yield
    finally:
        _around.reset(token)


def transaction_of(database: Any) -> Optional[StoreTransaction]:
    """The open transaction of a connection or a pool, if the caller is inside ``on_changes``."""
    for each in reversed(_around.get()):
        if each.is_open and (database is each.database or database is each.connection):
            return each
    return None
