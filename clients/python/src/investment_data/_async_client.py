import asyncio
import ssl
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import (
    Any,
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    List,
    Optional,
    Type,
    TypeVar,
    Union,
)

from ._connections import Limit
from ._copies import CopyStore, OnChanges, PostgresOnChanges, SyncedCopies
from ._http import Attempt, Http
from ._lists import ACCOUNT, PORTFOLIO, Changes, ListFacts, Lists, Orders, RowsBase, SyncResult
from ._one_sync import shared
from ._options import Day, Retry, days, integer
from ._rows import AccountTransaction, PortfolioTransaction

T = TypeVar("T")
Row = TypeVar("Row")


class AsyncInvestmentData:
    """Client for asyncio. It has the options and methods of InvestmentData, as coroutines.

    Requests wait in threads, which also parse the responses. A cancelled task ends its request.

    :param max_connections: requests at the same time; further ones wait
    """

    def __init__(
        self,
        base_url: str,
        token: str,
        *,
        page_size: int = 1000,
        timeout: float = 30.0,
        call_timeout: Optional[float] = None,
        retry: Retry = Retry(),
        ssl_context: Optional[ssl.SSLContext] = None,
        on_attempt: Optional[Callable[[Attempt], object]] = None,
        max_connections: int = 10,
    ) -> None:
        self._page_size = integer("page_size", page_size, 1, 10_000)
        threads = integer("max_connections", max_connections, 1, 1000)
        self._waiting = _Threads(ThreadPoolExecutor(threads, "investment_data"))
        self._http = Http(
            base_url, token, timeout, call_timeout, retry, ssl_context, on_attempt, self._waiting
        )

    def connection(self, token: str, *, trace_id: Optional[str] = None) -> "AsyncConnection":
        """Selects a connection by its token. Sends no request."""
        return AsyncConnection(Lists(self._http, self._page_size, token, trace_id))

    def close(self) -> None:
        """Closes the connections to the service that are not in use, and ends the threads."""
        self._waiting.executor.shutdown(wait=False)
        self._http.connections.close()

    async def __aenter__(self) -> "AsyncInvestmentData":
        return self

    async def __aexit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        self.close()


class AsyncConnection:
    """Lists of one connection. The methods are those of Connection."""

    def __init__(self, lists: Lists) -> None:
        self._lists = lists

    def portfolio_transactions(
        self,
        *,
        from_: Optional[Day] = None,
        to: Optional[Day] = None,
        limit: Optional[int] = None,
    ) -> "AsyncRows[PortfolioTransaction]":
        """Iterates over portfolio transactions, newest first, between two days, inclusive."""
        facts = ListFacts()
        return AsyncRows(self._lists.rows(PORTFOLIO, days(from_, to), limit, facts), facts)

    def account_transactions(
        self,
        *,
        from_: Optional[Day] = None,
        to: Optional[Day] = None,
        limit: Optional[int] = None,
    ) -> "AsyncRows[AccountTransaction]":
        """Iterates over account transactions, newest first, as portfolio_transactions()."""
        facts = ListFacts()
        return AsyncRows(self._lists.rows(ACCOUNT, days(from_, to), limit, facts), facts)

    async def transfer_orders(self) -> Orders:
        """Returns all completed transfer orders, newest first, with the time of the last refresh."""
        return await self._lists.orders()

    def export_portfolio_transactions(
        self, *, from_: Optional[Day] = None, to: Optional[Day] = None
    ) -> "AsyncRows[PortfolioTransaction]":
        """Iterates over portfolio transactions as portfolio_transactions(), in one response."""
        facts = ListFacts()
        return AsyncRows(self._lists.export(PORTFOLIO, days(from_, to), facts), facts)

    def export_account_transactions(
        self, *, from_: Optional[Day] = None, to: Optional[Day] = None
    ) -> "AsyncRows[AccountTransaction]":
        """Iterates over account transactions in one response."""
        facts = ListFacts()
        return AsyncRows(self._lists.export(ACCOUNT, days(from_, to), facts), facts)

    def export_portfolio_transactions_csv(
        self, *, from_: Optional[Day] = None, to: Optional[Day] = None
    ) -> AsyncIterator[bytes]:
        """Iterates over the parts of a CSV file of portfolio transactions."""
        return self._lists.csv(PORTFOLIO, days(from_, to))

    def export_account_transactions_csv(
        self, *, from_: Optional[Day] = None, to: Optional[Day] = None
    ) -> AsyncIterator[bytes]:
        """Iterates over the parts of a CSV file of account transactions."""
        return self._lists.csv(ACCOUNT, days(from_, to))

    async def sync_transactions(
        self,
        store: CopyStore,
        *,
        on_changes: Union[OnChanges, PostgresOnChanges, None] = None,
    ) -> SyncedCopies:
        """Brings the copies of all lists up to date. Without changes, it sends one request.

        The functions of the store run in the event loop. They may be coroutines. Calls at the same time for
        one copy share a synchronization, or run one after the other.
        """
        wanted = self._lists.sync_call(on_changes)
        call = self._lists.begin()
        return await shared(
            store, wanted, call, lambda: self._lists.sync_store(store, on_changes, call)
        )

    async def sync_portfolio_transactions(
        self,
        *,
        cursor: Optional[str],
        apply: Callable[[Changes[PortfolioTransaction]], Union[object, Awaitable[object]]],
        count: Optional[Callable[[], Union[int, Awaitable[int]]]] = None,
    ) -> SyncResult:
        """Brings your own copy of the portfolio transactions up to date. Calls ``apply`` once a page."""
        return await self._lists.sync(PORTFOLIO, cursor, apply, count)

    async def sync_account_transactions(
        self,
        *,
        cursor: Optional[str],
        apply: Callable[[Changes[AccountTransaction]], Union[object, Awaitable[object]]],
        count: Optional[Callable[[], Union[int, Awaitable[int]]]] = None,
    ) -> SyncResult:
        """Brings your own copy of the account transactions up to date. Calls ``apply`` once a page."""
        return await self._lists.sync(ACCOUNT, cursor, apply, count)


class _Threads:
    """Waits in threads, so that the event loop can go on."""

    def __init__(self, executor: ThreadPoolExecutor) -> None:
        self.executor = executor

    async def run(self, work: Callable[[], T], limit: Limit) -> T:
        try:
            return await asyncio.get_running_loop().run_in_executor(self.executor, work)
        except asyncio.CancelledError:
            limit.cancel()
            raise

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def within(self, work: Awaitable[T], seconds: float) -> T:
        return await asyncio.wait_for(work, seconds)


class AsyncRows(RowsBase, AsyncIterator[Row]):
    """Iterator over the rows of a list."""

    def __init__(self, pages: AsyncGenerator[List[Row], None], facts: ListFacts) -> None:
        super().__init__(facts)
        self._rows = _rows(pages)

    async def __anext__(self) -> Row:
        return await self._rows.__anext__()

    async def aclose(self) -> None:
        """Ends an iteration that is not complete."""
        await self._rows.aclose()


async def _rows(pages: AsyncGenerator[List[Row], None]) -> AsyncGenerator[Row, None]:
    try:
        async for page in pages:
            for row in page:
                yield row
    finally:
        await pages.aclose()
