import urllib.parse
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, AsyncGenerator, Callable, Dict, Generic, List, Optional, TypeVar, Union

from ._call_end import running
from ._connections import Headers, Response
from ._copies import (
    CopyState,
    CopyStore,
    CopySync,
    Maybe,
    OnChanges,
    PostgresOnChanges,
    Page,
    SyncedCopies,
    value_of,
)
from ._errors import Facts, ProblemError, TransportError, is_lost_cursor
from ._http import CSV, NDJSON, Call, Http, Query, refreshed_at_of
from ._options import Secret, connection_token, integer, visible_ascii
from ._response_rows import UnusableResponse, check_orders, check_page, check_row, too_deep
from ._rows import AssetsTransferOrder
from ._types import from_json

Row = TypeVar("Row")

PORTFOLIO = "portfolios/transactions"
ACCOUNT = "accounts/transactions"
ORDERS = "assets-transfer"

#: Names of the copies of the lists.
_NAMES = {PORTFOLIO: "portfolio_transactions", ACCOUNT: "account_transactions"}
#: Most bytes of a row of an export. No import accepts a longer one.
_MAX_ROW_BYTES = 2**20
_MAX_LIMIT = 2**31 - 1


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
    #: Time at which the service last read the institution; None before the first time.
    refreshed_at: Optional[datetime] = None


@dataclass(frozen=True)
class CursorExpired:
    """The changes are not known. Delete the copy and its cursor, and synchronize again."""


@dataclass(frozen=True)
class CountDiffers:
    """The copy has another number of rows. Delete it and its cursor, and synchronize again."""

    total_items: int
    count: int


SyncResult = Union[Complete, CursorExpired, CountDiffers]


class ListFacts:
    """What the responses say of all rows."""

    total_items: Optional[int] = None
    refreshed_at: Optional[datetime] = None


class RowsBase:
    """Rows of a list, with the facts of all its rows."""

    def __init__(self, facts: ListFacts) -> None:
        self._facts = facts

    @property
    def total_items(self) -> Optional[int]:
        """Rows between ``from_`` and ``to``; None before the first row."""
        return self._facts.total_items

    @property
    def refreshed_at(self) -> Optional[datetime]:
        """Time at which the service last read the institution.

        None before the first row, and if the service has not read it yet.
        """
        return self._facts.refreshed_at


class Orders(List[AssetsTransferOrder]):
    """All transfer orders, newest first."""

    #: Time at which the service last read the institution; None before the first time.
    refreshed_at: Optional[datetime] = None


