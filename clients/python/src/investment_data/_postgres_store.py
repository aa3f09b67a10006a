import importlib
import inspect
import json
import math
from contextlib import asynccontextmanager, contextmanager
from datetime import datetime, timezone
from typing import (
    Any,
    AsyncIterator,
    Awaitable,
    Callable,
    Dict,
    Iterator,
    List,
    Optional,
    Tuple,
    TypeVar,
)

from ._call_end import seconds_left
from ._copied_rows import AsyncCopiedRows, CopiedRows
from ._copies import ID_FIELDS, CopyChanges, CopyCounts, CopyState, KnownCopy
from ._errors import CopyError, name_taken
from ._finish import finish
from ._options import day
from ._postgres_schema import MARK, postgres_schema
from ._refresh_time import oldest_refresh, text_of, time_of
from ._row_changes import Change, counts_of, latest_of, row_changes_of
from ._sqlite_schema import StoreNames, names_of
from ._transaction import StoreTransaction, inside, transaction_of
from ._types import from_json

T = TypeVar("T")

#: Calls ``on_changes`` with the changes of a list.
Tell = Callable[[str, List[Change], "_Session"], object]

#: Longest wait for another process that writes the copy.
_WAIT = "5s"
#: Rows that are compared at a time when a copy replaces another one.
_BLOCK_ROWS = 1000
#: Errors of PostgreSQL after which the same work succeeds later: serialization, deadlock, lock timeout.
_CONFLICTS = ("40001", "40P01", "55P03")
#: A statement that has taken longer than `statement_timeout`, or that was cancelled.
_CANCELED = "57014"
_DAY = "coalesce(row ->> 'operationDateDay', row ->> 'valueDateDay')"
_HOUR = "(row ->> 'operationDateHour')"
_TIME = """to_char(refreshed_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')"""
_LISTS = tuple(ID_FIELDS)


