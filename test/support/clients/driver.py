"""Runs calls of the Python clients: one JSON line in, one out. Decimals are texts."""

import asyncio
import contextlib
import dataclasses
import datetime
import inspect
import json
import logging
import os
import re
import sqlite3
import ssl
import sys
import time
import traceback
from decimal import Decimal
from typing import Any, AsyncIterator, Coroutine, Dict, Iterator, List, Optional, Union


class Clock(datetime.datetime):
    """The class datetime of the client. A call may set the time that it shows."""

    shown: Optional[datetime.datetime] = None

    @classmethod
    def now(cls, tz: Optional[datetime.tzinfo] = None) -> Any:
        return cls.shown.astimezone(tz) if cls.shown else super().now(tz)


datetime.datetime = Clock  # type: ignore[misc]

from investment_data import (  # noqa: E402
    AsyncInvestmentData,
    Attempt,
    Changes,
    Complete,
    CountDiffers,
    InvestmentData,
    AsyncPostgresStore,
    InvestmentDataError,
    PostgresStore,
    ProblemError,
    Retry,
    SqliteStore,
    check_positions,
    chronological,
    exact_sum,
    positions,
    positions_by_day,
)

ASYNC = "--asyncio" in sys.argv
POOL = "--pool" in sys.argv

attempts: List[Attempt] = []
warnings: List[str] = []


