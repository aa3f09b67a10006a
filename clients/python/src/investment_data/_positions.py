from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import (
    Any,
    AsyncIterable,
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
    List,
    Mapping,
    Optional,
    Protocol,
    Tuple,
    TypeVar,
    Union,
    overload,
)

from ._names import Naming
from ._options import Day, calendar_day
from ._position_walk import History, PositionCheck, PositionReason, PositionStatus, Walks
from ._rows import AssetsTransferOrder, PortfolioTransaction

Result = TypeVar("Result")


@dataclass(frozen=True)
class Position:
    """Position of an investment in a portfolio: see positions()."""

    portfolio_id: str
    #: None for the rows that name no investment.
    investment: Optional[str]
    #: Shares; None if the rows do not tell them.
    shares: Optional[Decimal]
    #: Name that the app gives. Otherwise, name of the transfer orders of the copy, if they agree; or else None.
    name: Optional[str]
    #: ISIN of the transfer orders of the copy, if they agree; otherwise None.
    isin: Optional[str]
    #: Whether the history until that day is complete.
    status: PositionStatus
    #: See ``PositionCheck.reason``.
    reason: Optional[PositionReason] = None
    #: See ``PositionCheck.reasons``.
    reasons: Tuple[PositionReason, ...] = ()


@dataclass(frozen=True)
class PositionsOfDay:
    """Positions at the end of a day: see positions_by_day()."""

    #: YYYY-MM-DD.
    day: str
    positions: List[Position]


class _Store(Protocol):
    def portfolio_transactions(self) -> Iterable[PortfolioTransaction]: ...


class _StoreWithOrders(_Store, Protocol):
    def transfer_orders(self) -> Iterable[AssetsTransferOrder]: ...


class _AsyncStore(Protocol):
    def portfolio_transactions(self) -> AsyncIterator[PortfolioTransaction]: ...


class _AsyncStoreWithOrders(_AsyncStore, Protocol):
    def transfer_orders(self) -> AsyncIterator[AssetsTransferOrder]: ...


@overload
def check_positions(store: _Store) -> List[PositionCheck]: ...
@overload
def check_positions(store: _AsyncStore) -> Awaitable[List[PositionCheck]]: ...
def check_positions(
    store: Any,
) -> Union[List[PositionCheck], Awaitable[List[PositionCheck]]]:
    """Checks whether the history is complete.

    Compares the position that a row with the effect ``=`` states with the shares that the rows before it
    add up to. Rows of a day without hours have no order, so any position of the day may be the stated one.
    DIVIDENDS and COUPON may also state a position of the eight weeks before, because they pay for the shares
    of the record date. It never guesses: see ``notVerifiable``.
    """
    rows = store.portfolio_transactions()
    if not isinstance(rows, AsyncIterable):
        return _check_rows(rows)

    async def check() -> List[PositionCheck]:
        return _check_rows([row async for row in rows])

    return check()


def _check_rows(rows: Iterable[PortfolioTransaction]) -> List[PositionCheck]:
    walks = Walks(History(rows))
    walks.until(None)
    return walks.checks()


@overload
def positions(
    store: _StoreWithOrders,
    *,
    at: Optional[Day] = None,
    names: Optional[Mapping[str, str]] = None,
) -> List[Position]: ...
@overload
def positions(
    store: _AsyncStoreWithOrders,
    *,
    at: Optional[Day] = None,
    names: Optional[Mapping[str, str]] = None,
) -> Awaitable[List[Position]]: ...
def positions(
    store: Any, *, at: Optional[Day] = None, names: Optional[Mapping[str, str]] = None
) -> Union[List[Position], Awaitable[List[Position]]]:
    """Returns the shares of each investment in each portfolio at the end of a day, also where none are left.

    Shares of None are not zero: the rows do not tell them.

    :param at: last day that counts; None: all rows
    :param names: names of investments that your app knows, by identifier. They come before those of
        transfer orders.
    """
    last_day = None if at is None else calendar_day("at", at)

    def work(
        rows: Iterable[PortfolioTransaction], orders: Iterable[AssetsTransferOrder]
    ) -> List[Position]:
        walks = Walks(History(rows))
        walks.until(last_day)
        return _positions_of(walks, Naming(orders, names))

    return _with_rows(store, work)


@overload
def positions_by_day(
    store: _StoreWithOrders,
    *,
    from_: Day,
    to: Day,
    names: Optional[Mapping[str, str]] = None,
) -> List[PositionsOfDay]: ...
@overload
def positions_by_day(
    store: _AsyncStoreWithOrders,
    *,
    from_: Day,
    to: Day,
    names: Optional[Mapping[str, str]] = None,
) -> Awaitable[List[PositionsOfDay]]: ...
def positions_by_day(
    store: Any, *, from_: Day, to: Day, names: Optional[Mapping[str, str]] = None
) -> Union[List[PositionsOfDay], Awaitable[List[PositionsOfDay]]]:
    """Returns positions() at the end of each day of a range.

    It reads the store once, and walks its rows once; or once more for each type whose outgoing rows have both
    signs from one of these days on.

    :param from_: first day
    :param to: last day
    :param names: see positions()
    """
    days = _days_between(calendar_day("from_", from_), calendar_day("to", to))

    def work(
        rows: Iterable[PortfolioTransaction], orders: Iterable[AssetsTransferOrder]
    ) -> List[PositionsOfDay]:
        walks, naming = Walks(History(rows)), Naming(orders, names)
        found: List[PositionsOfDay] = []
        for day in days:
            walks.until(day)
            found.append(PositionsOfDay(day, _positions_of(walks, naming)))
        return found

    return _with_rows(store, work)


def _days_between(first: str, last: str) -> List[str]:
    """Each day from the first to the last one."""
    if first > last:
        raise ValueError("from_ must not be after to")
    ordinals = range(date.fromisoformat(first).toordinal(), date.fromisoformat(last).toordinal() + 1)
    return [date.fromordinal(ordinal).isoformat() for ordinal in ordinals]


def _with_rows(
    store: Any,
    work: Callable[[Iterable[PortfolioTransaction], Iterable[AssetsTransferOrder]], Result],
) -> Union[Result, Awaitable[Result]]:
    """Reads the rows of a store, and passes them on."""
    rows, orders = store.portfolio_transactions(), store.transfer_orders()
    if not isinstance(rows, AsyncIterable):
        return work(rows, orders)

    async def read() -> Result:
        all_rows = [row async for row in rows]
        return work(all_rows, [order async for order in orders])

    return read()


def _positions_of(walks: Walks, naming: Naming) -> List[Position]:
    return [
        Position(
            check.portfolio_id,
            check.investment,
            check.position,
            *naming.of(check.investment),
            check.status,
            check.reason,
            check.reasons,
        )
        for check in walks.checks()
    ]
