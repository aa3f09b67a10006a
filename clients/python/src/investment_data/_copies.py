import asyncio
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import (
    Any,
    AsyncIterator,
    Awaitable,
    Callable,
    Dict,
    List,
    Literal,
    Optional,
    Protocol,
    Tuple,
    TypeVar,
    Union,
)

from ._errors import CopyError, ProblemError, is_lost_cursor
from ._http import Call, Waiting
from ._rows import AccountTransaction, AssetsTransferOrder, PortfolioTransaction

T = TypeVar("T")

#: A value; an awaitable of it for the asynchronous client.
Maybe = Union[T, Awaitable[T]]

#: Names of the identifiers, by list.
ID_FIELDS = {
    "portfolio_transactions": "transactionId",
    "account_transactions": "movementId",
    "transfer_orders": "id",
}

#: New copies that a call begins before it fails.
_MAX_BUILDS = 3


@dataclass(frozen=True)
class CopyState:
    """State of the service that a complete copy has."""

    #: ``Data-Version``: it changes with each change of any list of the connection.
    version: Optional[str]
    total_items: int
    #: Time at which the service last read the institution.
    refreshed_at: Optional[datetime]


@dataclass(frozen=True)
class KnownCopy:
    """What a store has of a copy."""

    list: str
    copy: str
    cursor: str
    #: None if it is not known.
    state: Optional[CopyState]
    #: Number of its rows.
    count: int


@dataclass(frozen=True)
class CopyChanges:
    """One page of changes."""

    #: ``portfolio_transactions``, ``account_transactions`` or ``transfer_orders``.
    list: str
    #: ``current``: complete, for the app. ``next``: built beside it, and replaces it when it is complete.
    copy: str
    #: Cursor of the copy before these changes; None if the copy does not exist yet.
    since: Optional[str]
    #: Cursor of the copy after these changes.
    cursor: str
    #: Identifiers, and new and changed rows, each in its latest state.
    upserts: List[Tuple[str, Any]]
    #: Identifiers of rows that no longer exist.
    removed: List[str]
    #: State of the copy after the last page; None after the others.
    state: Optional[CopyState] = None


@dataclass(frozen=True)
class CopyCounts:
    """Rows that differ in the copy that the app reads."""

    inserted: int = 0
    updated: int = 0
    removed: int = 0

    def plus(self, other: "CopyCounts") -> "CopyCounts":
        return CopyCounts(
            self.inserted + other.inserted,
            self.updated + other.updated,
            self.removed + other.removed,
        )


class _Told:
    """It is no field of the changes, so that an app may copy them as before."""

    #: Reads the copy as it is after the changes, inside the transaction that writes them: a SqliteReader, PostgresReader or
    #: AsyncPostgresReader, by the store. None for a store of your own.
    store: Any = None


@dataclass(frozen=True)
class PortfolioChanges(_Told):
    """What changed in the copy that the app reads. Rows that stay the same are left out."""

    list: Literal["portfolio_transactions"]
    #: New and changed rows.
    upserts: List[PortfolioTransaction]
    #: Identifiers of removed rows.
    removed: List[str]
    #: Changed and removed rows by identifier, as they were. A new row has none.
    previous: Dict[str, PortfolioTransaction]


@dataclass(frozen=True)
class AccountChanges(_Told):
    """What changed, as PortfolioChanges."""

    list: Literal["account_transactions"]
    upserts: List[AccountTransaction]
    removed: List[str]
    previous: Dict[str, AccountTransaction]


@dataclass(frozen=True)
class OrderChanges(_Told):
    """What changed, as PortfolioChanges."""

    list: Literal["transfer_orders"]
    upserts: List[AssetsTransferOrder]
    removed: List[str]
    previous: Dict[str, AssetsTransferOrder]


RowChanges = Union[PortfolioChanges, AccountChanges, OrderChanges]

#: Called inside the transaction that writes the changes: an error undoes them. It must not be a coroutine.
OnChanges = Callable[[RowChanges], object]

#: As OnChanges, of a PostgresStore: it also gets the connection of the transaction. With an
#: AsyncPostgresStore, it may be a coroutine.
PostgresOnChanges = Callable[[RowChanges, Any], object]


