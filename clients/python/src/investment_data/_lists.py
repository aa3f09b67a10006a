import re
import urllib.parse
from dataclasses import dataclass, replace
from typing import Any, AsyncGenerator, Callable, Dict, Generic, List, Optional, TypeVar, Union

from ._connections import Response
from ._errors import CursorExpiredError, TransportError, Facts
from ._http import CSV, NDJSON, Call, Http, Query, parse
from ._options import Secret, visible_ascii
from ._store import CopyResult, CopyStore, Maybe, sync_copy, value_of

Row = TypeVar("Row")

PORTFOLIO = "portfolios/transactions"
ACCOUNT = "accounts/transactions"


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


@dataclass(frozen=True)
class CountDiffers:
    """The copy has another number of rows. Delete it and its cursor, and synchronize again."""

    total_items: int
    count: int


SyncResult = Union[Complete, CursorExpired, CountDiffers]


@dataclass(frozen=True)
class SyncedCopies:
    """Result of sync_transactions()."""

    portfolio: CopyResult
    account: CopyResult


class Lists:
    """Requests of one connection, for both clients."""

    def __init__(self, http: Http, page_size: int, token: str, trace_id: Optional[str]) -> None:
        if not isinstance(token, str):
            raise TypeError("the token of a connection must be a text")
        # A path would lose `.` and `..`.
        if re.fullmatch(r"\.{0,2}", token) or re.search("[\ud800-\udfff]", token):
            raise ValueError("the token of a connection must be a text other than '.' and '..'")
        if trace_id is not None:
            visible_ascii("trace_id", trace_id, 128)
        self._http = http
        self._page_size = page_size
        self._token = Secret(urllib.parse.quote(token, safe=""))
        self._trace_id = trace_id

    def _call(self, list_: str) -> Call:
        return self._http.call(self._token, list_, self._trace_id)

    async def rows(
        self, list_: str, days: Dict[str, Optional[str]]
    ) -> AsyncGenerator[List[Any], None]:
        """Yields the rows of each page."""
        call = self._call(list_)
        number = 0
        version: Optional[str] = None
        while True:
            query: Query = {**days, "limit": self._page_size, "page": number, "version": version}
            page, new_version = await self._http.get(call, query)
            yield page["items"]
            number += 1
            if number * page["limit"] >= page["totalItems"]:
                return
            version = version or new_version
            if version is None:
                facts = Facts(200, trace_id=call.trace_id)
                raise TransportError(
                    "unexpected_response", "The response has no Data-Version", facts
                )

    async def orders(self) -> List[Any]:
        orders: List[Any] = (await self._http.get(self._call("assets-transfer"), {}))[0]
        return orders

    async def export(
        self, list_: str, days: Dict[str, Optional[str]]
    ) -> AsyncGenerator[List[Any], None]:
        """Yields the rows of each part of an export."""
        call = self._call(list_)
        response = await self._http.open(call, days, NDJSON)
        lines = _Lines(response.headers.get("x-total-count"))
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
        total = 0
        try:
            async for page in self._changes(self._call(list_), cursor):
                cursor, total = page["nextCursor"], page["totalItems"]
                await value_of(apply(Changes(page["items"], page["removed"], page["nextCursor"])))
        except CursorExpiredError:
            return CursorExpired()
        counted = total if count is None else await value_of(count())
        return Complete(cursor or "", total) if counted == total else CountDiffers(total, counted)

    async def sync_store(self, store: CopyStore) -> SyncedCopies:
        portfolio = self._call(PORTFOLIO)
        account = replace(portfolio, list=ACCOUNT)
        return SyncedCopies(
            await sync_copy(
                store,
                "portfolio_transactions",
                "transactionId",
                lambda since: self._changes(portfolio, since),
            ),
            await sync_copy(
                store,
                "account_transactions",
                "movementId",
                lambda since: self._changes(account, since),
            ),
        )

    async def _changes(self, call: Call, cursor: Optional[str]) -> AsyncGenerator[Any, None]:
        since, has_more = cursor, True
        while has_more:
            query: Query = {"since": "start" if since is None else since, "limit": self._page_size}
            page, _ = await self._http.get(call, query)
            yield page
            since, has_more = page["nextCursor"], page["hasMore"]


class _Lines:
    """Rows of an export, whose parts end anywhere."""

    def __init__(self, total: Optional[str]) -> None:
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
        return [parse(line) for line in lines]
