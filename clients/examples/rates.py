"""Amounts in the currency of a report, by the base amounts and the rates of the rows."""

from fractions import Fraction
from typing import Any, Iterable, Literal, Optional

from investment_data import PortfolioTransaction, effective_day

Direction = Literal["divisor", "factor"]

#: A rate is right if it gives the base amount with this error, because institutions round.
TOLERANCE = Fraction(1, 100)
#: The other direction must be wrong by ten times as much: a rate near 1 tells nothing.
CLEARLY = 10


class Rates:
    """Converts amounts to the currency of a report.

    No row names the base currency of its portfolio, so it is asked for, or a row proves it: its ``currency`` is
    that of the report, and its ``amountBaseCurrency`` is its ``amount``. Institutions differ in what
    ``exchangeRate`` is: a divisor or a factor. Rows that have ``amount``, ``amountBaseCurrency`` and
    ``exchangeRate`` tell it for the connection.
    """

    def __init__(self, transactions: Iterable[PortfolioTransaction], base: Optional[str] = None) -> None:
        """:param base: currency of amountBaseCurrency, and of the report; otherwise EUR, which must be proved"""
        rows = list(transactions)
        self.currency = base or "EUR"
        self._directions = {direction_of(row) for row in rows} - {None}
        # A row in the currency of the report has the same amount twice, if that is the base currency.
        proofs = [
            row
            for row in rows
            if row["currency"] == self.currency and row["amount"] and row["amountBaseCurrency"] is not None
        ]
        for row in proofs:
            if row["amount"] != row["amountBaseCurrency"]:
                problem = f"the base currency is not {self.currency}, because amountBaseCurrency differs from amount"
                raise ValueError(f"{name_of(row)}: {problem}. Set BASE_CURRENCY.")
        self._is_base = base is not None or bool(proofs)

    def convert(self, row: Any, field: str) -> Fraction:
        """Returns an amount of a row in the currency of the report: that of the institution, or by the rate of the row.

        :raises ValueError: the row has no rate, or the base currency or the direction of the rate is not known
        """
        amount = number(row, field)
        if row["currency"] == self.currency:
            return amount
        if field == "amount" and row.get("amountBaseCurrency") is not None:
            self._expect_base(row)
            return number(row, "amountBaseCurrency")
        if not amount:
            return amount
        problem = f"no rate from {row['currency'] or 'no currency'} to {self.currency}"
        if row["exchangeRate"] is None:
            raise ValueError(f"{name_of(row)}: {problem}.")
        rate = Fraction(row["exchangeRate"])
        if rate in (0, 1):
            text = format(row["exchangeRate"], "f")
            raise ValueError(f"{name_of(row)}: {problem}. exchangeRate is {text}, so nothing was converted.")
        if row["localCurrency"] not in (row["currency"], self.currency, None):
            raise ValueError(f"{name_of(row)}: {problem}. exchangeRate may be that to {row['localCurrency']}.")
        self._expect_base(row)
        return amount / rate if self._direction_of(row) == "divisor" else amount * rate

    def _expect_base(self, row: Any) -> None:
        if not self._is_base:
            problem = f"the base currency may be another one than {self.currency}"
            raise ValueError(f"{name_of(row)}: {problem}. Set BASE_CURRENCY to that of the portfolios.")

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
        raise ValueError(f"{name_of(row)}: {problem}, and {reason}.")


def name_of(row: Any) -> str:
    return f"{row['type']} of {effective_day(row)}"


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
        raise ValueError(f"{name_of(row)}: {field} is negative. {meaning}")
    return value
