from collections import defaultdict
from dataclasses import dataclass
from datetime import date
from decimal import Context, Decimal, Inexact
from itertools import groupby
from typing import (
    Any,
    AsyncIterable,
    AsyncIterator,
    Awaitable,
    DefaultDict,
    Iterable,
    Iterator,
    List,
    Literal,
    Optional,
    Protocol,
    Set,
    Tuple,
    TypeVar,
    Union,
    overload,
)

from ._options import Day
from ._options import day as text_of_day
from ._rows import AssetsTransferOrder, PortfolioTransaction
from ._types import position_effect

Row = TypeVar("Row")

#: Keeps every digit: a decimal has 38 digits before the point and 38 after it. More digits would be an error.
_EXACT = Context(prec=1000, traps=[Inexact])
#: Types that add shares without the loss of others, also if they name a row that removes shares.
_GRANTS = ("RIGHTS_ISSUE", "SPINOFF")
#: Types of payments for the shares of an earlier day, the record date.
_PAYMENTS = ("DIVIDENDS", "COUPON")
#: Longest time from the record date to the payment that a check allows for.
_RECORD_DATE_DAYS = 8 * 7

#: Whether the rows of an investment explain each other: see ``PositionCheck.status``.
PositionStatus = Literal["complete", "gap", "notVerifiable"]

#: Why a history is not verifiable.
#:
#: - ``noStatement``: no row states a position.
#: - ``noShares``: a row that changes the position has no ``titles``.
#: - ``noEffect``: the effect of a row on the position is not defined, as for EXPIRATION.
#: - ``noInvestment``: the rows name no investment.
#: - ``negativeShares``: an incoming row, or one that states a position, has negative ``titles``. It may
#:   cancel another row.
#: - ``bothSigns``: outgoing rows of one type have positive ``titles``, and others negative ones. One of the
#:   signs may mean a cancellation.
#: - ``shortPosition``: more shares left than had arrived. This is a short sale, or rows are missing.
#: - ``differentStatements``: rows of one moment state different positions. Their order is not known.
PositionReason = Literal[
    "noStatement",
    "noShares",
    "noEffect",
    "noInvestment",
    "negativeShares",
    "bothSigns",
    "shortPosition",
    "differentStatements",
]


@dataclass(frozen=True)
class Gap:
    """The first row that contradicts the rows before it.

    ``expected`` - ``found`` shares are missing before ``day``. Both are texts.
    """

    day: str
    #: Shares that the row states.
    expected: str
    #: Shares that the rows before it add up to.
    found: str


@dataclass(frozen=True)
class PositionCheck:
    """Result of check_positions() for an investment in a portfolio."""

    portfolio_id: str
    #: None for the rows that name no investment.
    investment: Optional[str]
    #: ``complete``: each stated position is right. ``gap``: one is not, so rows are missing.
    #: ``notVerifiable``: the rows do not tell.
    status: PositionStatus
    #: Rows whose stated position is right.
    verified_rows: int
    #: First day from which all stated positions are right; None if there is none.
    verified_from: Optional[str]
    #: None unless the status is ``gap``.
    first_gap: Optional[Gap] = None
    #: Shares after the last row; None if the rows do not tell them.
    position: Optional[Decimal] = None
    #: Why the rows do not tell all, if the status is ``notVerifiable``; with a gap there may be one, too.
    reason: Optional[PositionReason] = None


@dataclass(frozen=True)
class Position:
    """Position of an investment in a portfolio: see positions()."""

    portfolio_id: str
    #: None for the rows that name no investment.
    investment: Optional[str]
    #: Shares; None if the rows do not tell them.
    shares: Optional[Decimal]
    #: Name and ISIN, if transfer orders of the copy have the investment and agree; otherwise None.
    name: Optional[str]
    isin: Optional[str]
    #: Whether the history until that day is complete.
    status: PositionStatus
    #: See ``PositionCheck.reason``.
    reason: Optional[PositionReason] = None


