"""Runs calls of the Python client: one JSON line in, one out. Decimals are texts."""

import json
import sys
import traceback
from decimal import Decimal
from typing import Any, Dict, List

from investment_data import Changes, Complete, InvestmentData, ProblemError, Retry, TransportError


def run(call: Dict[str, Any]) -> Any:
    retry = Retry(call["attempts"], call["baseDelayMs"] / 1000, call["maxDelayMs"] / 1000)
    api = InvestmentData(
        call["url"],
        call["token"],
        page_size=call["pageSize"],
        timeout=call["timeoutMs"] / 1000,
        retry=retry,
    )
    connection = api.connection(call["connection"])
    range_ = {"from_": call.get("from"), "to": call.get("to")}
    method = call["method"]
    if method == "orders":
        return connection.transfer_orders()
    if method == "list":
        names = {
            "portfolio": connection.portfolio_transactions,
            "account": connection.account_transactions,
        }
        return list(names[call["list"]](**range_))
    pages: List[Dict[str, Any]] = []

    def apply(changes: Changes[Any]) -> None:
        pages.append(
            {"upserts": changes.upserts, "removed": changes.removed, "cursor": changes.cursor}
        )

    if call["list"] == "portfolio":
        result = connection.sync_portfolio_transactions(cursor=call.get("cursor"), apply=apply)
    else:
        result = connection.sync_account_transactions(cursor=call.get("cursor"), apply=apply)
    if isinstance(result, Complete):
        state = {"status": "complete", "cursor": result.cursor, "totalItems": result.total_items}
    else:
        state = {"status": "cursor_expired"}
    return {"pages": pages, "result": state}


def failure(error: Exception) -> Dict[str, Any]:
    shown = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    shown += f"{vars(error)} {error.__context__!r}"
    found: Dict[str, Any] = {"name": type(error).__name__, "message": str(error), "shown": shown}
    if isinstance(error, (ProblemError, TransportError)):
        found.update(code=error.code, status=error.status)
        # Services that collect errors show the local variables of each frame.
        report = traceback.TracebackException.from_exception(error, capture_locals=True)
        frames = [frame.locals for frame in report.stack if "/investment_data/" in frame.filename]
        found["shown"] += str(frames)
    if isinstance(error, ProblemError):
        found.update(requestId=error.request_id, errors=error.errors)
    return found


def main() -> None:
    for line in sys.stdin:
        try:
            response = {"value": run(json.loads(line))}
        except Exception as error:
            response = {"error": failure(error)}
        print(json.dumps(response, default=text), flush=True)


def text(value: Decimal) -> str:
    return format(value, "f")


main()
