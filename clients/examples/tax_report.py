"""Reports realised gains by FIFO, dividends and withheld taxes of each year, in BASE_CURRENCY or euros.

Run: PYTHONPATH=clients/python/src python3 clients/examples/tax_report.py
It keeps a copy in the file COPY, and reads only the changes the next time. It lists what it leaves out.
"""

import os
import sqlite3
import sys
from collections import defaultdict
from decimal import Decimal
from fractions import Fraction
from typing import Any, DefaultDict, List, Optional, Tuple

from fifo import cents, gains_by_fifo
from investment_data import InvestmentData, InvestmentDataError, RowChanges
from investment_data import SqliteStore, check_positions, effective_day, exact_sum, position_effect
from rates import Rates

BASE_URL = os.environ.get("BASE_URL", "http://127.0.0.1:3000")
APP_TOKEN = os.environ.get("APP_TOKEN", "idq_demo_wealth_this_token_is_public")
CONNECTION_TOKEN = os.environ.get("CONNECTION_TOKEN", "DEMOSMALL1")
store = SqliteStore(sqlite3.connect(os.environ.get("COPY", "tax-report.db")), "my user")
years: DefaultDict[str, DefaultDict[str, Fraction]] = defaultdict(lambda: defaultdict(Fraction))

#: Amounts that are in no figure of the report, by what they are, and their currency.
left_out: DefaultDict[Tuple[str, str], List[Optional[Decimal]]] = defaultdict(list)


def on_changes(changes: RowChanges) -> None:
    if changes.list != "transfer_orders":
        for row in changes.previous.values():
            print(f"  corrected or removed: {row['type']} of {effective_day(row)}")


def add(row: Any, column: str, amount: Fraction) -> None:
    years[effective_day(row)[:4]][column] += amount


def leave_out(what: str, row: Any, amount: Optional[Decimal]) -> None:
    left_out[what, row["currency"] or "of no currency"].append(amount)


def print_left_out() -> None:
    """Prints how many rows of each kind are in no figure, and the sum of what is known of them."""
    for (what, currency), amounts in sorted(left_out.items()):
        known = [amount for amount in amounts if amount is not None]
        total = format(exact_sum(known), "f") if known else "unknown"
        print(f"Left out: {what}, rows: {len(amounts)}, amount: {total} {currency}")


def main() -> None:
    print("Changes since the last run:")
    connection = InvestmentData(BASE_URL, APP_TOKEN).connection(CONNECTION_TOKEN)
    synced = connection.sync_transactions(store, on_changes=on_changes)
    for name, part in vars(synced).items():
        print(f"  {name}: {part.inserted} new, {part.updated} corrected, {part.removed} removed")
    rates = Rates(store.portfolio_transactions(), os.environ.get("BASE_CURRENCY"))
    gains = list(gains_by_fifo(store.portfolio_transactions(), rates))
    paid = {row["transactionId"] for row, _ in gains}
    for row, gain in gains:
        add(row, "gain", gain)
    for row in store.portfolio_transactions():
        kind = row["type"]
        if kind != "DIVIDENDS":
            if position_effect(kind) not in ("+", "-") and row["transactionId"] not in paid:
                leave_out(f"portfolio {kind}", row, row["amount"])
            continue
        add(row, "gross", rates.convert(row, "amount"))
        add(row, "tax", rates.convert(row, "taxes"))
        if row["taxes"] is None:
            leave_out("unknown taxes of portfolio DIVIDENDS", row, None)
        if row["commission"] is not None:
            leave_out("commission of portfolio DIVIDENDS", row, row["commission"])
        if row["retentionDetail"]:
            leave_out("retentionFrom of portfolio DIVIDENDS", row, row["retentionDetail"]["retentionFrom"])
            leave_out("retentionTo of portfolio DIVIDENDS", row, row["retentionDetail"]["retentionTo"])
    for movement in store.account_transactions():
        kind = movement["type"]
        if kind == "DIVIDENDS":
            add(movement, "net", rates.convert(movement, "amount"))
        else:
            leave_out(f"account {kind}", movement, movement["amount"])
        if movement["taxes"] is not None:
            leave_out(f"taxes of account {kind}", movement, movement["taxes"])
        if movement["commission"] is not None:
            leave_out(f"commission of account {kind}", movement, movement["commission"])

    refreshed = store.refreshed_at()
    print(f"Data of {refreshed.date() if refreshed else 'an unknown day'}, in {rates.currency}")
    for year, sums in sorted(years.items()):
        dividends = f"dividends {cents(sums['gross'])} gross and {cents(sums['net'])} net"
        print(f"{year}: gains {cents(sums['gain'])}, {dividends}, withheld {cents(sums['tax'])}")
    for check in check_positions(store):
        gap, text = check.first_gap, str(check.status)
        if gap:
            text += f": expected {gap.expected}, found {gap.found} on {gap.day}"
        elif check.status == "complete":
            text += f" since {check.verified_from}"
        print(check.portfolio_id, check.investment, text)
    print_left_out()


try:
    main()
except (InvestmentDataError, ValueError) as error:
    if isinstance(error, InvestmentDataError) and error.code == "connection_not_found":
        store.delete()  # The user has removed the connection.
    sys.exit(str(error))