def exact_sum(decimals: Iterable[Decimal]) -> Decimal:
    """Adds decimals without rounding. ``sum()`` rounds to the precision of the context, 28 digits by default.

    Leave out None yourself: the sum of an unknown amount is not known.

    :raises TypeError: a value is not a Decimal
    """
    total = Decimal(0)
    for decimal in decimals:
        if not isinstance(decimal, Decimal) or not decimal.is_finite():
            raise TypeError("exact_sum() adds values of the type Decimal; leave out None")
        total = _EXACT.add(total, decimal)
    return total


def effective_day(row: Any) -> str:
    """Returns the effective day of a transaction: its operation date, or else its value date."""
    day: str = row["operationDateDay"] or row["valueDateDay"] or ""
    return day


def chronological(rows: Iterable[Row]) -> List[Row]:
    """Returns transactions with the oldest first. Rows of a day have the order of their hours.

    Without hours: of two related rows, the outgoing one is first; other incoming rows come before outgoing
    ones.
    """
    all_: List[Any] = list(rows)
    effects = {_id_of(row): position_effect(row["type"]) for row in all_}
    paired: Set[Any] = set()
    for row in all_:
        related = row.get("relatedTransaction")
        if {effects[_id_of(row)], effects.get(related)} == {"+", "-"}:
            paired.update((_id_of(row), related))

    def order(row: Any) -> Tuple[str, str, str, int, str]:
        """A sale without an hour is the last row of its day, others are the first."""
        effect, is_paired = effects[_id_of(row)], _id_of(row) in paired
        rank = 3
        if effect == "+":
            rank = 2 if is_paired and row["type"] not in _GRANTS else 0
        elif effect == "-":
            rank = 1 if is_paired else 4
        hour = row["operationDateHour"]
        part = "1" if hour is not None else "2" if rank == 4 else "0"
        return effective_day(row), part, hour or "", rank, _id_of(row)

    return sorted(all_, key=order)


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


@overload
def positions(store: _StoreWithOrders, *, at: Optional[Day] = None) -> List[Position]: ...
@overload
def positions(
    store: _AsyncStoreWithOrders, *, at: Optional[Day] = None
) -> Awaitable[List[Position]]: ...
def positions(
    store: Any, *, at: Optional[Day] = None
) -> Union[List[Position], Awaitable[List[Position]]]:
    """Returns the shares of each investment in each portfolio at the end of a day, also where none are left.

    Shares of None are not zero: the rows do not tell them.

    :param at: last day that counts; None: all rows
    """
    last_day = text_of_day("at", at)
    rows, orders = store.portfolio_transactions(), store.transfer_orders()
    if not isinstance(rows, AsyncIterable):
        return _positions_of(rows, orders, last_day)

    async def read() -> List[Position]:
        all_rows = [row async for row in rows]
        return _positions_of(all_rows, [order async for order in orders], last_day)

    return read()


def _positions_of(
    rows: Iterable[PortfolioTransaction],
    orders: Iterable[AssetsTransferOrder],
    last_day: Optional[str],
) -> List[Position]:
    until = [row for row in rows if last_day is None or effective_day(row) <= last_day]
    own: DefaultDict[Optional[str], List[AssetsTransferOrder]] = defaultdict(list)
    for order in orders:
        own[order["investment"]].append(order)
    return [
        Position(
            check.portfolio_id,
            check.investment,
            check.position,
            _only_one(order["name"] for order in own[check.investment]),
            _only_one(order["isin"] for order in own[check.investment]),
            check.status,
            check.reason,
        )
        for check in _check_rows(until)
    ]


def _only_one(texts: Iterable[Optional[str]]) -> Optional[str]:
    """The value that all known texts have; None if there is none, or if they differ."""
    known = {text for text in texts if text is not None}
    return known.pop() if len(known) == 1 else None


