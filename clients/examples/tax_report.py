"""Reports realised gains by FIFO, dividends and withheld taxes of each year, in euros.

Run: PYTHONPATH=clients/python/src python3 clients/examples/tax_report.py
It keeps a copy in the file COPY, and reads only the changes the next time.
"""

import os
import sqlite3
import sys
from collections import defaultdict
from fractions import Fraction
from typing import Any, DefaultDict

from fifo import cents, gains_by_fifo
from investment_data import InvestmentData, InvestmentDataError, RowChanges
from investment_data import SqliteStore, check_positions, effective_day
from rates import Rates

BASE_URL = os.environ.get("BASE_URL", "http://127.0.0.1:3000")
APP_TOKEN = os.environ.get("APP_TOKEN", "idq_demo_wealth_this_token_is_public")
CONNECTION_TOKEN = os.environ.get("CONNECTION_TOKEN", "DEMOSMALL1")
store = SqliteStore(sqlite3.connect(os.environ.get("COPY", "tax-report.db")), "my user")
years: DefaultDict[str, DefaultDict[str, Fraction]] = defaultdict(lambda: defaultdict(Fraction))


def on_changes(changes: RowChanges) -> None:
    if changes.list != "transfer_orders":
        for row in changes.previous.values():
            print(f"  corrected or removed: {row['type']} of {effective_day(row)}")


def add(row: Any, column: str, amount: Fraction) -> None:
    years[effective_day(row)[:4]][column] += amount


def main() -> None:
    print("Changes since the last run:")
    connection = InvestmentData(BASE_URL, APP_TOKEN).connection(CONNECTION_TOKEN)
    synced = connection.sync_transactions(store, on_changes=on_changes)
    for name, part in vars(synced).items():
        print(f"  {name}: {part.inserted} new, {part.updated} corrected, {part.removed} removed")
    rates = Rates(store.portfolio_transactions())
    for row, gain in gains_by_fifo(store.portfolio_transactions(), rates):
        add(row, "gain", gain)
    for row in store.portfolio_transactions():
        if row["type"] == "DIVIDENDS":
            add(row, "gross", rates.euros(row, "amount"))
            add(row, "tax", rates.euros(row, "taxes"))
    for movement in store.account_transactions():
        if movement["type"] == "DIVIDENDS":
            add(movement, "net", rates.euros(movement, "amount"))

    refreshed = store.refreshed_at()
    print("Data of", refreshed.date() if refreshed else "an unknown day")
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


try:
    main()
except (InvestmentDataError, ValueError) as error:
    if isinstance(error, InvestmentDataError) and error.code == "connection_not_found":
        store.delete()  # The user has removed the connection.
    sys.exit(str(error))