class CopyStore(Protocol):
    """Database that keeps a copy of one connection.

    It may also have ``key``, the database and the name of the copy: stores with equal ones synchronize one
    after the other in a process. It may also have ``state(list_)``, which returns the CopyState of the current copy, or
    ``known_copies()``, which returns a KnownCopy for each copy that it has, instead of many calls. Without both, each
    synchronization requests all lists. ``apply`` and ``swap`` may return CopyCounts of what changes in the
    current copy; otherwise the result has zeros. For ``on_changes`` of sync_transactions(), both get it as
    a further argument.
    """

    def cursor(self, list_: str, copy: str) -> Maybe[Optional[str]]:
        """Returns the cursor of a copy, or None if the copy does not exist."""

    def apply(self, changes: CopyChanges) -> Maybe[Optional[CopyCounts]]:
        """Writes rows, removals, the cursor and the state in one transaction.

        :raises CopyError: ``conflict``, if the cursor of the copy is not ``since``: another process has written
        """

    def count(self, list_: str, copy: str) -> Maybe[int]:
        """Counts the rows of a copy."""

    def swap(self, list_: str, cursor: str) -> Maybe[Optional[CopyCounts]]:
        """Replaces the current copy by the next one, in one transaction.

        :raises CopyError: ``conflict``, if the cursor of the next copy is not ``cursor``
        """

    def discard(self, list_: str) -> Maybe[None]:
        """Deletes the next copy, if there is one."""


@dataclass(frozen=True)
class CopyResult:
    """Result of sync_transactions() for a list."""

    #: Rows of the copy, and of the list.
    total_items: int
    #: True if the copy is new: the first one, or one that replaced a copy with unknown changes.
    rebuilt: bool
    #: Rows that differ from the copy before.
    inserted: int = 0
    updated: int = 0
    removed: int = 0
    #: Time at which the service last read the institution; None before the first time.
    refreshed_at: Optional[datetime] = None


@dataclass(frozen=True)
class SyncedCopies:
    """Results of sync_transactions()."""

    portfolio: CopyResult
    account: CopyResult
    orders: CopyResult


@dataclass(frozen=True)
class Page:
    """One page of changes, as the service sends it."""

    items: List[Any]
    removed: List[str]
    cursor: str
    has_more: bool
    state: CopyState


async def value_of(value: Maybe[T]) -> T:
    return await value if isinstance(value, Awaitable) else value