class _Session:
    """Statements of a store on one connection. The blocking store runs them without an event loop."""

    def __init__(self, connection: Any, names: StoreNames, name: str) -> None:
        psycopg = importlib.import_module("psycopg")
        rows = importlib.import_module("psycopg.rows")
        is_async = isinstance(connection, psycopg.AsyncConnection)
        self.connection = connection
        self._psycopg = psycopg
        # The app may have other cursors and rows.
        kind = psycopg.AsyncCursor if is_async else psycopg.Cursor
        self._cursor = kind(connection, row_factory=rows.tuple_row)
        self._is_async = is_async
        self._names = names
        self._name = name
        #: The transaction that calls ``on_changes``.
        self.open = StoreTransaction(None, connection, is_open=False)

    async def _value(self, result: Any) -> Any:
        return await result if self._is_async else result

    async def execute(self, sql: str, *values: object) -> None:
        await self._value(self._cursor.execute(sql, values or None))

    async def values(self, columns: str, rest: str = "", *values: object) -> List[List[Any]]:
        return await self._query(f"select json_build_array({columns})::text {rest}", *values)

    async def _query(self, sql: str, *values: object) -> List[List[Any]]:
        """Values of each row, by one JSON text: loaders of types that the app has set have no effect."""
        await self.execute(sql, *values)
        found = await self._value(self._cursor.fetchall())
        return [json.loads(text) for (text,) in found]

    @asynccontextmanager
    async def use(self) -> AsyncIterator[None]:
        """Sets what the statements of the store need, and gives the connection back as it was.

        Each read is one statement, without a transaction. Texts have any character.
        """
        status = self._psycopg.pq.TransactionStatus
        if self.connection.info.transaction_status not in (status.IDLE, status.UNKNOWN):
            message = "The connection has an open transaction: end it before the store uses it"
            raise CopyError("transaction_open", message)
        level = self._psycopg.IsolationLevel.READ_COMMITTED
        wanted = {"autocommit": True, "isolation_level": level, "read_only": False}
        before = {name: getattr(self.connection, name) for name in wanted}
        encoding = self.connection.info.parameter_status("client_encoding")
        try:
            await self._set(wanted)
            if encoding != "UTF8":
                await self.execute("set client_encoding to 'UTF8'")
            yield
        except self._psycopg.Error as error:
            if error.sqlstate == _CANCELED:
                seconds_left()
            if error.sqlstate not in _CONFLICTS:
                raise
            message = "Another process writes the copy: synchronize again"
            raise CopyError("conflict", message) from None
        finally:
            if self.connection.info.transaction_status not in (status.IDLE, status.UNKNOWN):
                # Its state is not known, for example after an interrupt.
                await self._value(self.connection.close())
            if not self.connection.closed:
                if encoding != "UTF8":
                    await self.execute(f"set client_encoding to '{encoding}'")
                await self._set(before)

    async def _set(self, values: Dict[str, Any]) -> None:
        for name, value in values.items():
            if self._is_async:
                await getattr(self.connection, f"set_{name}")(value)
            else:
                setattr(self.connection, name, value)

    @asynccontextmanager
    async def transaction(self, database: Any) -> AsyncIterator[None]:
        outer = self.connection.transaction()
        enter, leave = (
            (outer.__aenter__, outer.__aexit__)
            if self._is_async
            else (outer.__enter__, outer.__exit__)
        )
        await self._value(enter())
        self.open = StoreTransaction(database, self.connection)
        try:
            yield
        except BaseException as error:
            self.open.is_open = False
            await self._value(leave(type(error), error, error.__traceback__))
            raise
        self.open.is_open = False
        await self._value(leave(None, None, None))

    async def lock(self, name: str) -> None:
        """Waits for another process that writes a copy of this name.

        The time limit is not that of the app's statements. They end with the call: a function that blocks cannot be interrupted.
        """
        key = json.dumps([self._names.copy, name], separators=(",", ":"), ensure_ascii=False)
        left = seconds_left()
        limit = "" if left is None else f", {_limit_of(left)}"
        # The lock is one of the database. Another app may have a copy of the same name in its own schema.
        await self.execute(
            "with app as materialized (select current_setting('lock_timeout') as wait)"
            " select set_config('lock_timeout', %s, true),"
            " pg_advisory_xact_lock(hashtextextended(current_schema() || %s::text, 0)),"
            f" set_config('lock_timeout', wait, true){limit} from app",
            _WAIT,
            key,
        )

    async def prepare(self) -> None:
        if await self._is_made():
            return
        async with self.transaction(None):
            await self.lock("")
            # Another process may have made the tables.
            if await self._is_made():
                return
            for statement in postgres_schema(self._names):
                await self.execute(statement)

    async def _is_made(self) -> bool:
        """True if the tables and views are there; an error if others have their names.

        Those in a later schema of the ``search_path`` are of a store of another app, and this store makes its own.
        """
        # A statement that reads no table may not see what another process has just made.
        found = await self.values(
            "name, obj_description(c.oid, 'pg_class'), n.nspname = current_schema()",
            "from unnest(%s::text[]) as name join pg_class c on c.oid = to_regclass(name)"
            " join pg_namespace n on n.oid = c.relnamespace",
            self._names.all(),
        )
        for name, comment, _ in found:
            if comment != MARK:
                raise name_taken(name, "PostgresStore(pool, name")
        return any(is_in_first_schema for _, _, is_in_first_schema in found)

    async def find(self, list_: str, copy: str) -> Any:
        found = await self.values(
            f"id, cursor, version, total_items, {_TIME}",
            f"from {self._names.copy} where connection = %s and list = %s and copy = %s",
            self._name,
            list_,
            copy,
        )
        return found[0] if found else None

    async def copies(self) -> List[KnownCopy]:
        found = await self.values(
            f"list, copy, id, cursor, version, total_items, {_TIME},"
            f" (select count(*) from {self._names.row} where copy_id = c.id)",
            f"from {self._names.copy} c where connection = %s",
            self._name,
        )
        return [
            KnownCopy(list_, copy, values[1], _state_of(values), count)
            for list_, copy, *values, count in found
        ]

    async def _id(self, list_: str, copy: str) -> Optional[int]:
        found = await self.find(list_, copy)
        return found[0] if found else None

    async def _save(self, changes: CopyChanges) -> int:
        """Writes cursor and state of a copy, and returns its number.

        :raises CopyError: ``conflict``, if its cursor is another one
        """
        list_, copy, state, table = changes.list, changes.copy, changes.state, self._names.copy
        found = await self._query(
            f"insert into {table} (connection, list, copy, cursor, version, total_items, refreshed_at)"
            " select %s, %s, %s, %s, %s, %s::bigint, %s::timestamptz"
            " where %s::text is null"
            f" or exists (select from {table} where connection = %s and list = %s and copy = %s)"
            " on conflict (connection, list, copy) do update set cursor = excluded.cursor,"
            " version = excluded.version, total_items = excluded.total_items,"
            f" refreshed_at = coalesce(excluded.refreshed_at, {table}.refreshed_at)"
            f" where {table}.cursor = %s returning json_build_array(id)::text",
            self._name,
            list_,
            copy,
            changes.cursor,
            state and state.version,
            state and state.total_items,
            state and text_of(state.refreshed_at),
            changes.since,
            self._name,
            list_,
            copy,
            changes.since,
        )
        if not found:
            raise _changed()
        id_: int = found[0][0]
        return id_

    async def apply(self, changes: CopyChanges, keep: bool, tell: Optional[Tell]) -> CopyCounts:
        list_ = changes.list
        copy_id = await self._save(changes)
        latest = latest_of(changes)
        if not latest:
            return CopyCounts()
        if changes.copy == "next":
            # Nobody reads it yet, so what it had before is not needed.
            await self._write_rows(copy_id, latest)
            return CopyCounts()
        done = await self._differing(copy_id, latest)
        await self._write_rows(copy_id, {id_: after for id_, _, after in done})
        if keep:
            await self._keep(list_, changes.cursor, done)
        return await self._report(list_, done, tell)

    async def _differing(
        self, copy_id: int, latest: Dict[str, Optional[str]]
    ) -> List[Change]:
        """The rows of a page that differ from those of a copy, in the order of the page."""
        found = await self.values(
            "n.id, r.row::text, n.row::text",
            "from unnest(%s::text[], %s::jsonb[]) as n (id, row)"
            f" left join {self._names.row} r on r.copy_id = %s and r.id = n.id"
            " where r.row is distinct from n.row",
            list(latest),
            list(latest.values()),
            copy_id,
        )
        changed = {id_: (before, after) for id_, before, after in found}
        return [(id_, *changed[id_]) for id_ in latest if id_ in changed]

    async def _write_rows(
        self, copy_id: int, latest: Dict[str, Optional[str]]
    ) -> None:
        removed = [id_ for id_, after in latest.items() if after is None]
        written = [(id_, after) for id_, after in latest.items() if after is not None]
        if removed:
            sql = f"delete from {self._names.row} where copy_id = %s and id = any(%s::text[])"
            await self.execute(sql, copy_id, removed)
        if written:
            await self.execute(
                f"insert into {self._names.row} (copy_id, id, row)"
                " select %s::bigint, n.id, n.row from unnest(%s::text[], %s::jsonb[]) as n (id, row)"
                " on conflict (copy_id, id) do update set row = excluded.row",
                copy_id,
                [id_ for id_, _ in written],
                [after for _, after in written],
            )

    async def count(self, list_: str, copy: str) -> int:
        rest = (
            f"from {self._names.row} where copy_id = (select id from {self._names.copy}"
            " where connection = %s and list = %s and copy = %s)"
        )
        ((count,),) = await self.values("count(*)", rest, self._name, list_, copy)
        return int(count)

    async def swap(
        self, list_: str, cursor: str, history: bool, tell: Optional[Tell]
    ) -> CopyCounts:
        found = await self.find(list_, "next")
        if found is None or found[1] != cursor:
            raise _changed()
        next_, before = found[0], await self._id(list_, "current")
        # The app reads the new copy while it hears what differs from the old one.
        if before is not None:
            await self._rename(before, "before")
        await self._rename(next_, "current")
        if before is None and tell is None:
            return CopyCounts(inserted=await self.count(list_, "current"))
        counts = CopyCounts()
        last = ""
        while True:
            block = await self._difference(next_, before, last)
            if not block:
                break
            if history and before is not None:
                await self._keep(list_, cursor, block)
            counts = counts.plus(await self._report(list_, block, tell))
            last = block[-1][0]
        await self._delete(before)
        return counts

    async def _difference(
        self, next_: int, before: Optional[int], last: str
    ) -> List[Change]:
        """The next block of rows that differ between two copies."""
        rows = self._names.row
        found = await self.values(
            "coalesce(n.id, c.id), c.row::text, n.row::text",
            f"from (select * from {rows} where copy_id = %s) n"
            f" full join (select * from {rows} where copy_id = %s) c on c.id = n.id"
            ' where n.row is distinct from c.row and coalesce(n.id, c.id) > %s collate "C"'
            f" order by coalesce(n.id, c.id) limit {_BLOCK_ROWS}",
            next_,
            before,
            last,
        )
        return [(id_, before, after) for id_, before, after in found]

    async def _keep(self, list_: str, cursor: str, changes: List[Change]) -> None:
        """Keeps what changes replace."""
        if not changes:
            return
        ids, before, after = (list(each) for each in zip(*changes))
        await self.execute(
            f"insert into {self._names.history} (connection, list, id, before, after, seen_at, cursor)"
            " select %s, %s, c.id, c.before, c.after, %s::timestamptz, %s"
            " from unnest(%s::text[], %s::jsonb[], %s::jsonb[])"
            " with ordinality as c (id, before, after, place) order by c.place",
            self._name,
            list_,
            text_of(datetime.now(timezone.utc)),
            cursor,
            ids,
            before,
            after,
        )

    async def _keep_all(self) -> None:
        """Keeps all rows of the copy as removed ones."""
        await self.execute(
            f"insert into {self._names.history} (connection, list, id, before, after, seen_at, cursor)"
            " select c.connection, c.list, r.id, r.row, null, %s::timestamptz, c.cursor"
            f" from {self._names.copy} c join {self._names.row} r on r.copy_id = c.id"
            " where c.connection = %s and c.copy = 'current' order by c.list, r.id",
            text_of(datetime.now(timezone.utc)),
            self._name,
        )

    async def _report(
        self, list_: str, changes: List[Change], tell: Optional[Tell]
    ) -> CopyCounts:
        """Counts changes of the current copy, and tells the app."""
        if tell is not None and changes:
            with inside(self.open):
                result = tell(list_, changes, self)
                if inspect.iscoroutine(result) and not self._is_async:
                    result.close()
                    raise TypeError("on_changes of a PostgresStore must not be asynchronous")
                if inspect.isawaitable(result):
                    await result
        return counts_of(changes)

    async def _rename(self, copy_id: int, copy: str) -> None:
        await self.execute(f"update {self._names.copy} set copy = %s where id = %s", copy, copy_id)

    async def delete(self, list_: str, copy: str) -> None:
        await self._delete(await self._id(list_, copy))

    async def _delete(self, copy_id: Optional[int]) -> None:
        if copy_id is None:
            return
        await self.execute(f"delete from {self._names.row} where copy_id = %s", copy_id)
        await self.execute(f"delete from {self._names.copy} where id = %s", copy_id)

    async def delete_all(self, keep: bool, history: bool) -> None:
        if keep and not history:
            await self._keep_all()
        for list_ in _LISTS:
            for copy in ("current", "next"):
                await self.delete(list_, copy)
        if history:
            sql = f"delete from {self._names.history} where connection = %s"
            await self.execute(sql, self._name)

    async def refreshed_at(self) -> Optional[datetime]:
        rest = f"from {self._names.copy} where connection = %s and copy = 'current'"
        found = await self.values(f"version, {_TIME}", rest, self._name)
        return oldest_refresh([(version, time) for version, time in found])

    async def rows(self, list_: str, first: Optional[str], last: Optional[str]) -> List[Any]:
        """The rows of a list, newest first."""
        rest = (
            f"from {self._names.row} where copy_id = (select id from {self._names.copy}"
            " where connection = %s and list = %s and copy = 'current')"
            f' and (%s::text is null or {_DAY} collate "C" >= %s)'
            f' and (%s::text is null or {_DAY} collate "C" <= %s)'
            f' order by {_DAY} collate "C" desc, {_HOUR} collate "C" desc nulls last, id desc'
        )
        found = await self.values(
            "row::text", rest, self._name, list_, first, first, last, last
        )
        return [from_json(row) for (row,) in found]


