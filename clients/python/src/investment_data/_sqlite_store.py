import inspect
import json
import re
import sqlite3
from contextlib import contextmanager
from datetime import datetime, timezone
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

from ._copied_rows import CopiedRows
from ._copies import ID_FIELDS, CopyChanges, CopyCounts, CopyState, KnownCopy, OnChanges
from ._errors import CopyError, name_taken
from ._options import day
from ._refresh_time import oldest_refresh, text_of, time_of
from ._row_changes import Change, counts_of, latest_of, row_changes_of
from ._sqlite_schema import DatabaseObject, is_current, is_own, names_of, schema_of
from ._transaction import StoreTransaction
from ._types import from_json

_WAIT_MS = 5000
#: Rows that are compared at a time when a copy replaces another one.
_BLOCK_ROWS = 1000
_DAY = "coalesce(json_extract(row, '$.operationDateDay'), json_extract(row, '$.valueDateDay'))"


class SqliteStore(CopiedRows):
    """Keeps copies in SQLite.

    The views ``portfolio_transactions``, ``account_transactions`` and ``transfer_orders`` have the complete
    copies: ``connection``, and one column for each field, with decimals as text. It waits up to 5 s for
    another process, unless the database has a time of its own.

    :param connection: your own name of the connection, not its token; one database may have many
    :param history: keeps each row that changes or is removed, as it was, in the view ``investment_changes``
    :param prefix: beginning of the names of the tables and views, such as ``bank_``, where the database has
        others with the names of this store; a copy belongs to its prefix
    :raises CopyError: ``name_taken``, if the database has other tables or views with the names of the store
    """

    def __init__(
        self,
        db: sqlite3.Connection,
        connection: str,
        *,
        history: bool = False,
        prefix: str = "",
    ) -> None:
        if not isinstance(connection, str):
            raise TypeError("connection must be a text")
        self._db = db
        self._connection = connection
        self._history = history
        self._names = names_of(prefix)
        if self._values("timeout", "from pragma_busy_timeout") == [[0]]:
            db.execute(f"pragma busy_timeout = {_WAIT_MS}")
        if is_current(self._names, self._objects()):
            return
        with self._transaction():
            objects = self._objects()
            # Another process may have made the tables.
            if is_current(self._names, objects):
                return
            for each in objects:
                if not is_own(self._names, each):
                    raise name_taken(each.name, "SqliteStore(db, name")
            # A copy of release 1.1.0 has the tables without the newer columns, and smaller views.
            for statement in schema_of(self._names):
                db.execute(statement)

    @property
    def key(self) -> Tuple[object, str]:
        """Database and name of the copy. Stores with equal ones synchronize one after the other."""
        return self._db, json.dumps([self._names.copy, self._connection])

    def cursor(self, list_: str, copy: str) -> Optional[str]:
        found = self._find(list_, copy)
        return found[1] if found else None

    def state(self, list_: str) -> Optional[CopyState]:
        return _state_of(self._find(list_, "current"))

    def known_copies(self) -> List[KnownCopy]:
        columns = (
            "list, copy, id, cursor, version, total_items, refreshed_at,"
            f" (select count(*) from {self._names.row} where copy_id = c.id)"
        )
        found = self._values(columns, f"from {self._names.copy} c where connection = ?", self._connection)
        return [
            KnownCopy(list_, copy, values[1], _state_of(values), count)
            for list_, copy, *values, count in found
        ]

    def apply(self, changes: CopyChanges, on_changes: Optional[OnChanges] = None) -> CopyCounts:
        list_, state = changes.list, changes.state
        with self._transaction() as transaction:
            self._expect(list_, changes.copy, changes.since)
            self._db.execute(
                f"insert into {self._names.copy}"
                " (connection, list, copy, cursor, version, total_items, refreshed_at)"
                " values (?, ?, ?, ?, ?, ?, ?)"
                " on conflict (connection, list, copy) do update set cursor = excluded.cursor,"
                " version = excluded.version, total_items = excluded.total_items,"
                " refreshed_at = coalesce(excluded.refreshed_at, refreshed_at)",
                (
                    self._connection,
                    list_,
                    changes.copy,
                    changes.cursor,
                    state and state.version,
                    state and state.total_items,
                    state and text_of(state.refreshed_at),
                ),
            )
            latest = latest_of(changes)
            if not latest:
                return CopyCounts()
            id_ = self._id(list_, changes.copy)
            if changes.copy == "next":
                # Nobody reads it yet, so what it had before is not needed. SQLite inserts faster in the order of the key.
                self._write_rows(id_, dict(sorted(latest.items())))
                return CopyCounts()
            done = self._differing(id_, latest)
            self._write_rows(id_, {row_id: after for row_id, _, after in done})
            if self._history:
                self._keep(list_, changes.cursor, done)
            return self._report(list_, done, transaction, on_changes)

    def count(self, list_: str, copy: str) -> int:
        return self._count(self._id(list_, copy))

    def swap(
        self, list_: str, cursor: str, on_changes: Optional[OnChanges] = None
    ) -> CopyCounts:
        with self._transaction() as transaction:
            self._expect(list_, "next", cursor)
            next_, before = self._id(list_, "next"), self._id(list_, "current")
            # The app reads the new copy while it hears what differs from the old one.
            if before is not None:
                self._rename(before, "before")
            self._rename(next_, "current")
            counts = CopyCounts()
            if before is None and on_changes is None:
                counts = CopyCounts(inserted=self._count(next_))
            else:
                for block in self._differences(next_, before):
                    if self._history and before is not None:
                        self._keep(list_, cursor, block)
                    counts = counts.plus(self._report(list_, block, transaction, on_changes))
            self._delete(before)
            return counts

    def discard(self, list_: str) -> None:
        with self._transaction():
            self._delete(self._id(list_, "next"))

    def refreshed_at(self) -> Optional[datetime]:
        """Returns the time at which the service last read the institution, for the oldest list of the copy.

        Returns None if the copy is not complete, or the time is not known.
        """
        rest = f"from {self._names.copy} where connection = ? and copy = 'current'"
        found = self._values("version, refreshed_at", rest, self._connection)
        return oldest_refresh([(version, time) for version, time in found])

    def delete(self, *, history: bool = False) -> None:
        """Deletes the copy of this connection.

        A store with ``history`` keeps each row of the copy in the history, as a removed one.

        :param history: also deletes the history, which otherwise stays
        """
        with self._transaction():
            if self._history and not history:
                self._keep_all()
            for list_ in ID_FIELDS:
                for copy in ("current", "next"):
                    self._delete(self._id(list_, copy))
            if history:
                self._db.execute(
                    f"delete from {self._names.history} where connection = ?", (self._connection,)
                )

    def _copied(self, list_: str, from_: object, to: object) -> Iterator[Any]:
        sql = (
            f"cast(row as blob) from {self._names.row} where copy_id = ?"
            f" and (? is null or {_DAY} >= ?) and (? is null or {_DAY} <= ?)"
            f" order by {_DAY} desc, json_extract(row, '$.operationDateHour') desc, id desc"
        )
        first, last = day("from_", from_), day("to", to)
        found = self._texts(sql, self._id(list_, "current"), first, first, last, last)
        return (from_json(row) for row in found)

    def _differing(
        self, copy_id: Optional[int], latest: Dict[str, Optional[str]]
    ) -> List[Change]:
        """The rows of a page that differ from those of a copy, in the order of the page."""
        found = f"cast(row as blob) from {self._names.row} where copy_id = ? and id = ?"
        changes: List[Change] = []
        for id_, after in latest.items():
            before = next(self._texts(found, copy_id, id_), None)
            if before != after:
                changes.append((id_, before, after))
        return changes

    def _write_rows(self, copy_id: Optional[int], latest: Dict[str, Optional[str]]) -> None:
        """Writes the last state of rows; None for a removed row."""
        self._db.executemany(
            f"insert or replace into {self._names.row} values (?, ?, ?)",
            ((copy_id, id_, after) for id_, after in latest.items() if after is not None),
        )
        self._db.executemany(
            f"delete from {self._names.row} where copy_id = ? and id = ?",
            ((copy_id, id_) for id_, after in latest.items() if after is None),
        )

    def _keep_all(self) -> None:
        """Keeps all rows of the copy as removed ones."""
        self._db.execute(
            f"insert into {self._names.history} (connection, list, id, before, after, seen_at, cursor)"
            " select c.connection, c.list, r.id, r.row, null, ?, c.cursor"
            f" from {self._names.copy} c join {self._names.row} r on r.copy_id = c.id"
            " where c.connection = ? and c.copy = 'current' order by c.list, r.id",
            (text_of(datetime.now(timezone.utc)), self._connection),
        )

    def _count(self, copy_id: Optional[int]) -> int:
        """Counts the rows of a copy."""
        ((count,),) = self._values("count(*)", f"from {self._names.row} where copy_id = ?", copy_id)
        return int(count)

    def _differences(
        self, next_: Optional[int], before: Optional[int]
    ) -> Iterator[List[Change]]:
        """Compares a copy with the one that it replaces."""
        rows = self._names.row
        upserts = (
            f"from {rows} n"
            f" left join {rows} c on c.copy_id = ? and c.id = n.id"
            " where n.copy_id = ? and n.row is not c.row and n.id > ?"
            f" order by n.id limit {_BLOCK_ROWS}"
        )
        removals = (
            f"from {rows} c where c.copy_id = ? and c.id > ?"
            f" and not exists (select 1 from {rows} n where n.copy_id = ? and n.id = c.id)"
            f" order by c.id limit {_BLOCK_ROWS}"
        )
        yield from self._blocks("n.id, c.row, n.row", upserts, lambda last: (before, next_, last))
        yield from self._blocks("c.id, c.row, null", removals, lambda last: (before, last, next_))

    def _blocks(
        self, columns: str, rest: str, values_after: Callable[[str], Any]
    ) -> Iterator[List[Change]]:
        last = ""
        while True:
            found = self._values(columns, rest, *values_after(last))
            if not found:
                return
            yield [(id_, before, after) for id_, before, after in found]
            last = found[-1][0]

    def _keep(self, list_: str, cursor: str, changes: List[Change]) -> None:
        """Keeps what changes replace."""
        at = text_of(datetime.now(timezone.utc))
        self._db.executemany(
            f"insert into {self._names.history}"
            " (connection, list, id, before, after, seen_at, cursor) values (?, ?, ?, ?, ?, ?, ?)",
            ((self._connection, list_, *change, at, cursor) for change in changes),
        )

    def _report(
        self,
        list_: str,
        changes: List[Change],
        transaction: StoreTransaction,
        on_changes: Optional[OnChanges],
    ) -> CopyCounts:
        """Counts changes of the current copy, and tells the app."""
        if on_changes is not None and changes:
            reader = SqliteReader(self, transaction)
            result = on_changes(row_changes_of(list_, changes, reader))
            if inspect.iscoroutine(result):
                result.close()
                raise TypeError("on_changes of a SqliteStore must not be asynchronous")
        return counts_of(changes)

    def _find(self, list_: str, copy: str) -> Any:
        rest = (
            f"from {self._names.copy} where connection = ? and list = ? and copy = ?"
        )
        columns = "id, cursor, version, total_items, refreshed_at"
        return next(iter(self._values(columns, rest, self._connection, list_, copy)), None)

    def _id(self, list_: str, copy: str) -> Optional[int]:
        found = self._find(list_, copy)
        return found[0] if found else None

    def _expect(self, list_: str, copy: str, cursor: Optional[str]) -> None:
        if self.cursor(list_, copy) != cursor:
            raise CopyError("conflict", "Another process has changed the copy: synchronize again")

    def _rename(self, copy_id: Optional[int], copy: str) -> None:
        self._db.execute(f"update {self._names.copy} set copy = ? where id = ?", (copy, copy_id))

    def _delete(self, copy_id: Optional[int]) -> None:
        self._db.execute(f"delete from {self._names.row} where copy_id = ?", (copy_id,))
        self._db.execute(f"delete from {self._names.copy} where id = ?", (copy_id,))

    def _objects(self) -> List[DatabaseObject]:
        """Tables and views that have the names of the store, also temporary ones, which would hide those."""
        names = self._names.all()
        columns = (
            "lower(name), type, coalesce(sql, ''), case when type = 'table' then (select group_concat(name, ' ')"
            " from (select name from pragma_table_info(o.name))) end"
        )
        rest = (
            "from (select * from sqlite_master union all select * from sqlite_temp_master) o"
            f" where lower(name) in ({', '.join('?' for _ in names)})"
        )
        return [DatabaseObject(*values) for values in self._values(columns, rest, *names)]

    def _values(self, columns: str, rest: str, *values: object) -> List[List[Any]]:
        """Values of the rows of a query."""
        found = self._texts(f"cast(json_array({columns}) as blob) {rest}", *values)
        return [json.loads(text) for text in found]

    def _texts(self, sql: str, *values: object) -> Iterator[str]:
        """Texts of a query whose one column is a blob, for which the app has no converter or text factory."""
        cursor = self._db.cursor()
        cursor.row_factory = None
        with _waiting():
            found = cursor.execute(f"select {sql}", values).fetchall()
        return (bytes(blob).decode() for (blob,) in found)

    @contextmanager
    def _transaction(self) -> Iterator[StoreTransaction]:
        # A legacy transaction of sqlite3 begins with the first change of the app.
        if self._db.in_transaction:
            message = "The database has an open transaction: end it before the store writes"
            raise CopyError("transaction_open", message)
        with _waiting():
            self._db.execute("begin immediate")
            transaction = StoreTransaction(self._db, self._db)
            try:
                yield transaction
                transaction.is_open = False
                self._db.execute("commit")
            except BaseException:
                transaction.is_open = False
                # SQLite may have rolled back, for example because the disk is full.
                if self._db.in_transaction:
                    self._db.execute("rollback")
                raise


class SqliteReader(CopiedRows):
    """``store`` of ``on_changes``: the copy after the changes, inside the transaction that writes them."""

    def __init__(self, store: SqliteStore, transaction: StoreTransaction) -> None:
        self._of = store
        self._transaction = transaction

    @property
    def _store(self) -> SqliteStore:
        self._transaction.expect_open()
        return self._of

    def refreshed_at(self) -> Optional[datetime]:
        """Returns the time of the oldest list of the copy."""
        return self._store.refreshed_at()

    def _copied(self, list_: str, from_: object, to: object) -> Iterator[Any]:
        return self._store._copied(list_, from_, to)


def _state_of(found: Any) -> Optional[CopyState]:
    _, _, version, total, refreshed_at = found or (None,) * 5
    return None if total is None else CopyState(version, total, time_of(refreshed_at))


@contextmanager
def _waiting() -> Iterator[None]:
    """Names the error of a database that another process has locked for longer than the wait."""
    try:
        yield
    except sqlite3.OperationalError as error:
        if not re.match(r"database (\w+ )?is locked", str(error)):
            raise
        message = "Another process locks the database: synchronize again"
        raise CopyError("conflict", message) from None
