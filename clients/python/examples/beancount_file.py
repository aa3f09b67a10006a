"""Prints the transactions of a connection as a beancount file, with every digit.

Run: PYTHONPATH=clients/python/src python3 clients/python/examples/beancount_file.py > connection.beancount

Account transactions move cash. Portfolio transactions move units; their cash is in the account
transactions. A price is the amount of a row by its titles: ``price`` is as the institution quotes it, in
per cent for a bond, of one share for an option on a hundred, or in pence. The program lists what it leaves
out. Check the file with ``bean-check``.
"""

import os
import re
import sys
from collections import Counter
from decimal import Decimal
from fractions import Fraction
from typing import Any, Dict, List, Optional, Set

from investment_data import InvestmentData, PortfolioTransaction, ProblemError, TransportError
from investment_data import check_positions, chronological, effective_day, position_effect

BASE_URL = os.environ.get("BASE_URL", "http://127.0.0.1:3000")
APP_TOKEN = os.environ.get("APP_TOKEN", "idq_demo_wealth_this_token_is_public")
CONNECTION_TOKEN = os.environ.get("CONNECTION_TOKEN", "DEMOSMALL1")

CURRENCY = re.compile(r"[A-Z][A-Z0-9'._-]{0,22}[A-Z0-9]")
#: A name of a commodity has at most 24 characters, and an identifier has 32 digits.
COMMODITY_DIGITS = 22

#: Histories that the file would show wrongly, because their direction is a guess.
REFUSED = {
    "negativeShares": "a row has negative titles. It may cancel another row.",
    "bothSigns": "titles of one type have both signs. One of them may mean a cancellation.",
    "shortPosition": "more shares leave than had arrived: a short sale, or rows are missing.",
}

entries: List[str] = []
accounts: Set[str] = set()
left_out: "Counter[str]" = Counter()
#: Identifiers of investments, by the name of their commodity.
commodities: Dict[str, str] = {}


class Rows(List[PortfolioTransaction]):
    """Rows as check_positions() reads them."""

    def portfolio_transactions(self) -> List[PortfolioTransaction]:
        return self


def refuse_guesses(rows: List[PortfolioTransaction]) -> None:
    for check in check_positions(Rows(rows)):
        for reason in check.reasons:
            if reason in REFUSED:
                where = f"Investment {check.investment} of portfolio {check.portfolio_id}"
                raise ValueError(f"{where}: {REFUSED[reason]}")


def commodity_of(investment: Optional[str]) -> str:
    """I0 for the units of no investment."""
    if investment is None:
        return "I0"
    name = "I" + investment.replace("-", "").upper()[:COMMODITY_DIGITS]
    other = commodities.setdefault(name, investment)
    if other != investment:
        raise ValueError(f"Investments {other} and {investment} would have one name, {name}.")
    return name


def digits(number: Decimal) -> str:
    return format(number, "f")


def quoted(text: Optional[str]) -> str:
    escaped = " ".join((text or "").split()).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def currency_of(code: Optional[str]) -> str:
    """XXX is the code of ISO 4217 for no currency."""
    return code if code and CURRENCY.fullmatch(code) else "XXX"


def price_of(row: PortfolioTransaction) -> Optional[str]:
    """The amount by the titles, if it has an end as a decimal."""
    if not row["amount"] or not row["titles"]:
        return None
    price = abs(Fraction(row["amount"]) / Fraction(row["titles"]))
    left, digits_after = price.denominator, 0
    for factor in (2, 5):
        count = 0
        while left % factor == 0:
            left, count = left // factor, count + 1
        digits_after = max(digits_after, count)
    if left > 1:
        return None
    units = str(price.numerator * 10**digits_after // price.denominator).rjust(digits_after + 1, "0")
    return f"{units[:-digits_after]}.{units[-digits_after:]}" if digits_after else units


def meta_of(row: Any, key: str, *fields: str) -> Dict[str, str]:
    """The identifier, and amounts that are no posting, with their currency."""
    meta = {"id": row[key]}
    amounts = {name: row[name] for name in fields}
    retained = row.get("retentionDetail") or {}
    for name, amount in {**amounts, **retained}.items():
        if amount is not None:
            words = re.sub("([A-Z])", r"-\1", name).lower()
            meta[words] = f"{digits(amount)} {currency_of(row['currency'])}"
    return meta


def account(*parts: str) -> str:
    name = ":".join(parts)
    accounts.add(name)
    return name


def word(type_: str) -> str:
    """DIVIDEND_RETENTION as a part of an account name."""
    return type_.replace("_", "-").title()


def transaction(
    day: str, payee: str, text: Optional[str], meta: Dict[str, str], postings: Dict[str, str]
) -> None:
    lines = [f"{day} * {quoted(payee)} {quoted(text)}"]
    lines += [f"  {name}: {quoted(value)}" for name, value in meta.items()]
    lines += [f"  {name}  {value}" for name, value in postings.items()]
    entries.append("\n".join(lines))


try:
    connection = InvestmentData(BASE_URL, APP_TOKEN).connection(CONNECTION_TOKEN)
    movements = list(connection.account_transactions())
    rows = list(connection.portfolio_transactions())
    refuse_guesses(rows)
    for each in rows:
        commodity_of(each["investment"])
except (ProblemError, TransportError, ValueError) as error:
    sys.exit(str(error))

for movement in chronological(movements):
    cash = account("Assets", "Cash", "A" + movement["accountId"])
    other = account("Equity", "Cash", word(movement["type"]))
    amount, currency = movement["amount"], currency_of(movement["currency"])
    transaction(
        effective_day(movement),
        movement["type"],
        movement["description"],
        meta_of(movement, "movementId", "commission", "taxes"),
        {
            cash: f"{digits(amount)} {currency}",
            other: f"{digits(amount.copy_negate())} {currency}",
        },
    )

for row in chronological(rows):
    titles, day = row["titles"], effective_day(row)
    meta = meta_of(row, "transactionId", "amount", "commission", "taxes")
    effect = position_effect(row["type"])
    postings: Dict[str, str] = {}
    commodity = commodity_of(row["investment"])
    if titles is not None and effect in ("+", "-"):
        units = titles.copy_abs() if effect == "+" else titles.copy_abs().copy_negate()
        portfolio = account("Assets", "Portfolio", "P" + row["portfolioId"])
        postings[portfolio] = f"{digits(units)} {commodity}"
        postings[account("Equity", "Units")] = f"{digits(units.copy_negate())} {commodity}"
        price = price_of(row)
        if price is not None and row["investment"]:
            code = currency_of(row["currency"])
            entries.append(f"{day} price {commodity} {price} {code}")
        else:
            left_out[f"the price of {row['type']}, which is not known or has no end as a decimal"] += 1
    elif titles:
        left_out[f"titles of {row['type']}, which does not change the position"] += 1
    transaction(day, row["type"], row["description"], meta, postings)

print("\n".join(f"1970-01-01 open {name}" for name in sorted(accounts)))
for name, investment in sorted(commodities.items()):
    print(f'\n1970-01-01 commodity {name}\n  id: "{investment}"')
print("\n" + "\n\n".join(entries))
for what, count in sorted(left_out.items()):
    print(f"Left out: {what}, rows: {count}", file=sys.stderr)
