from collections import defaultdict
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from itertools import groupby
from typing import DefaultDict, Dict, Iterable, List, Literal, Optional, Set, Tuple, Union

from ._chronological import chronological, effective_day
from ._decimals import EXACT
from ._rows import PortfolioTransaction
from ._types import position_effect

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
    #: All reasons, each once, from the first one, which is ``reason``. Empty if there is none.
    reasons: Tuple[PositionReason, ...] = ()


class History:
    """Rows of a connection, by day."""

    def __init__(self, rows: Iterable[PortfolioTransaction]) -> None:
        by_day: DefaultDict[str, List[PortfolioTransaction]] = defaultdict(list)
        for row in rows:
            by_day[effective_day(row)].append(row)
        # Rows of other days have no effect on the order of a day, so a history until a day is a part of the whole.
        self.days = [(day, chronological(by_day[day])) for day in sorted(by_day)]
        #: Types whose outgoing rows have both signs, with the first day of the second sign.
        self.mixed_since: Dict[str, str] = {}
        signs: Set[Tuple[str, bool]] = set()
        for day, rows_of_day in self.days:
            for row in rows_of_day:
                type_, titles = row["type"], row["titles"]
                if not titles or position_effect(type_) != "-":
                    continue
                signs.add((type_, titles < 0))
                if (type_, titles > 0) in signs:
                    self.mixed_since.setdefault(type_, day)


class Walks:
    """Walks a history day by day, with a walk for each investment in each portfolio."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._walks: Dict[Tuple[str, str], _Walk] = {}
        self._mixed: Set[str] = set()
        self._next_day = 0

    def until(self, last: Optional[str]) -> None:
        """Walks on until the end of a day; None: until the last one."""

        def is_in_time(day: str) -> bool:
            return last is None or day <= last

        mixed_since = self._history.mixed_since.items()
        mixed = {type_ for type_, since in mixed_since if is_in_time(since)}
        if len(mixed) > len(self._mixed):
            # Earlier rows of these types have another meaning now.
            self._mixed = mixed
            self._walks.clear()
            self._next_day = 0
        days = self._history.days
        while self._next_day < len(days) and is_in_time(days[self._next_day][0]):
            day, rows = days[self._next_day]
            # sorted() keeps the order of equal rows.
            for key, group in groupby(sorted(rows, key=_key_of), _key_of):
                self._walk(key, day, list(group))
            self._next_day += 1

    def _walk(self, key: Tuple[str, str], day: str, rows: List[PortfolioTransaction]) -> None:
        if key not in self._walks:
            self._walks[key] = _Walk(rows[0], self._mixed)
        self._walks[key].day(day, rows)

    def checks(self) -> List[PositionCheck]:
        """Results by portfolio and investment."""
        return [self._walks[key].check() for key in sorted(self._walks)]


def _key_of(row: PortfolioTransaction) -> Tuple[str, str]:
    return row["portfolioId"], row["investment"] or ""


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

    def __init__(self, first_row: PortfolioTransaction, mixed: Set[str]) -> None:
        self._portfolio_id = first_row["portfolioId"]
        self._investment = first_row["investment"]
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
        self._first_gap: Optional[Gap] = None
        #: Why the history is not verifiable, from the first such row.
        # A dictionary keeps the order.
        self._reasons: Dict[PositionReason, None] = {}
        self._verified_rows = 0
        #: Day from which the position is known, and the stated positions since then that are right.
        self._from = effective_day(first_row)
        self._right_rows = 0
        #: Result until the last day.
        self._check: Optional[PositionCheck] = None

    def check(self) -> PositionCheck:
        if self._check is None:
            self._check = self._new_check()
        return self._check

    def _new_check(self) -> PositionCheck:
        reasons = tuple(self._reasons)
        status: PositionStatus = "complete"
        if self._first_gap:
            status = "gap"
        elif reasons or not self._verified_rows:
            status = "notVerifiable"
            reasons = reasons or ("noStatement",)
        return PositionCheck(
            self._portfolio_id,
            self._investment,
            status,
            self._verified_rows,
            self._from if self._right_rows else None,
            self._first_gap,
            self._position(),
            reasons[0] if reasons else None,
            reasons,
        )

    def _position(self) -> Optional[Decimal]:
        if len(self._starts) != 1 or self._is_short:
            return None
        return EXACT.add(self._starts[0], self._sum)

    def day(self, day: str, rows: List[PortfolioTransaction]) -> None:
        def hour(row: PortfolioTransaction) -> Optional[str]:
            return row["operationDateHour"]

        self._check = None
        # Rows of one hour have no order. If a row has no hour, the rows of its day have none.
        is_ordered = all(hour(row) is not None for row in rows)
        moments = [list(moment) for _, moment in groupby(rows, hour)] if is_ordered else [rows]
        for moment in moments:
            self._moment(day, moment)
        self._ends.append((day, self._sum))
        if self._starts and all(EXACT.add(start, self._sum) < 0 for start in self._starts):
            self._reasons["shortPosition"] = None
            self._is_short = True

    def _moment(self, day: str, rows: List[PortfolioTransaction]) -> None:
        """Adds the changes of rows without an order, and compares the positions that they state."""
        # A row may state any position of the moment.
        sums = [self._sum]
        statements: List[_Statement] = []
        doubts: List[PositionReason] = []
        for row in rows:
            change = _change_of(row, self._mixed)
            if not isinstance(change, Decimal):
                doubts.append(change)
                continue
            self._sum = EXACT.add(self._sum, change)
            sums.append(self._sum)
            if position_effect(row["type"]) == "=" and row["titles"] is not None:
                statements.append(_Statement(row["type"], row["titles"], self._sum))
        if doubts:
            self._lose(day, doubts)
        else:
            self._compare(day, statements, sums)

    def _lose(self, day: str, reasons: List[PositionReason]) -> None:
        """Forgets the position after rows that do not tell how they change it."""
        self._reasons.update(dict.fromkeys(reasons))
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
            self._lose(day, ["differentStatements"])
            return
        self._is_short = False
        right = _intersection(self._starts, starts)
        if right:
            self._starts = right
            self._verified_rows += len(known)
            self._right_rows += len(known)
            return
        if self._starts and self._first_gap is None:
            self._first_gap = self._gap_of(day, known, sums)
        self._starts = starts
        self._from = day
        self._right_rows = 0

    def _may_precede_loss(self, type_: str, day: str) -> bool:
        """For a payment whose record date may be before a row that does not tell how it changes the position."""
        return type_ in _PAYMENTS and _record_dates_from(day) <= self._unknown_day

    def _starts_of(self, statement: _Statement, day: str, sums: List[Decimal]) -> List[Decimal]:
        """Starts that explain the position that a row states."""
        since = _record_dates_from(day) if statement.type_ in _PAYMENTS else day
        possible = [*sums, *self._sums_since(since, day)]
        # A dictionary keeps the order.
        return list(dict.fromkeys(EXACT.subtract(statement.shares, sum_) for sum_ in possible))

    def _gap_of(self, day: str, statements: List[_Statement], sums: List[Decimal]) -> Gap:
        """The first statement that no possible start explains."""

        def is_wrong(each: _Statement) -> bool:
            return not _intersection(self._starts, self._starts_of(each, day, sums))

        wrong = next(filter(is_wrong, statements), statements[0])
        found = EXACT.add(self._starts[0], wrong.sum_)
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
