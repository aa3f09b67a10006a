"""Prints the identifier and the amount of every portfolio transaction of a connection, with all digits.

Needs Python 3.9 or later: python3 examples/list_transactions.py
"""

import http.client
import json
import os
import random
import sys
import time
import urllib.error
import urllib.request
from decimal import Decimal

BASE_URL = os.environ.get("BASE_URL", "http://127.0.0.1:3000")
APP_TOKEN = os.environ.get("APP_TOKEN", "idq_demo_wealth_this_token_is_public")
CONNECTION_TOKEN = os.environ.get("CONNECTION_TOKEN", "DEMOSMALL1")

LIMIT = 1000
ATTEMPTS = 6
TIMEOUT_SECONDS = 30
LIST = f"{BASE_URL}/api/v1/queries/connections/{CONNECTION_TOKEN}/portfolios/transactions"
HEADERS = {
    "Authorization": f"Bearer {APP_TOKEN}",
    # Decimals are JSON strings, so json.load() does not round them.
    "Accept": "application/json;IEEE754Compatible=true",
}


def request(query):
    """Requests a page. Repeats the request after 429, 503, and if no complete response arrives."""
    for attempt in range(1, ATTEMPTS + 1):
        delay = 2**attempt * random.random()
        try:
            sent = urllib.request.Request(f"{LIST}?{query}", headers=HEADERS)
            with urllib.request.urlopen(sent, timeout=TIMEOUT_SECONDS) as response:
                return json.loads(response.read()), response.headers["Data-Version"]
        except urllib.error.HTTPError as error:
            if attempt == ATTEMPTS or error.code not in (429, 503):
                # The error body has the cause in `code`, and the request in `requestId`.
                sys.exit(error.read().decode())
            delay += float(error.headers.get("Retry-After", 1))
        except (OSError, http.client.HTTPException):
            if attempt == ATTEMPTS:
                raise
        time.sleep(delay)


# With `version`, all pages are of one state of the data. If it changes: 412, start again.
number, total, same = 0, 1, ""
while number * LIMIT < total:
    page, version = request(f"limit={LIMIT}&page={number}{same}")
    for item in page["items"]:
        amount = None if item["amount"] is None else Decimal(item["amount"])
        # str() may use an exponent.
        print(item["transactionId"], "null" if amount is None else format(amount, "f"))
    number, total, same = number + 1, page["totalItems"], f"&version={version}"