class CopySync:
    """Brings the copies of one connection up to date."""

    def __init__(
        self,
        store: CopyStore,
        on_changes: Union[OnChanges, PostgresOnChanges, None],
        call: Call,
        waiting: Waiting,
    ) -> None:
        self._store: Any = store
        if on_changes is not None and not callable(on_changes):
            raise TypeError("on_changes must be a function")
        self._call = call
        self._waiting = waiting
        self._more = () if on_changes is None else (self._limited(on_changes),)
        #: What the store had when it was last read.
        self._known: List[KnownCopy] = []
        #: Data version of the last response; None if the copies may differ from it without a sign.
        self._version: Optional[str] = None
        self._refreshed_at: Optional[datetime] = None

    async def unchanged(self, list_: str) -> Optional[CopyResult]:
        """Returns the result for a list whose copy has the version of the last response: no request is needed.

        Returns None if the list must be requested.
        """
        if self._version is None:
            return None
        if not hasattr(self._store, "known_copies"):
            await self._read(list_)
        current, next_ = self._copy_of(list_, "current"), self._copy_of(list_, "next")
        if next_ is not None or current is None or current.state is None:
            return None
        total = current.state.total_items
        if current.state.version != self._version or current.count != total:
            return None
        return self._result(total, False, CopyCounts())

    async def changes(
        self, list_: str, pages_since: Callable[[Optional[str]], AsyncIterator[Page]]
    ) -> CopyResult:
        """Reads the changes of a list. Builds a second copy if the first one cannot be continued."""
        await self._read(list_)
        current, next_ = self._copy_of(list_, "current"), self._copy_of(list_, "next")
        copy = "current" if current is not None and next_ is None else "next"
        known = current if copy == "current" else next_
        counts = CopyCounts()
        builds = 0
        while True:
            since = known.cursor if known else None
            # The store has compared the cursor, so no other process has changed the rows.
            count = known.count if known else None
            total = 0
            error: Exception
            try:
                async for page in pages_since(since):
                    counts = counts.plus(await self._apply(list_, copy, since, page))
                    if page.items or page.removed:
                        count = None
                    since, total = page.cursor, page.state.total_items
                if count is None:
                    count = await self._wait(lambda: self._store.count(list_, copy))
                if count == total and since is not None:
                    rebuilt = copy == "next"
                    if rebuilt:
                        counts = counts.plus(await self._swap(list_, since))
                        # The versions of two connections may be equal. A lost cursor may be that of another one.
                        self._version = None
                    return self._result(total, rebuilt, counts)
                message = f"The copy has {count} rows, and the list {total}"
                error = CopyError("count_differs", message)
            except ProblemError as problem:
                if not is_lost_cursor(problem):
                    raise
                error = problem
            if builds == _MAX_BUILDS:
                raise error
            await self._wait(lambda: self._store.discard(list_))
            copy, known = "next", None
            builds += 1

    async def replace(self, list_: str, page: Page) -> CopyResult:
        """Replaces the copy of a list by all its rows."""
        await self._read(list_)
        rebuilt = self._copy_of(list_, "current") is None
        if self._copy_of(list_, "next") is not None:
            await self._wait(lambda: self._store.discard(list_))
        counts = await self._apply(list_, "next", None, page)
        counts = counts.plus(await self._swap(list_, page.cursor))
        return self._result(page.state.total_items, rebuilt, counts)

    def _limited(self, on_changes: Callable[..., object]) -> Callable[..., object]:
        def limited(*changes: object) -> object:
            result = on_changes(*changes)
            # Nothing interrupts a function that blocks.
            self._call.seconds_left()
            return result

        return limited

    async def _wait(self, work: Callable[[], Any]) -> Any:
        """Waits for a function of the store until the end of the call."""
        left = self._call.seconds_left()
        value = work()
        if not isinstance(value, Awaitable):
            return value
        if left is None:
            return await value
        try:
            return await self._waiting.within(value, left)
        except asyncio.TimeoutError:
            self._call.seconds_left()
            raise

    def _copy_of(self, list_: str, copy: str) -> Optional[KnownCopy]:
        found = (each for each in self._known if (each.list, each.copy) == (list_, copy))
        return next(found, None)

    async def _read(self, list_: str) -> None:
        """Reads what the store has, of a list at least."""
        store = self._store
        if hasattr(store, "known_copies"):
            self._known = await self._wait(store.known_copies)
            return
        self._known = []
        for copy in ("current", "next"):
            cursor = await self._wait(partial(store.cursor, list_, copy))
            if cursor is None:
                continue
            state = None
            if copy == "current" and hasattr(store, "state"):
                state = await self._wait(partial(store.state, list_))
            count = await self._wait(partial(store.count, list_, copy))
            self._known.append(KnownCopy(list_, copy, cursor, state, count))

    def _result(self, total: int, rebuilt: bool, counts: CopyCounts) -> CopyResult:
        return CopyResult(
            total, rebuilt, counts.inserted, counts.updated, counts.removed, self._refreshed_at
        )

    async def _apply(
        self, list_: str, copy: str, since: Optional[str], page: Page
    ) -> CopyCounts:
        upserts = [(row[ID_FIELDS[list_]], row) for row in page.items]
        changes = CopyChanges(list_, copy, since, page.cursor, upserts, page.removed)
        if not page.has_more:
            changes = replace(changes, state=page.state)
        counts = await self._wait(lambda: self._store.apply(changes, *self._more))
        self._version, self._refreshed_at = page.state.version, page.state.refreshed_at
        return counts or CopyCounts()

    async def _swap(self, list_: str, cursor: str) -> CopyCounts:
        counts = await self._wait(lambda: self._store.swap(list_, cursor, *self._more))
        return counts or CopyCounts()