class _Store:
    """What both stores have in common."""

    def __init__(
        self, database: Any, connection: str, *, history: bool = False, prefix: str = ""
    ) -> None:
        if not isinstance(connection, str):
            raise TypeError("connection must be a text")
        self._database = database
        self._connection = connection
        self._history = history
        self._names = names_of(prefix)
        self._is_ready = False

    @property
    def key(self) -> Tuple[object, str]:
        """Database and name of the copy. Stores with equal ones synchronize one after the other."""
        return self._database, json.dumps([self._names.copy, self._connection])

    async def _run(
        self, connection: Any, work: Callable[[_Session], Awaitable[T]], writes: bool
    ) -> T:
        session = _Session(connection, self._names, self._connection)
        async with session.use():
            if not self._is_ready:
                await session.prepare()
                self._is_ready = True
            if not writes:
                return await work(session)
            async with session.transaction(self._database):
                await session.lock(self._connection)
                return await work(session)

    async def _run_inside(
        self, outer: StoreTransaction, work: Callable[[_Session], Awaitable[T]], writes: bool
    ) -> T:
        """Reads inside ``on_changes``, with the connection of its transaction."""
        if writes:
            raise CopyError("transaction_open", "A store cannot write inside on_changes")
        return await work(_Session(outer.connection, self._names, self._connection))

    def _telling(
        self, reader: Any, on_changes: Optional[Callable[..., object]]
    ) -> Optional[Tell]:
        if on_changes is None:
            return None
        function = on_changes

        def tell(list_: str, changes: List[Change], session: _Session) -> object:
            return function(row_changes_of(list_, changes, reader(session)), session.connection)

        return tell


