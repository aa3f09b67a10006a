"""Gains by FIFO in the currency of the rates, by the rules of docs/sandbox.md. Other countries have other rules."""

from collections import defaultdict
from fractions import Fraction
from typing import DefaultDict, Iterable, Iterator, List, NamedTuple, Tuple

from investment_data import PortfolioTransaction, chronological, effective_day, position_effect
from rates import Rates, number


class Lot(NamedTuple):
    """Shares of one purchase, with its day."""

    day: str
    shares: Fraction
    cost: Fraction


class Lots:
    """Lots of each investment in each portfolio, the oldest purchase first."""

    def __init__(self) -> None:
        self._held: DefaultDict[Tuple[object, object], List[Lot]] = defaultdict(list)

    def put(self, row: PortfolioTransaction, *lots: Lot) -> None:
        held = self._held[row["portfolioId"], row["investment"]]
        held += lots
        held.sort(key=lambda lot: lot.day)

    def take(self, row: PortfolioTransaction) -> List[Lot]:
        """Removes the shares of a row from the oldest lots.

        :raises ValueError: there are not as many: this is a short sale, or rows are missing
        """
        held = self._held[row["portfolioId"], row["investment"]]
        left, taken = number(row, "titles"), []
        while left:
            if not held:
                problem = "more shares leave than had arrived."
                meaning = "A short sale has other rules, and a history may lack its beginning."
                raise ValueError(f"{row['type']} of {effective_day(row)}: {problem} {meaning}")
            day, shares, cost = held.pop(0)
            part = min(shares, left)
            taken.append(Lot(day, part, cost * part / shares))
            if part < shares:
                held.insert(0, Lot(day, shares - part, cost - cost * part / shares))
            left -= part
        return taken


def gains_by_fifo(
    transactions: Iterable[PortfolioTransaction], rates: Rates
) -> Iterator[Tuple[PortfolioTransaction, Fraction]]:
    """Yields each sale, and each cash payment of a merger, with its gain."""
    rows, lots = chronological(transactions), Lots()
    money = rates.convert

    def charges(row: PortfolioTransaction) -> Fraction:
        return money(row, "commission") + money(row, "taxes")

    by_id = {row["transactionId"]: row for row in rows}
    cash_rows = {row["relatedTransaction"]: row for row in rows if row["type"] == "COMPENSATION"}
    for row in rows:
        # Negative titles of any row may cancel another row.
        number(row, "titles")
        effect = position_effect(row["type"])
        other = by_id.get(row["relatedTransaction"] or "")
        is_pair = other is not None and {effect, position_effect(other["type"])} == {"+", "-"}
        if effect == "+" and not is_pair:
            lots.put(row, Lot(effective_day(row), number(row, "titles"), money(row, "amount") + charges(row)))
        if effect != "-":
            continue
        taken = lots.take(row)
        cost = sum((lot.cost for lot in taken), Fraction(0))
        if other is None or not is_pair:
            yield row, money(row, "amount") - charges(row) - cost
        elif row["type"] == "RIGHTS_CONVERSION_SELL":
            paid = money(other, "amount") + charges(other)
            lots.put(other, Lot(effective_day(other), number(other, "titles"), cost + paid))
        else:
            # The shares become others, and keep their days and costs. Cash sells a part of them.
            cash_row, kept = cash_rows.get(row["transactionId"]), Fraction(1)
            if cash_row:
                cash, value = money(cash_row, "amount"), money(other, "amount")
                if not value + cash:
                    day = f"{cash_row['type']} of {effective_day(cash_row)}"
                    raise ValueError(f"{day}: neither cash nor shares have an amount.")
                kept = value / (value + cash)
                yield cash_row, cash - cost * (1 - kept)
            lots.put(other, *(Lot(lot.day, swapped(lot, row, other), lot.cost * kept) for lot in taken))


def swapped(lot: Lot, row: PortfolioTransaction, other: PortfolioTransaction) -> Fraction:
    return lot.shares * number(other, "titles") / number(row, "titles")


def cents(amount: Fraction) -> str:
    size = int(abs(amount) * 100 + Fraction(1, 2))
    return f"{'-' if amount < 0 and size else ''}{size // 100}.{size % 100:02}"