class Lists:
    """Requests of one connection, for both clients."""

    def __init__(self, http: Http, page_size: int, token: str, trace_id: Optional[str]) -> None:
        token = connection_token(token)
        if trace_id is not None:
            visible_ascii("trace_id", trace_id, 128)
        self._http = http
        self._page_size = page_size
        self._token = Secret(urllib.parse.quote(token, safe=""))
        self._trace_id = trace_id

    def _call(self, list_: str) -> Call:
        return self._http.call(self._token, list_, self._trace_id)

    def rows(
        self,
        list_: str,
        days: Dict[str, Optional[str]],
        limit: Optional[int],
        facts: ListFacts,
    ) -> AsyncGenerator[List[Any], None]:
        """Yields the rows of each page."""
        most = _MAX_LIMIT if limit is None else integer("limit", limit, 1, _MAX_LIMIT)
        return self._rows(list_, days, most, facts)

    async def _rows(
        self, list_: str, days: Dict[str, Optional[str]], left: int, facts: ListFacts
    ) -> AsyncGenerator[List[Any], None]:
        size = min(self._page_size, left)
        call = self._call(list_)
        number = 0
        version: Optional[str] = None
        while True:
            query: Query = {**days, "limit": size, "page": number, "version": version}
            page, headers = await self._http.get(
                call, query, lambda body: check_page(_NAMES[list_], body, False)
            )
            facts.total_items = page["totalItems"]
            facts.refreshed_at = refreshed_at_of(headers)
            yield page["items"][:left]
            left -= len(page["items"])
            number += 1
            if left <= 0 or number * page["limit"] >= page["totalItems"]:
                return
            version = version or headers.get("data-version")
            if version is None:
                failure = Facts(200, trace_id=call.trace_id)
                raise TransportError(
                    "unexpected_response", "The response has no Data-Version", failure
                )

    async def orders(self) -> Orders:
        page = await self._orders(self._call(ORDERS))
        orders = Orders(page.items)
        orders.refreshed_at = page.state.refreshed_at
        return orders

    async def export(
        self, list_: str, days: Dict[str, Optional[str]], facts: ListFacts
    ) -> AsyncGenerator[List[Any], None]:
        """Yields the rows of each part of an export."""
        call = self._call(list_)
        response = await self._http.open(call, days, NDJSON)
        total = response.headers.get("x-total-count")
        facts.total_items = int(total) if total else None
        facts.refreshed_at = refreshed_at_of(response.headers)
        lines = _Lines(_NAMES[list_], total)
        try:
            while not lines.ended:
                yield await self._http.read(call, response, lines.read)
        finally:
            response.close()

    async def csv(self, list_: str, days: Dict[str, Optional[str]]) -> AsyncGenerator[bytes, None]:
        call = self._call(list_)
        response = await self._http.open(call, days, CSV)
        try:
            while True:
                part = await self._http.read(call, response, Response.read)
                if not part:
                    return
                yield part
        finally:
            response.close()

    async def sync(
        self,
        list_: str,
        cursor: Optional[str],
        apply: Callable[[Changes[Any]], Maybe[object]],
        count: Optional[Callable[[], Maybe[int]]],
    ) -> SyncResult:
        total, refreshed_at = 0, None
        try:
            async for page in self._changes(self._call(list_), cursor):
                cursor, total = page.cursor, page.state.total_items
                refreshed_at = page.state.refreshed_at
                await value_of(apply(Changes(page.items, page.removed, page.cursor)))
        except ProblemError as error:
            if not is_lost_cursor(error):
                raise
            return CursorExpired()
        counted = total if count is None else await value_of(count())
        if counted != total:
            return CountDiffers(total, counted)
        return Complete(cursor or "", total, refreshed_at)

    def sync_call(self, on_changes: object) -> object:
        """What a call of sync_transactions() asks for. Equal calls may share a synchronization."""
        return id(self._http), self._token, on_changes

    def begin(self) -> Call:
        """Begins a call for all lists: its time limit starts."""
        return self._call(PORTFOLIO)

    async def sync_store(
        self,
        store: CopyStore,
        on_changes: Union[OnChanges, PostgresOnChanges, None],
        portfolio_call: Call,
    ) -> SyncedCopies:
        copies = CopySync(store, on_changes, portfolio_call, self._http.waiting)
        with running(portfolio_call):
            return await self._sync_lists(copies, portfolio_call)

    async def _sync_lists(self, copies: CopySync, portfolio_call: Call) -> SyncedCopies:
        account_call = replace(portfolio_call, list=ACCOUNT)
        portfolio = await copies.changes(
            "portfolio_transactions", lambda since: self._changes(portfolio_call, since)
        )
        account = await copies.unchanged("account_transactions")
        if account is None:
            account = await copies.changes(
                "account_transactions", lambda since: self._changes(account_call, since)
            )
        orders = await copies.unchanged("transfer_orders")
        if orders is None:
            page = await self._orders(replace(portfolio_call, list=ORDERS))
            orders = await copies.replace("transfer_orders", page)
        return SyncedCopies(portfolio, account, orders)

    async def _orders(self, call: Call) -> Page:
        """All transfer orders, as one page of changes."""
        items, headers = await self._http.get(call, {}, check_orders)
        state = _state_of(len(items), headers)
        return Page(items, [], state.version or "", False, state)

    async def _changes(self, call: Call, cursor: Optional[str]) -> AsyncGenerator[Page, None]:
        since, has_more = cursor, True
        while has_more:
            query: Query = {"since": "start" if since is None else since, "limit": self._page_size}
            body, headers = await self._http.get(
                call, query, lambda body: check_page(_NAMES[call.list], body, True)
            )
            since, has_more = body["nextCursor"], body["hasMore"]
            state = _state_of(body["totalItems"], headers)
            yield Page(body["items"], body["removed"], body["nextCursor"], has_more, state)


def _state_of(total: int, headers: Headers) -> CopyState:
    return CopyState(headers.get("data-version"), total, refreshed_at_of(headers))


class _Lines:
    """Rows of an export, whose parts end anywhere."""

    def __init__(self, list_: str, total: Optional[str]) -> None:
        self._list = list_
        self.ended = False
        self._total = total
        self._count = 0
        self._rest = b""

    def read(self, response: Response) -> List[Any]:
        part = response.read()
        self.ended = not part
        lines = (self._rest + part).split(b"\n")
        self._rest = lines.pop()
        self._count += len(lines)
        # A proxy may end the connection without an error.
        if self.ended and (self._rest or self._total not in (None, str(self._count))):
            raise EOFError
        if len(self._rest) > _MAX_ROW_BYTES:
            raise UnusableResponse("A row of the response is too long")
        return [self._row(line) for line in lines]

    def _row(self, line: bytes) -> Any:
        try:
            row = from_json(line.decode())
        except RecursionError:
            raise too_deep() from None
        except ValueError:
            raise UnusableResponse("The response is not from the service") from None
        check_row(self._list, row)
        return row
