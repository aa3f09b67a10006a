import ssl
import urllib.parse
from dataclasses import dataclass
from datetime import date
from typing import Any, Callable, Generic, Iterator, List, Optional, TypeVar, Union

from ._errors import ProblemError, TransportError
from ._http import Http, Retry, Secret
from ._types import AccountTransaction, AssetsTransferOrder, PortfolioTransaction

Row = TypeVar("Row")

#: A day: a date, or a text such as ``2025-03-14``.
Day = Union[date, str]

_PORTFOLIO = "portfolios/transactions"
_ACCOUNT = "accounts/transactions"


@dataclass(frozen=True)
class Changes(Generic[Row]):
    """One page of changes. Store the rows and the cursor in one transaction."""

    #: New and changed rows, each in its latest state.
    upserts: List[Row]
    #: Identifiers of rows that no longer exist.
    removed: List[str]
    #: Position after these changes, for the next synchronization.
    cursor: str


@dataclass(frozen=True)
class Complete:
    """The copy is up to date, and has exactly ``total_items`` rows."""

    cursor: str
    total_items: int


@dataclass(frozen=True)
class CursorExpired:
    """The changes are not known. Delete the copy and its cursor, and synchronize again."""


SyncResult = Union[Complete, CursorExpired]


class InvestmentData:
    """Client of the Investment Data Query Service.

    :param base_url: address of the service, such as ``https://data.example.com``
    :param token: token of the app
    :param page_size: rows of a page, 1 to 10,000
    :param timeout: time limit of an attempt, with its body, in seconds
    :raises ValueError: an option is invalid; the message has no value of an option
    """

    def __init__(
        self,
        base_url: str,
        token: str,
        *,
        page_size: int = 1000,
        timeout: float = 30.0,
        retry: Retry = Retry(),
        ssl_context: Optional[ssl.SSLContext] = None,
    ) -> None:
        self._http = Http(base_url, token, timeout, retry, ssl_context)
        self._page_size = page_size

    def connection(self, token: str) -> "Connection":
        """Selects a connection by its token. Sends no request."""
        return Connection(self._http, self._page_size, token)


class Connection:
    """Lists of one connection.

    Every method raises a ProblemError for an error of the service, and a TransportError if no usable
    response arrives.
    """

    def __init__(self, http: Http, page_size: int, token: str) -> None:
        self._http = http
        self._page_size = page_size
        self._token = Secret(urllib.parse.quote(token, safe=""))

    def portfolio_transactions(
        self, *, from_: Optional[Day] = None, to: Optional[Day] = None
    ) -> Iterator[PortfolioTransaction]:
        """Iterates over portfolio transactions, newest first, between two days, inclusive.

        All rows are of one state of the data. If the data changes before the last page: ProblemError with
        the code ``data_changed``.
        """
        return self._rows(_PORTFOLIO, from_, to)

    def account_transactions(
        self, *, from_: Optional[Day] = None, to: Optional[Day] = None
    ) -> Iterator[AccountTransaction]:
        """Iterates over account transactions, newest first, as portfolio_transactions()."""
        return self._rows(_ACCOUNT, from_, to)

    def transfer_orders(self) -> List[AssetsTransferOrder]:
        """Returns all completed transfer orders, newest first."""
        orders: List[AssetsTransferOrder] = self._http.get(self._path("assets-transfer"), {})[0]
        return orders

    def sync_portfolio_transactions(
        self,
        *,
        cursor: Optional[str],
        apply: Callable[[Changes[PortfolioTransaction]], object],
    ) -> SyncResult:
        """Brings a copy of the portfolio transactions up to date. Calls ``apply`` once a page.

        :param cursor: stored cursor; None for an empty copy
        """
        return self._sync(_PORTFOLIO, cursor, apply)

    def sync_account_transactions(
        self,
        *,
        cursor: Optional[str],
        apply: Callable[[Changes[AccountTransaction]], object],
    ) -> SyncResult:
        """Brings a copy of the account transactions up to date. Calls ``apply`` once a page.

        :param cursor: stored cursor; None for an empty copy
        """
        return self._sync(_ACCOUNT, cursor, apply)

    def _path(self, name: str) -> Secret:
        return Secret(f"api/v1/queries/connections/{self._token.reveal()}/{name}")

    def _rows(self, name: str, from_: Optional[Day], to: Optional[Day]) -> Iterator[Any]:
        number = 0
        version = None
        while True:
            query = {
                "from": None if from_ is None else str(from_),
                "to": None if to is None else str(to),
                "limit": self._page_size,
                "page": number,
                "version": version,
            }
            page, headers = self._http.get(self._path(name), query)
            yield from page["items"]
            number += 1
            if number * page["limit"] >= page["totalItems"]:
                return
            version = version or headers.get("data-version")
            if version is None:
                raise TransportError("unexpected_response", "The response has no Data-Version", 200)

    def _sync(
        self, name: str, cursor: Optional[str], apply: Callable[[Changes[Any]], object]
    ) -> SyncResult:
        since = "start" if cursor is None else cursor
        while True:
            try:
                page, _ = self._http.get(
                    self._path(name), {"since": since, "limit": self._page_size}
                )
            except ProblemError as error:
                if error.code == "cursor_expired":
                    return CursorExpired()
                raise
            since = page["nextCursor"]
            apply(Changes(page["items"], page["removed"], since))
            if not page["hasMore"]:
                return Complete(since, page["totalItems"])
