import ssl
import time
from types import TracebackType
from typing import (
    Any,
    AsyncGenerator,
    Awaitable,
    Callable,
    Iterator,
    List,
    Optional,
    Type,
    TypeVar,
    Union,
)

from ._connections import Limit
from ._copies import CopyStore, OnChanges, PostgresOnChanges, SyncedCopies
from ._finish import finish
from ._http import Attempt, Http
from ._lists import ACCOUNT, PORTFOLIO, Changes, ListFacts, Lists, Orders, RowsBase, SyncResult
from ._one_sync import one_at_a_time
from ._options import Day, Retry, days, integer
from ._rows import AccountTransaction, PortfolioTransaction

T = TypeVar("T")
Row = TypeVar("Row")


class InvestmentData:
    """Client of the Investment Data Query Service. Threads can share it.

    :param base_url: address of the service, such as ``https://data.example.com``
    :param token: token of the app
    :param page_size: rows of a page, 1 to 10,000
    :param timeout: time limit of an attempt, with its body; of each part of an export; in seconds. With the
        other defaults, a request to a server that never responds fails after 180 s, and up to 15.5 s of delays.
    :param call_timeout: time limit of a call, with all its requests and delays, in seconds; None: no limit.
        Set it where a user waits.
    :param ssl_context: certificates to trust
    :param on_attempt: called after each attempt; an error that it raises ends the call
    :raises TypeError, ValueError: an option is invalid; the message has no value of an option
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
    ) -> None:
        self._page_size = integer("page_size", page_size, 1, 10_000)
        self._http = Http(
            base_url, token, timeout, call_timeout, retry, ssl_context, on_attempt, _Blocking()
        )

    def connection(self, token: str, *, trace_id: Optional[str] = None) -> "Connection":
        """Selects a connection by its token. Sends no request.

        :param trace_id: your name for the requests, as ``X-Client-Trace-ID``; None: a new one for each call
        """
        return Connection(Lists(self._http, self._page_size, token, trace_id))

    def close(self) -> None:
        """Closes the connections to the service that are not in use."""
        self._http.connections.close()

    def __enter__(self) -> "InvestmentData":
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        self.close()


class Connection:
    """Lists of one connection.

    Every method raises a ProblemError for an error of the service, and a TransportError if no usable
    response arrives.
    """

    def __init__(self, lists: Lists) -> None:
        self._lists = lists

    def portfolio_transactions(
        self,
        *,
        from_: Optional[Day] = None,
        to: Optional[Day] = None,
        limit: Optional[int] = None,
    ) -> "Rows[PortfolioTransaction]":
        """Iterates over portfolio transactions, newest first, between two days, inclusive.

        All rows are of one state of the data. If the data changes before the last page: ProblemError with
        the code ``data_changed``.

        :param limit: most rows, 1 or more: with 20, the newest 20; None: all
        """
        facts = ListFacts()
        return Rows(self._lists.rows(PORTFOLIO, days(from_, to), limit, facts), facts)

    def account_transactions(
        self,
        *,
        from_: Optional[Day] = None,
        to: Optional[Day] = None,
        limit: Optional[int] = None,
    ) -> "Rows[AccountTransaction]":
        """Iterates over account transactions, newest first, as portfolio_transactions()."""
        facts = ListFacts()
        return Rows(self._lists.rows(ACCOUNT, days(from_, to), limit, facts), facts)

    def transfer_orders(self) -> Orders:
        """Returns all completed transfer orders, newest first, with the time of the last refresh."""
        return finish(self._lists.orders())

    def export_portfolio_transactions(
        self, *, from_: Optional[Day] = None, to: Optional[Day] = None
    ) -> "Rows[PortfolioTransaction]":
        """Iterates over portfolio transactions as portfolio_transactions(), in one response.

        If the data changes meanwhile: TransportError with the code ``incomplete_body``, after a part of the
        rows.
        """
        facts = ListFacts()
        return Rows(self._lists.export(PORTFOLIO, days(from_, to), facts), facts)

    def export_account_transactions(
        self, *, from_: Optional[Day] = None, to: Optional[Day] = None
    ) -> "Rows[AccountTransaction]":
        """Iterates over account transactions in one response, as export_portfolio_transactions()."""
        facts = ListFacts()
        return Rows(self._lists.export(ACCOUNT, days(from_, to), facts), facts)

    def export_portfolio_transactions_csv(
        self, *, from_: Optional[Day] = None, to: Optional[Day] = None
    ) -> Iterator[bytes]:
        """Iterates over the parts of a CSV file of portfolio transactions."""
        return _iterate(self._lists.csv(PORTFOLIO, days(from_, to)))

    def export_account_transactions_csv(
        self, *, from_: Optional[Day] = None, to: Optional[Day] = None
    ) -> Iterator[bytes]:
        """Iterates over the parts of a CSV file of account transactions."""
        return _iterate(self._lists.csv(ACCOUNT, days(from_, to)))

    def sync_transactions(
        self,
        store: CopyStore,
        *,
        on_changes: Union[OnChanges, PostgresOnChanges, None] = None,
    ) -> SyncedCopies:
        """Brings the copies of all lists up to date. Without changes, it sends one request.

        If the changes are not known, it builds a second copy, which replaces the first one when it is
        complete.

        Threads that synchronize one store run one after the other.

        :param on_changes: called with the changes of each list, inside the transaction that writes them;
            rows that you write to the same database are part of it. ``store`` of the changes reads the copy as it
            is after them. If the copy replaces another one, there may be several calls.
        :raises CopyError: the copy has another number of rows than the list, or another process writes it
        """
        call = self._lists.begin()
        with one_at_a_time(store, call):
            return finish(self._lists.sync_store(store, on_changes, call))

    def sync_portfolio_transactions(
        self,
        *,
        cursor: Optional[str],
        apply: Callable[[Changes[PortfolioTransaction]], object],
        count: Optional[Callable[[], int]] = None,
    ) -> SyncResult:
        """Brings your own copy of the portfolio transactions up to date. Calls ``apply`` once a page.

        :param cursor: stored cursor; None for an empty copy
        :param count: counts the rows of the copy, to compare it with the list
        """
        return finish(self._lists.sync(PORTFOLIO, cursor, apply, count))

    def sync_account_transactions(
        self,
        *,
        cursor: Optional[str],
        apply: Callable[[Changes[AccountTransaction]], object],
        count: Optional[Callable[[], int]] = None,
    ) -> SyncResult:
        """Brings your own copy of the account transactions up to date. Calls ``apply`` once a page.

        :param cursor: stored cursor; None for an empty copy
        :param count: counts the rows of the copy, to compare it with the list
        """
        return finish(self._lists.sync(ACCOUNT, cursor, apply, count))


class _Blocking:
    """Waits in the thread of the caller."""

    async def run(self, work: Callable[[], T], limit: Limit) -> T:
        return work()

    async def sleep(self, seconds: float) -> None:
        time.sleep(seconds)

    async def within(self, work: Awaitable[T], seconds: float) -> T:
        # Nothing can interrupt a function that blocks.
        return await work


def _iterate(values: AsyncGenerator[T, None]) -> Iterator[T]:
    try:
        while True:
            try:
                value = finish(values.__anext__())
            except StopAsyncIteration:
                return
            yield value
    finally:
        finish(values.aclose())


class Rows(RowsBase, Iterator[Row]):
    """Iterator over the rows of a list."""

    def __init__(self, pages: AsyncGenerator[List[Row], None], facts: ListFacts) -> None:
        super().__init__(facts)
        self._rows = (row for page in _iterate(pages) for row in page)

    def __next__(self) -> Row:
        return next(self._rows)

    def close(self) -> None:
        """Ends an iteration that is not complete."""
        self._rows.close()