def _state_of(found: Any) -> Optional[CopyState]:
    _, _, version, total, refreshed_at = found or (None,) * 5
    return None if total is None else CopyState(version, total, time_of(refreshed_at))


def _changed() -> CopyError:
    return CopyError("conflict", "Another process has changed the copy: synchronize again")


def _limit_of(seconds: float) -> str:
    """SQL that ends each later statement of the transaction after a time, or earlier if the app has such a limit."""
    limit = math.ceil(seconds * 1000)
    return (
        "(select set_config('statement_timeout',"
        f" case when setting::bigint between 1 and {limit} then setting else '{limit}' end, true)"
        " from pg_settings where name = 'statement_timeout')"
    )


@contextmanager
def _in_time() -> Iterator[None]:
    """Names the error of a wait for a connection that has lasted until the end of the call."""
    pool = importlib.import_module("psycopg_pool")
    try:
        yield
    except pool.PoolTimeout:
        seconds_left()
        raise


def _pool_seconds(pool: Any) -> Optional[float]:
    """Longest wait for a connection of a pool; None for that of the pool."""
    left = seconds_left()
    return None if left is None else min(left, pool.timeout)


class PostgresStore(_Store, CopiedRows):
    """Keeps copies in PostgreSQL 12 or later, with the guarantees of SqliteStore.

    The views have one column for each field: decimals are ``numeric``, so sums in SQL are exact. The first
    call makes the tables and views in the first schema of the ``search_path``. ``on_changes`` gets the
    connection of the transaction as a second argument.

    :param database: a ``psycopg.Connection``, or a ``psycopg_pool.ConnectionPool``
    :param connection: your own name of the connection, not its token; one database may have many
    :param history: keeps each row that changes or is removed, as it was, in the view ``investment_changes``
    :param prefix: beginning of the names of the tables and views, such as ``bank_``
    """

    def _use(self, work: Callable[[_Session], Awaitable[T]], writes: bool = False) -> T:
        outer = transaction_of(self._database)
        if outer is not None:
            return finish(self._run_inside(outer, work, writes))
        if not hasattr(self._database, "getconn"):
            return finish(self._run(self._database, work, writes))
        with _in_time(), self._database.connection(_pool_seconds(self._database)) as connection:
            return finish(self._run(connection, work, writes))

    def cursor(self, list_: str, copy: str) -> Optional[str]:
        found = self._use(lambda session: session.find(list_, copy))
        return found[1] if found else None

    def state(self, list_: str) -> Optional[CopyState]:
        return _state_of(self._use(lambda session: session.find(list_, "current")))

    def known_copies(self) -> List[KnownCopy]:
        return self._use(lambda session: session.copies())

    def apply(
        self, changes: CopyChanges, on_changes: Optional[Callable[..., object]] = None
    ) -> CopyCounts:
        tell = self._telling(PostgresReader, on_changes)
        return self._use(lambda session: session.apply(changes, self._history, tell), True)

    def count(self, list_: str, copy: str) -> int:
        return self._use(lambda session: session.count(list_, copy))

    def swap(
        self, list_: str, cursor: str, on_changes: Optional[Callable[..., object]] = None
    ) -> CopyCounts:
        tell = self._telling(PostgresReader, on_changes)
        return self._use(lambda session: session.swap(list_, cursor, self._history, tell), True)

    def discard(self, list_: str) -> None:
        self._use(lambda session: session.delete(list_, "next"), True)

    def refreshed_at(self) -> Optional[datetime]:
        """Returns the time at which the service last read the institution, for the oldest list of the copy.

        Returns None if the copy is not complete, or the time is not known.
        """
        return self._use(lambda session: session.refreshed_at())

    def delete(self, *, history: bool = False) -> None:
        """Deletes the copy of this connection.

        A store with ``history`` keeps each row of the copy in the history, as a removed one.

        :param history: also deletes the history, which otherwise stays
        """
        self._use(lambda session: session.delete_all(self._history, history), True)

    def _copied(self, list_: str, from_: object, to: object) -> Iterator[Any]:
        first, last = day("from_", from_), day("to", to)
        return iter(self._use(lambda session: session.rows(list_, first, last)))