class Warnings(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        warnings.append(record.getMessage())


logging.getLogger("investment_data").addHandler(Warnings())


async def value_of(result: Any) -> Any:
    """Waits for a result of either client, and collects what is iterated."""
    if inspect.isawaitable(result):
        return await result
    if isinstance(result, AsyncIterator):
        return [each async for each in result]
    return list(result) if isinstance(result, Iterator) else result


async def run(call: Dict[str, Any]) -> Any:
    client: Any = AsyncInvestmentData if ASYNC else InvestmentData
    limit = call.get("callTimeoutMs")
    certificate = call.get("certificate")
    api = client(
        call["url"],
        call["token"],
        page_size=call["pageSize"],
        timeout=call["timeoutMs"] / 1000,
        call_timeout=None if limit is None else limit / 1000,
        retry=Retry(call["attempts"], call["baseDelayMs"] / 1000, call["maxDelayMs"] / 1000),
        ssl_context=certificate and ssl.create_default_context(cafile=certificate),
        on_attempt=attempts.append,
    )
    try:
        connection = api.connection(call["connection"], trace_id=call.get("traceId"))
        return await METHODS[call["method"]](connection, call)
    finally:
        api.close()


async def orders(connection: Any, call: Dict[str, Any]) -> Any:
    return await value_of(connection.transfer_orders())


async def rows(connection: Any, call: Dict[str, Any]) -> Any:
    method = getattr(connection, f"{call['prefix']}{call['list']}_transactions{call['suffix']}")
    limit = {"limit": call["limit"]} if "limit" in call else {}
    found = await value_of(method(from_=call.get("from"), to=call.get("to"), **limit))
    return b"".join(found).decode() if call["suffix"] else found


async def rows_with_facts(connection: Any, call: Dict[str, Any]) -> Any:
    method = getattr(connection, f"{call['list']}_transactions")
    rows = method(from_=call.get("from"), to=call.get("to"), limit=call.get("limit"))
    found = await value_of(rows)
    return {
        "rows": found,
        "facts": {"totalItems": rows.total_items, "refreshedAt": rows.refreshed_at},
    }


def camel(value: Any) -> Any:
    """Names of the TypeScript client, for what a dataclass has."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = {each.name: getattr(value, each.name) for each in dataclasses.fields(value)}
        return {re.sub("_(.)", lambda found: found[1].upper(), name): camel(each) for name, each in value.items()}
    return [camel(each) for each in value] if isinstance(value, (list, tuple)) else value


def is_postgres(call: Dict[str, Any]) -> bool:
    return str(call["file"]).startswith(("postgres:", "postgresql:"))


def keeps_rows(call: Dict[str, Any]) -> bool:
    return call.get("list") == "delete, and keep the rows"


@contextlib.asynccontextmanager
async def postgres_store(call: Dict[str, Any]) -> AsyncIterator[Any]:
    """A store on a connection of psycopg, or on a pool, of the kind of the client."""
    import psycopg

    history = call.get("history", False) or keeps_rows(call)
    if POOL:
        import psycopg_pool

        size: Any = {"min_size": 1, "max_size": call.get("poolSize")}
        if ASYNC:
            async with psycopg_pool.AsyncConnectionPool(call["file"], **size) as pool:
                yield AsyncPostgresStore(pool, call["name"], history=history)
        else:
            with psycopg_pool.ConnectionPool(call["file"], **size) as pool:
                yield PostgresStore(pool, call["name"], history=history)
    elif ASYNC:
        async with await psycopg.AsyncConnection.connect(call["file"]) as db:
            yield AsyncPostgresStore(db, call["name"], history=history)
    else:
        with psycopg.connect(call["file"]) as db:
            yield PostgresStore(db, call["name"], history=history)


async def make_own_tables(call: Dict[str, Any]) -> None:
    if "app" in call:
        import psycopg

        with psycopg.connect(call["file"]) as db:
            for table in OWN_TABLES:
                db.execute(table)


async def read_postgres(store: Any, call: Dict[str, Any]) -> Any:
    what = call["list"]
    if what.startswith("delete"):
        return await value_of(store.delete(history=what == "delete with history"))
    if what == "checks":
        return known(await value_of(check_positions(store)))
    if what == "positions":
        found = positions(store, at=call.get("to"), names=call.get("names"))
        return known(await value_of(found))
    if what == "positionsByDay":
        return known(await value_of(by_day(store, call)))
    if what == "orders":
        return await value_of(store.transfer_orders())
    if what == "chronological":
        return chronological(await value_of(store.portfolio_transactions()))
    rows = getattr(store, f"{what}_transactions")
    return await value_of(rows(from_=call.get("from"), to=call.get("to")))


def by_day(store: Any, call: Dict[str, Any]) -> Any:
    return positions_by_day(
        store, from_=call["from"], to=call["to"], names=call.get("names")
    )


def known(value: Any) -> Any:
    """Without the attributes that the TypeScript client leaves out."""
    if isinstance(value, list):
        return [known(each) for each in value]
    if dataclasses.is_dataclass(value):
        value = camel(value)
    if not isinstance(value, dict):
        return value
    optional = ("firstGap", "reason", "reasons")
    return {
        name: known(each)
        for name, each in value.items()
        if each not in (None, []) or name not in optional
    }


OWN_TABLES = (
    "create table if not exists own_position (connection text, portfolio text, investment text, shares text)",
    "create table if not exists own_cash (connection text, currency text, total text)",
)


async def write_own_tables(execute: Any, name: str, store: Any) -> None:
    """What an app derives from the copy."""
    for table in ("own_position", "own_cash"):
        await value_of(execute(f"delete from {table} where connection = %s", (name,)))
    for each in await value_of(positions(store)):
        shares = None if each.shares is None else format(each.shares, "f")
        values = (name, each.portfolio_id, each.investment, shares)
        await value_of(execute("insert into own_position values (%s, %s, %s, %s)", values))
    amounts: Dict[str, List[Decimal]] = {}
    for row in await value_of(store.account_transactions()):
        own = amounts.setdefault(row["currency"] or "", [])
        if row["amount"] is not None:
            own.append(row["amount"])
    for currency, own in amounts.items():
        total = (name, currency, format(exact_sum(own), "f"))
        await value_of(execute("insert into own_cash values (%s, %s, %s)", total))


async def use_store(
    connection: Any, call: Dict[str, Any], outer: Any, store: Any, execute: Any
) -> None:
    """What the app does in on_changes: see drivers.ts."""
    app = call.get("app")
    if app in ("tables", "outer"):
        await write_own_tables(execute, call["name"], store if app == "tables" else outer)
    if app == "outer write":
        await value_of(outer.delete())
    if app == "outer sync":
        await value_of(connection.sync_transactions(outer))
    if app == "hang":
        if ASYNC and is_postgres(call):
            await asyncio.Event().wait()
        elif is_postgres(call):
            execute("select pg_sleep(600)")
        else:
            time.sleep(call["callTimeoutMs"] / 1000)


async def copy(connection: Any, call: Dict[str, Any]) -> Any:
    """Synchronizes a store. `pages` limits the file, as a full disk does. `killAt` ends the process."""
    told: List[Any] = []

    def on_changes(changes: Any) -> None:
        told.append(camel(changes))
        if len(told) == call.get("killAt"):
            os._exit(9)
        if len(told) == call.get("failAt"):
            raise RuntimeError("an error of the app")

    stores: List[Any] = []
    if is_postgres(call):
        await make_own_tables(call)
        async with postgres_store(call) as store:

            async def use(changes: Any, execute: Any) -> None:
                stores.append(changes.store)
                await use_store(connection, call, store, changes.store, execute)
                on_changes(changes)

            async def on_row_changes_async(changes: Any, db: Any) -> None:
                await use(changes, db.execute)

            def on_row_changes(changes: Any, db: Any) -> None:
                finish(use(changes, db.execute))

            tell = on_row_changes_async if ASYNC else on_row_changes
            synced = await value_of(connection.sync_transactions(store, on_changes=tell))
            if call.get("app") == "late":
                await value_of(positions(stores[0]))
            refreshed_at = await value_of(store.refreshed_at())
            return {"result": camel(synced), "told": told, "refreshedAt": refreshed_at}
    Clock.shown = Clock.fromisoformat(call["now"]) if "now" in call else None
    db = sqlite3.connect(call["file"])
    try:
        store = SqliteStore(db, call["name"], history=call.get("history", False))
        if "pages" in call:
            db.execute(f"pragma max_page_count = {call['pages']}")
        if "app" in call:
            for table in OWN_TABLES:
                db.execute(table)

        def on_sqlite_changes(changes: Any) -> None:
            stores.append(changes.store)
            execute = lambda sql, values=(): db.execute(sql.replace("%s", "?"), values)  # noqa: E731
            finish(use_store(connection, call, store, changes.store, execute))
            on_changes(changes)

        synced = await value_of(connection.sync_transactions(store, on_changes=on_sqlite_changes))
        if call.get("app") == "late":
            positions(stores[0])
        return {"result": camel(synced), "told": told, "refreshedAt": store.refreshed_at()}
    finally:
        Clock.shown = None
        db.close()


async def read(connection: Any, call: Dict[str, Any]) -> Any:
    """Reads a copy without the service."""
    if is_postgres(call):
        async with postgres_store(call) as store:
            return await read_postgres(store, call)
    db = sqlite3.connect(call["file"])
    try:
        store = SqliteStore(db, call["name"], history=keeps_rows(call))
        if call["list"].startswith("delete"):
            return store.delete(history=call["list"] == "delete with history")
        if call["list"] == "checks":
            return known(check_positions(store))
        if call["list"] == "positions":
            return known(positions(store, at=call.get("to"), names=call.get("names")))
        if call["list"] == "positionsByDay":
            return known(by_day(store, call))
        if call["list"] == "orders":
            return list(store.transfer_orders())
        if call["list"] == "chronological":
            return chronological(store.portfolio_transactions())
        rows = getattr(store, f"{call['list']}_transactions")
        return list(rows(from_=call.get("from"), to=call.get("to")))
    finally:
        db.close()


async def sync(connection: Any, call: Dict[str, Any]) -> Any:
    pages: List[Dict[str, Any]] = []

    def apply(changes: Changes[Any]) -> None:
        pages.append(dataclasses.asdict(changes))

    method = getattr(connection, f"sync_{call['list']}_transactions")
    count = call.get("count")
    counted = None if count is None else lambda: count
    result = await value_of(method(cursor=call.get("cursor"), apply=apply, count=counted))
    if isinstance(result, Complete):
        state: Dict[str, Any] = {"status": "complete", **camel(result)}
    elif isinstance(result, CountDiffers):
        state = {"status": "count_differs", "totalItems": result.total_items, "count": result.count}
    else:
        state = {"status": "cursor_expired"}
    return {"pages": pages, "result": state}


METHODS = {"orders": orders, "rows": rows, "rows_with_facts": rows_with_facts, "copy": copy, "read": read, "sync": sync}


def finish(work: Coroutine[Any, Any, Any]) -> Any:
    """The synchronous client needs no event loop."""
    try:
        work.send(None)
    except StopIteration as end:
        return end.value
    raise AssertionError("the synchronous client has waited")


def failure(error: Exception) -> Dict[str, Any]:
    shown = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    shown += f"{vars(error)} {error.__context__!r}"
    names = [kind.__name__ for kind in type(error).__mro__ if issubclass(kind, Exception)]
    found: Dict[str, Any] = {
        "name": names[0],
        "names": names,
        "message": str(error),
        "shown": shown,
    }
    if hasattr(error, "code"):
        found["code"] = error.code
    if isinstance(error, InvestmentDataError):
        found.update(status=error.status, headers=dict(error.headers), traceId=error.trace_id)
        found.update(requestId=error.request_id, attempts=error.attempts)
        if error.retry_after is not None:
            found["retryAfterMs"] = round(error.retry_after * 1000)
        # Services that collect errors show the local variables of each frame.
        report = traceback.TracebackException.from_exception(error, capture_locals=True)
        frames = [frame.locals for frame in report.stack if "/investment_data/" in frame.filename]
        found["shown"] += str(frames)
    if isinstance(error, ProblemError):
        found.update(errors=error.errors)
    return found


def seen(attempt: Attempt) -> Dict[str, Any]:
    names = {"request_id": "requestId", "trace_id": "traceId"}
    fields = dataclasses.asdict(attempt)
    return {names.get(name, name): value for name, value in fields.items()}


def main() -> None:
    for line in sys.stdin:
        try:
            call = run(json.loads(line))
            response = {"value": asyncio.run(call) if ASYNC else finish(call)}
        except Exception as error:
            response = {"error": failure(error)}
        response.update(attempts=[seen(each) for each in attempts], warnings=warnings)
        print(json.dumps(response, default=text), flush=True)
        attempts.clear()
        warnings.clear()


def text(value: Union[Decimal, datetime.datetime]) -> str:
    if isinstance(value, datetime.datetime):
        return value.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return format(value, "f")


main()