def _check_rows(all_rows: Iterable[PortfolioTransaction]) -> List[PositionCheck]:
    def key(row: PortfolioTransaction) -> Tuple[str, str]:
        return row["portfolioId"], row["investment"] or ""

    # sorted() keeps the order of equal rows.
    rows = sorted(chronological(all_rows), key=key)
    mixed = _types_with_both_signs(rows)
    return [_check(list(group), mixed) for _, group in groupby(rows, key)]


def _types_with_both_signs(rows: List[PortfolioTransaction]) -> Set[str]:
    negative = {row["type"] for row in rows if row["titles"] is not None and row["titles"] < 0}
    positive = {row["type"] for row in rows if row["titles"] is not None and row["titles"] > 0}
    return negative & positive


def _check(rows: List[PortfolioTransaction], mixed: Set[str]) -> PositionCheck:
    walk = _Walk(effective_day(rows[0]), mixed)
    for day, group in groupby(rows, effective_day):
        walk.day(day, list(group))
    reason = walk.reason
    status: PositionStatus = "complete"
    if walk.first_gap:
        status = "gap"
    elif reason or not walk.verified_rows:
        status = "notVerifiable"
        reason = reason or "noStatement"
    return PositionCheck(
        rows[0]["portfolioId"],
        rows[0]["investment"],
        status,
        walk.verified_rows,
        walk.start_day if walk.right_rows else None,
        walk.first_gap,
        walk.position,
        reason,
    )


@dataclass(frozen=True)
class _Statement:
    """A row that states a position, with the sum of the changes before it."""

    type_: str
    shares: Decimal
    sum_: Decimal


def _intersection(a: List[Decimal], b: List[Decimal]) -> List[Decimal]:
    known = set(b)
    return [each for each in a if each in known]


