"""Amounts in euros, by the base amounts and the rates of the rows."""

from fractions import Fraction
from typing import Any, Iterable, Literal, Optional

from investment_data import PortfolioTransaction, effective_day

Direction = Literal["divisor", "factor"]

#: A rate is right if it gives the base amount with this error, because institutions round.
TOLERANCE = Fraction(1, 100)
#: The other direction must be wrong by ten times as much: a rate near 1 tells nothing.
CLEARLY = 10


class Rates:
    """Converts amounts to euros.

    Institutions differ in what ``exchangeRate`` is: a divisor or a factor. Rows that have ``amount``,
    ``amountBaseCurrency`` and ``exchangeRate`` tell it for the connection.
    """

    def __init__(self, rows: Iterable[PortfolioTransaction]) -> None:
        self._directions = {direction_of(row) for row in rows} - {None}

    def euros(self, row: Any, field: str) -> Fraction:
        """Returns an amount of a row in euros: that of the institution, or by the rate of the row.

        :raises ValueError: the row has no rate, or the direction of the rate is not known
        """
        if field == "amount" and row.get("amountBaseCurrency") is not None:
            return number(row, "amountBaseCurrency")
        amount = number(row, field)
        if row["currency"] == "EUR" or not amount:
            return amount
        if row["exchangeRate"] is None:
            day = f"{row['type']} of {effective_day(row)}"
            raise ValueError(f"{day}: no rate from {row['currency']} to EUR.")
        rate = Fraction(row["exchangeRate"])
        return amount / rate if self._direction_of(row) == "divisor" else amount * rate

    def _direction_of(self, row: Any) -> Optional[Direction]:
        own = direction_of(row)
        if own:
            return own
        if len(self._directions) == 1:
            (direction,) = self._directions
            return direction
        rate = format(row["exchangeRate"], "f")
        problem = f"exchangeRate {rate} may be a divisor or a factor"
        reason = "the rows of the connection have both"
        if not self._directions:
            reason = "no row of the connection has an amount in both currencies to tell it"
        raise ValueError(f"{row['type']} of {effective_day(row)}: {problem}, and {reason}.")


def direction_of(row: Any) -> Optional[Direction]:
    """What the rate of a row is, by its amounts in both currencies; None if they do not tell it."""
    numbers = [row.get(name) for name in ("amount", "amountBaseCurrency", "exchangeRate")]
    if not all(numbers):
        return None
    amount, base, rate = (Fraction(number) for number in numbers)
    divided, multiplied = abs(amount / rate - base), abs(amount * rate - base)
    allowed = abs(base) * TOLERANCE
    if divided < allowed and divided * CLEARLY < multiplied:
        return "divisor"
    if multiplied < allowed and multiplied * CLEARLY < divided:
        return "factor"
    return None


def number(row: Any, field: str) -> Fraction:
    """Returns a number of a row; 0 for null.

    :raises ValueError: it is negative: only the account list has signs with one meaning
    """
    value = Fraction(row[field] or 0)
    if value < 0 and "transactionId" in row:
        meaning = "Institutions differ in what this means, so these rules do not know it."
        raise ValueError(f"{row['type']} of {effective_day(row)}: {field} is negative. {meaning}")
    return value