class AsyncPostgresStore(_Store, AsyncCopiedRows):
    """Keeps copies in PostgreSQL for AsyncInvestmentData, as PostgresStore. ``on_changes`` may be a coroutine.

    :param database: a ``psycopg.AsyncConnection``, or a ``psycopg_pool.AsyncConnectionPool``
    """

    async def _use(self, work: Callable[[_Session], Awaitable[T]], writes: bool = False) -> T:
        outer = transaction_of(self._database)
        if outer is not None:
            return await self._run_inside(outer, work, writes)
        if not hasattr(self._database, "getconn"):
            return await self._run(self._database, work, writes)
        with _in_time():
            async with self._database.connection(_pool_seconds(self._database)) as connection:
                return await self._run(connection, work, writes)

    async def cursor(self, list_: str, copy: str) -> Optional[str]:
        found = await self._use(lambda session: session.find(list_, copy))
        return found[1] if found else None

    async def state(self, list_: str) -> Optional[CopyState]:
        return _state_of(await self._use(lambda session: session.find(list_, "current")))

    async def known_copies(self) -> List[KnownCopy]:
        return await self._use(lambda session: session.copies())

    async def apply(
        self, changes: CopyChanges, on_changes: Optional[Callable[..., object]] = None
    ) -> CopyCounts:
        tell = self._telling(AsyncPostgresReader, on_changes)
        return await self._use(lambda session: session.apply(changes, self._history, tell), True)

    async def count(self, list_: str, copy: str) -> int:
        return await self._use(lambda session: session.count(list_, copy))

    async def swap(
        self, list_: str, cursor: str, on_changes: Optional[Callable[..., object]] = None
    ) -> CopyCounts:
        tell = self._telling(AsyncPostgresReader, on_changes)
        return await self._use(
            lambda session: session.swap(list_, cursor, self._history, tell), True
        )

    async def discard(self, list_: str) -> None:
        await self._use(lambda session: session.delete(list_, "next"), True)

    async def refreshed_at(self) -> Optional[datetime]:
        """Returns the time at which the service last read the institution, for the oldest list of the copy."""
        return await self._use(lambda session: session.refreshed_at())

    async def delete(self, *, history: bool = False) -> None:
        """Deletes the copy of this connection.

        A store with ``history`` keeps each row of the copy in the history, as a removed one.

        :param history: also deletes the history, which otherwise stays
        """
        await self._use(lambda session: session.delete_all(self._history, history), True)

    async def _copied(self, list_: str, from_: object, to: object) -> AsyncIterator[Any]:
        first, last = day("from_", from_), day("to", to)
        for row in await self._use(lambda session: session.rows(list_, first, last)):
            yield row


class PostgresReader(CopiedRows):
    """``store`` of ``on_changes``: the copy after the changes, inside the transaction that writes them."""

    def __init__(self, session: _Session) -> None:
        self._session = session

    def refreshed_at(self) -> Optional[datetime]:
        """Returns the time of the oldest list of the copy."""
        self._session.open.expect_open()
        return finish(self._session.refreshed_at())

    def _copied(self, list_: str, from_: object, to: object) -> Iterator[Any]:
        self._session.open.expect_open()
        first, last = day("from_", from_), day("to", to)
        return iter(finish(self._session.rows(list_, first, last)))


class AsyncPostgresReader(AsyncCopiedRows):
    """``store`` of ``on_changes``, as PostgresReader, for asyncio."""

    def __init__(self, session: _Session) -> None:
        self._session = session

    async def refreshed_at(self) -> Optional[datetime]:
        """Returns the time of the oldest list of the copy."""
        self._session.open.expect_open()
        return await self._session.refreshed_at()

    async def _copied(self, list_: str, from_: object, to: object) -> AsyncIterator[Any]:
        self._session.open.expect_open()
        first, last = day("from_", from_), day("to", to)
        for row in await self._session.rows(list_, first, last):
            yield row
