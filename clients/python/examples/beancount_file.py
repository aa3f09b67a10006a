"""Prints the transactions of a connection as a beancount file, with every digit.

Run: PYTHONPATH=clients/python/src python3 clients/python/examples/beancount_file.py > connection.beancount

Account transactions move cash. Portfolio transactions move units; their cash is in the account
transactions. Check the file with ``bean-check``.
"""

import os
import re
import sys
from decimal import Decimal
from typing import Dict, List, Optional, Set

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
#: Identifiers of investments, by the name of their commodity.
commodities: Dict[str, str] = {}


class Rows(List[PortfolioTransaction]):
    """Rows as check_positions() reads them."""

    def portfolio_transactions(self) -> List[PortfolioTransaction]:
        return self


def refuse_guesses(rows: List[PortfolioTransaction]) -> None:
    for check in check_positions(Rows(rows)):
        problem = REFUSED.get(check.reason or "")
        if problem:
            where = f"Investment {check.investment} of portfolio {check.portfolio_id}"
            raise ValueError(f"{where}: {problem}")


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
        {"id": movement["movementId"]},
        {
            cash: f"{digits(amount)} {currency}",
            other: f"{digits(amount.copy_negate())} {currency}",
        },
    )

for row in chronological(rows):
    titles, price = row["titles"], row["price"]
    day = effective_day(row)
    meta = {"id": row["transactionId"]}
    if row["amount"] is not None:
        meta["amount"] = f"{digits(row['amount'])} {currency_of(row['currency'])}"
    effect = position_effect(row["type"])
    postings: Dict[str, str] = {}
    commodity = commodity_of(row["investment"])
    if titles is not None and effect in ("+", "-"):
        units = titles.copy_abs() if effect == "+" else titles.copy_abs().copy_negate()
        portfolio = account("Assets", "Portfolio", "P" + row["portfolioId"])
        postings[portfolio] = f"{digits(units)} {commodity}"
        postings[account("Equity", "Units")] = f"{digits(units.copy_negate())} {commodity}"
        if price is not None and row["investment"]:
            code = currency_of(row["currency"])
            entries.append(f"{day} price {commodity} {digits(price)} {code}")
    transaction(day, row["type"], row["description"], meta, postings)

print("\n".join(f"1970-01-01 open {name}" for name in sorted(accounts)))
for name, investment in sorted(commodities.items()):
    print(f'\n1970-01-01 commodity {name}\n  id: "{investment}"')
print("\n" + "\n\n".join(entries))