class _Walk:
    """Walks the days of an investment, and compares the stated positions.

    A position is a start plus the sum of the changes since then. After a payment that contradicts the rows,
    more than one start is possible, because its record date is not known. A later statement chooses.
    """

    def __init__(self, first_day: str, mixed: Set[str]) -> None:
        self.verified_rows = 0
        self.first_gap: Optional[Gap] = None
        #: Why the history is not verifiable, from the first such row.
        self.reason: Optional[PositionReason] = None
        self._mixed = mixed
        #: Possible starts; none if the position is not known.
        self._starts: List[Decimal] = [Decimal(0)]
        self._sum = Decimal(0)
        #: Sums at the ends of the days before, as far as they are known.
        self._ends: List[Tuple[str, Decimal]] = []
        #: Last day with a row that does not tell how it changes the position.
        self._unknown_day = ""
        #: True if the position was negative, and no row has stated it since.
        self._is_short = False
        #: Day from which the position is known, and the stated positions since then that are right.
        self.start_day = first_day
        self.right_rows = 0

    @property
    def position(self) -> Optional[Decimal]:
        if len(self._starts) != 1 or self._is_short:
            return None
        return _EXACT.add(self._starts[0], self._sum)

    def day(self, day: str, rows: List[PortfolioTransaction]) -> None:
        def hour(row: PortfolioTransaction) -> Optional[str]:
            return row["operationDateHour"]

        # Rows of one hour have no order. If a row has no hour, the rows of its day have none.
        is_ordered = all(hour(row) is not None for row in rows)
        moments = [list(moment) for _, moment in groupby(rows, hour)] if is_ordered else [rows]
        for moment in moments:
            self._moment(day, moment)
        self._ends.append((day, self._sum))
        if self._starts and all(_EXACT.add(start, self._sum) < 0 for start in self._starts):
            self.reason = self.reason or "shortPosition"
            self._is_short = True

    def _moment(self, day: str, rows: List[PortfolioTransaction]) -> None:
        """Adds the changes of rows without an order, and compares the positions that they state."""
        # A row may state any position of the moment.
        sums = [self._sum]
        statements: List[_Statement] = []
        doubt: Optional[PositionReason] = None
        for row in rows:
            change = _change_of(row, self._mixed)
            if not isinstance(change, Decimal):
                doubt = doubt or change
                continue
            self._sum = _EXACT.add(self._sum, change)
            sums.append(self._sum)
            if position_effect(row["type"]) == "=" and row["titles"] is not None:
                statements.append(_Statement(row["type"], row["titles"], self._sum))
        if doubt is None:
            self._compare(day, statements, sums)
        else:
            self._lose(day, doubt)

    def _lose(self, day: str, reason: PositionReason) -> None:
        """Forgets the position after a row that does not tell how it changes it."""
        self.reason = self.reason or reason
        self._starts = []
        self._ends = []
        self._unknown_day = day

    def _compare(self, day: str, statements: List[_Statement], sums: List[Decimal]) -> None:
        """Compares the positions that the rows of a moment state. They must have a start in common."""
        known = [each for each in statements if not self._may_precede_loss(each.type_, day)]
        if not known:
            return
        starts, *others = (self._starts_of(each, day, sums) for each in known)
        for each in others:
            starts = _intersection(starts, each)
        if not starts:
            self._lose(day, "differentStatements")
            return
        self._is_short = False
        right = _intersection(self._starts, starts)
        if right:
            self._starts = right
            self.verified_rows += len(known)
            self.right_rows += len(known)
            return
        if self._starts and self.first_gap is None:
            self.first_gap = self._gap_of(day, known, sums)
        self._starts = starts
        self.start_day = day
        self.right_rows = 0

    def _may_precede_loss(self, type_: str, day: str) -> bool:
        """For a payment whose record date may be before a row that does not tell how it changes the position."""
        return type_ in _PAYMENTS and _record_dates_from(day) <= self._unknown_day

    def _starts_of(self, statement: _Statement, day: str, sums: List[Decimal]) -> List[Decimal]:
        """Starts that explain the position that a row states."""
        since = _record_dates_from(day) if statement.type_ in _PAYMENTS else day
        possible = [*sums, *self._sums_since(since, day)]
        # A dictionary keeps the order.
        return list(dict.fromkeys(_EXACT.subtract(statement.shares, sum_) for sum_ in possible))

    def _gap_of(self, day: str, statements: List[_Statement], sums: List[Decimal]) -> Gap:
        """The first statement that no possible start explains."""

        def is_wrong(each: _Statement) -> bool:
            return not _intersection(self._starts, self._starts_of(each, day, sums))

        wrong = next(filter(is_wrong, statements), statements[0])
        found = _EXACT.add(self._starts[0], wrong.sum_)
        return Gap(day, format(wrong.shares, "f"), format(found, "f"))

    def _sums_since(self, since: str, day: str) -> List[Decimal]:
        """Sums at the ends of the days from ``since``, with the one before; not that of ``day``."""
        if since == day:
            return []
        before = [sum_ for end, sum_ in self._ends if end < since]
        return before[-1:] + [sum_ for end, sum_ in self._ends if end >= since]


def _record_dates_from(day: str) -> str:
    """First day that may be the record date of a payment."""
    ordinal = date.fromisoformat(day).toordinal() - _RECORD_DATE_DAYS
    return date.fromordinal(max(1, ordinal)).isoformat()


def _change_of(row: PortfolioTransaction, mixed: Set[str]) -> Union[Decimal, PositionReason]:
    """The change of the position by a row, or the reason why the row does not tell it."""
    if row["investment"] is None:
        return "noInvestment"
    effect, titles = position_effect(row["type"]), row["titles"]
    if effect == "=":
        # Negative shares may cancel a row before it.
        return "negativeShares" if titles is not None and titles < 0 else Decimal(0)
    if effect is None:
        return "noEffect"
    if titles is None:
        return "noShares"
    if effect == "+":
        return "negativeShares" if titles < 0 else titles
    # Many institutions write outgoing shares with a minus. One sign for a type is no doubt.
    if row["type"] in mixed:
        return "bothSigns"
    return titles.copy_abs().copy_negate()


def _id_of(row: Any) -> str:
    id_: str = row["transactionId"] if "transactionId" in row else row["movementId"]
    return id_
