"""Prints the identifier and the amount of every portfolio transaction of a connection, with all digits.

Needs Python 3.9 or later: python3 clients/examples/list_transactions.py
"""

import email.utils
import http.client
import json
import os
import random
import re
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
# Limit of each read, not of the whole response.
TIMEOUT_SECONDS = 30
# A longer Retry-After ends the program.
MAX_WAIT_SECONDS = 60
LIST = f"{BASE_URL}/api/v1/queries/connections/{CONNECTION_TOKEN}/portfolios/transactions"
HEADERS = {
    "Authorization": f"Bearer {APP_TOKEN}",
    # Decimals are JSON strings, so json.load() does not round them.
    "Accept": "application/json;IEEE754Compatible=true",
}


def send(query):
    """Returns the status, the headers and the body of a response."""
    sent = urllib.request.Request(f"{LIST}?{query}", headers=HEADERS)
    try:
        response = urllib.request.urlopen(sent, timeout=TIMEOUT_SECONDS)
    except urllib.error.HTTPError as error:
        response = error
    with response:
        return response.status, response.headers, response.read()


def retry_after(text):
    """Seconds of Retry-After, which is a number of seconds or an HTTP date."""
    if re.fullmatch("[0-9]+", text):
        return float(text)
    try:
        return max(0.0, email.utils.parsedate_to_datetime(text).timestamp() - time.time())
    except (TypeError, ValueError, OverflowError):
        return 0.0


def request(query):
    """Requests a page. Repeats the request after 429, 503, and if no complete response arrives."""
    for attempt in range(1, ATTEMPTS + 1):
        retry, wait = True, 0.0
        try:
            status, headers, body = send(query)
            if status == 200 and "Data-Version" in headers:
                return json.loads(body), headers["Data-Version"]
            # The error body has the cause in `code`, and the request in `requestId`.
            reason = f"Status {status}: {body.decode(errors='replace')}"
            retry, wait = status in (429, 503), retry_after(headers.get("Retry-After", ""))
        except (OSError, http.client.HTTPException, ValueError) as error:
            reason = f"No complete response from {BASE_URL}: {getattr(error, 'reason', error)}"
        if not retry or attempt == ATTEMPTS or wait > MAX_WAIT_SECONDS:
            sys.exit(reason)
        time.sleep(wait + 0.5 * 2 ** (attempt - 1) * random.random())


if not re.fullmatch(r"https?://\S+", BASE_URL):
    sys.exit("BASE_URL must be an http or https URL.")
# Otherwise, the error of the library would print the token.
if not re.fullmatch("[!-~]+", APP_TOKEN + CONNECTION_TOKEN):
    sys.exit("APP_TOKEN and CONNECTION_TOKEN must be visible ASCII characters.")
# With `version`, all pages are of one state of the data. If it changes: 412, start again.
number, total, same = 0, 1, ""
while number * LIMIT < total:
    page, version = request(f"limit={LIMIT}&page={number}{same}")
    for item in page["items"]:
        amount = None if item["amount"] is None else Decimal(item["amount"])
        # str() may use an exponent.
        print(item["transactionId"], "null" if amount is None else format(amount, "f"))
    number, total, same = number + 1, page["totalItems"], f"&version={version}"
