from dataclasses import dataclass
from decimal import Context, Decimal
from itertools import groupby
from typing import Any, Iterable, Iterator, List, Literal, Optional, Protocol, Set, Tuple, TypeVar

from ._rows import PortfolioTransaction
from ._types import position_effect

Row = TypeVar("Row")

#: Keeps every digit: a number of shares has 38 digits before the point and 38 after it.
_EXACT = Context(prec=200)
#: Types that add shares without the loss of others, also if they name a row that removes shares.
_GRANTS = ("RIGHTS_ISSUE", "SPINOFF")


@dataclass(frozen=True)
class Gap:
    """The first row that contradicts the rows before it.

    ``expected`` - ``found`` shares are missing before ``day``. Both are texts.
    """

    day: str
    #: Shares that the row states; 0 if more shares left than had arrived.
    expected: str
    #: Shares that the rows before it add up to.
    found: str


@dataclass(frozen=True)
class PositionCheck:
    """Result of check_positions() for an investment in a portfolio."""

    portfolio_id: str
    #: None for the rows that name no investment.
    investment: Optional[str]
    #: ``complete``: each stated position is right. ``gap``: one is not. ``notVerifiable``: no row states a
    #: position, or a row that changes it has no shares.
    status: Literal["complete", "gap", "notVerifiable"]
    #: Rows whose stated position is right.
    verified_rows: int
    #: First day from which all stated positions are right; None if there is none.
    verified_from: Optional[str]
    first_gap: Optional[Gap] = None


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
        return _day_of(row), part, hour or "", rank, _id_of(row)

    return sorted(all_, key=order)


class _Store(Protocol):
    def portfolio_transactions(self) -> Iterable[PortfolioTransaction]: ...


def check_positions(store: _Store) -> List[PositionCheck]:
    """Checks whether the history is complete.

    Compares the position that a row with the effect ``=`` states with the shares that the rows before it
    add up to. Rows of a day without hours have no order, so any position of the day may be the stated one.
    It never guesses: see ``notVerifiable``.
    """

    def key(row: PortfolioTransaction) -> Tuple[str, str]:
        return row["portfolioId"], row["investment"] or ""

    # sorted() keeps the order of equal rows.
    rows = sorted(chronological(store.portfolio_transactions()), key=key)
    return [_check(list(group)) for _, group in groupby(rows, key)]


def _check(rows: List[PortfolioTransaction]) -> PositionCheck:
    walk = _Walk(_day_of(rows[0]))
    for day, group in groupby(rows, _day_of):
        walk.day(day, list(group))
    is_complete = walk.verified_rows > 0 and not walk.is_unknown
    return PositionCheck(
        rows[0]["portfolioId"],
        rows[0]["investment"],
        "gap" if walk.first_gap else "complete" if is_complete else "notVerifiable",
        walk.verified_rows,
        walk.start if walk.right_rows else None,
        walk.first_gap,
    )


class _Walk:
    """Walks the days of an investment, and compares the stated positions."""

    def __init__(self, first_day: str) -> None:
        self.verified_rows = 0
        self.first_gap: Optional[Gap] = None
        #: True if a row without shares, or of an unknown effect, has changed the position.
        self.is_unknown = False
        #: None after such a row, until a row states the position.
        self._position: Optional[Decimal] = Decimal(0)
        #: Day from which the position is known, and the stated positions since then that are right.
        self.start = first_day
        self.right_rows = 0

    def day(self, day: str, rows: List[PortfolioTransaction]) -> None:
        is_ordered = all(row["operationDateHour"] is not None for row in rows)
        possible = [] if is_ordered else list(_positions_of(self._position, rows))
        for row in rows:
            stated = row["titles"]
            if position_effect(row["type"]) != "=" or row["investment"] is None:
                self._position = _after(self._position, row)
                if self._position is None:
                    self.is_unknown = True
                elif not is_ordered:
                    possible.append(self._position)
            elif stated is not None:
                if self._position is not None and stated in (self._position, *possible):
                    self.verified_rows += 1
                    self.right_rows += 1
                else:
                    if self._position is not None:
                        self._gap(day, stated, self._position)
                    self._restart(day, stated)
                    possible = []
        if self._position is not None and self._position < 0:
            self._gap(day, Decimal(0), self._position)
            self._restart(day, None)

    def _gap(self, day: str, expected: Decimal, found: Decimal) -> None:
        self.first_gap = self.first_gap or Gap(day, format(expected, "f"), format(found, "f"))

    def _restart(self, day: str, position: Optional[Decimal]) -> None:
        self._position = position
        self.start = day
        self.right_rows = 0


def _positions_of(
    position: Optional[Decimal], rows: List[PortfolioTransaction]
) -> Iterator[Decimal]:
    """All positions of a day without an order."""
    for row in [None, *rows]:
        position = _after(position, row) if row else position
        if position is not None:
            yield position


def _after(position: Optional[Decimal], row: PortfolioTransaction) -> Optional[Decimal]:
    """The position after a row; None if the row does not tell it."""
    effect = None if row["investment"] is None else position_effect(row["type"])
    titles = row["titles"]
    if effect == "=":
        return position
    if position is None or effect is None or titles is None:
        return None
    # The sign is the institution's; the type has the direction.
    size = titles.copy_abs()
    return _EXACT.add(position, size) if effect == "+" else _EXACT.subtract(position, size)


def _id_of(row: Any) -> str:
    id_: str = row["transactionId"] if "transactionId" in row else row["movementId"]
    return id_


def _day_of(row: Any) -> str:
    return row["operationDateDay"] or row["valueDateDay"] or ""
