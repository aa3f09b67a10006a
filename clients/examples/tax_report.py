"""Reports realised gains by FIFO, dividends and withheld taxes of each year, in euros.

Run: PYTHONPATH=clients/python/src python3 clients/examples/tax_report.py
It keeps a copy in the file COPY, and reads only the changes the next time.
"""

import os
import sqlite3
import sys
from collections import defaultdict
from fractions import Fraction
from typing import Any, DefaultDict, List, Tuple

from investment_data import InvestmentData, InvestmentDataError, SqliteStore
from investment_data import check_positions, chronological, position_effect

BASE_URL = os.environ.get("BASE_URL", "http://127.0.0.1:3000")
APP_TOKEN = os.environ.get("APP_TOKEN", "idq_demo_wealth_this_token_is_public")
CONNECTION_TOKEN = os.environ.get("CONNECTION_TOKEN", "DEMOSMALL1")
store = SqliteStore(sqlite3.connect(os.environ.get("COPY", "tax-report.db")), "my user")

try:
    synced = InvestmentData(BASE_URL, APP_TOKEN).connection(CONNECTION_TOKEN).sync_transactions(store)
except InvestmentDataError as error:
    if error.code == "connection_not_found":
        store.delete()  # The user has removed the connection.
    sys.exit(str(error))

Lot = Tuple[str, Fraction, Fraction]  # day of the purchase, shares, cost
lots: DefaultDict[Tuple[object, object], List[Lot]] = defaultdict(list)
years: DefaultDict[str, List[Fraction]] = defaultdict(lambda: [Fraction(0)] * 4)
GAIN, GROSS, NET, TAX = range(4)


def day_of(row: Any) -> str:
    return str(row["operationDateDay"] or row["valueDateDay"])


def add(row: Any, column: int, amount: Fraction) -> None:
    years[day_of(row)[:4]][column] += amount


def euros(row: Any, *names: str) -> Fraction:
    if names == ("amount",) and row.get("amountBaseCurrency") is not None:
        return Fraction(row["amountBaseCurrency"])
    amount = sum((Fraction(row[name] or 0) for name in names), Fraction(0))
    return amount if row["currency"] == "EUR" or not amount else amount / Fraction(row["exchangeRate"])


def take(held: List[Lot], shares: Fraction) -> List[Lot]:
    """Removes shares from the oldest lots."""
    taken = []
    while shares and held:
        day, size, cost = held.pop(0)
        part = min(size, shares)
        taken.append((day, part, cost * part / size))
        if part < size:
            held.insert(0, (day, size - part, cost - cost * part / size))
        shares -= part
    return taken


rows = chronological(store.portfolio_transactions())
by_id = {row["transactionId"]: row for row in rows}
cash_of = {row["relatedTransaction"]: row for row in rows if row["type"] == "COMPENSATION"}
for row in rows:
    effect, shares = position_effect(row["type"]), Fraction(row["titles"] or 0)
    held = lots[row["portfolioId"], row["investment"]]
    other = by_id.get(row["relatedTransaction"] or "")
    other_effect = position_effect(other["type"]) if other else None
    if row["type"] == "DIVIDENDS":
        add(row, GROSS, euros(row, "amount"))
        add(row, TAX, euros(row, "taxes"))
    elif effect == "+" and other_effect != "-":
        held.append((day_of(row), shares, euros(row, "amount") + euros(row, "commission", "taxes")))
        held.sort()
    elif effect == "-":
        taken = take(held, shares)
        cost = sum((cost for _, _, cost in taken), Fraction(0))
        if other is None or other_effect != "+":
            add(row, GAIN, euros(row, "amount") - euros(row, "commission", "taxes") - cost)
            continue
        # The shares become others, and keep their days and costs. Cash sells a part of them.
        kept, received = Fraction(1), Fraction(other["titles"] or 0)
        cash_row = cash_of.get(row["transactionId"])
        if cash_row:
            cash = euros(cash_row, "amount")
            kept = euros(other, "amount") / (euros(other, "amount") + cash)
            add(cash_row, GAIN, cash - cost * (1 - kept))
        moved = [(day, size * received / shares, part * kept) for day, size, part in taken]
        if row["type"] == "RIGHTS_CONVERSION_SELL":
            paid = euros(other, "amount") + euros(other, "commission", "taxes")
            moved = [(day_of(other), received, cost + paid)]
        target = lots[other["portfolioId"], other["investment"]]
        target += moved
        target.sort()
for movement in store.account_transactions():
    if movement["type"] == "DIVIDENDS":
        add(movement, NET, euros(movement, "amount"))


def cents(amount: Fraction) -> str:
    size = int(abs(amount) * 100 + Fraction(1, 2))
    return f"{'-' if amount < 0 and size else ''}{size // 100}.{size % 100:02}"


time, parts = store.refreshed_at(), (synced.portfolio, synced.account)
print("Data of", time.date() if time else "an unknown day")
inserted, updated = sum(each.inserted for each in parts), sum(each.updated for each in parts)
print(f"Since the last run: {inserted} new, {updated} changed, {sum(each.removed for each in parts)} removed")
for year, figures in sorted(years.items()):
    gain, gross, net, tax = (cents(each) for each in figures)
    print(f"{year}: gains {gain}, dividends {gross} gross and {net} net, withheld {tax}")
for check in check_positions(store):
    gap = check.first_gap
    text = f"{check.status} since {check.verified_from}" if check.status == "complete" else check.status
    print(check.investment, f"expected {gap.expected}, found {gap.found} on {gap.day}" if gap else text)
