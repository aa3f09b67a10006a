import inspect
import re
import sqlite3
from contextlib import contextmanager
from datetime import datetime, timezone
from typing import Any, Dict, Iterator, List, Optional, Tuple

from ._copies import (
    ID_FIELDS,
    AccountChanges,
    CopyChanges,
    CopyCounts,
    CopyState,
    OnChanges,
    OrderChanges,
    PortfolioChanges,
)
from ._errors import CopyError
from ._options import Day, day
from ._rows import AccountTransaction, AssetsTransferOrder, PortfolioTransaction
from ._sqlite_schema import SCHEMA
from ._types import from_json, to_json

_WAIT_MS = 5000
#: Rows that are compared at a time when a copy replaces another one.
_BLOCK_ROWS = 1000
_DAY = "coalesce(json_extract(row, '$.operationDateDay'), json_extract(row, '$.valueDateDay'))"
_CHANGES: Dict[str, Any] = {
    "portfolio_transactions": PortfolioChanges,
    "account_transactions": AccountChanges,
    "transfer_orders": OrderChanges,
}

#: Identifier, and JSON of the row before and after a change; None if the row did not or does not exist.
_Change = Tuple[str, Optional[str], Optional[str]]


class SqliteStore:
    """Keeps copies in SQLite.

    The views ``portfolio_transactions``, ``account_transactions`` and ``transfer_orders`` have the complete
    copies: ``connection``, and one column for each field, with decimals as text. It waits up to 5 s for
    another process, unless the database has a time of its own.

    :param connection: your own name of the connection, not its token; one database may have many
    :param history: keeps each row that changes or is removed, as it was, in the view ``investment_changes``
    """

    def __init__(self, db: sqlite3.Connection, connection: str, *, history: bool = False) -> None:
        if not isinstance(connection, str):
            raise TypeError("connection must be a text")
        self._db = db
        self._connection = connection
        self._history = history
        if self._rows("pragma busy_timeout") == [(0,)]:
            db.execute(f"pragma busy_timeout = {_WAIT_MS}")
        if self._is_current():
            return
        with self._transaction():
            # A copy of release 1.1.0 has the tables without the newer columns, and smaller views.
            if not self._is_current():
                for statement in SCHEMA:
                    db.execute(statement)

    def cursor(self, list_: str, copy: str) -> Optional[str]:
        found = self._find(list_, copy)
        return found[1] if found else None

    def state(self, list_: str) -> Optional[CopyState]:
        _, _, version, total, refreshed_at = self._find(list_, "current") or (None,) * 5
        return None if total is None else CopyState(version, total, _time_of(refreshed_at))

    def apply(self, changes: CopyChanges, on_changes: Optional[OnChanges] = None) -> CopyCounts:
        list_, state = changes.list, changes.state
        with self._transaction():
            self._expect(list_, changes.copy, changes.since)
            self._db.execute(
                "insert into investment_copy"
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
                    state and _text_of(state.refreshed_at),
                ),
            )
            id_ = self._id(list_, changes.copy)
            latest: Dict[str, Optional[str]] = {
                row_id: to_json(row) for row_id, row in changes.upserts
            }
            latest.update((row_id, None) for row_id in changes.removed)
            found = "select row from investment_row where copy_id = ? and id = ?"
            done: List[_Change] = []
            for row_id, after in latest.items():
                before = next((row for (row,) in self._rows(found, id_, row_id)), None)
                if before != after:
                    done.append((row_id, before, after))
            self._db.executemany(
                "insert or replace into investment_row values (?, ?, ?)",
                ((id_, row_id, after) for row_id, _, after in done if after is not None),
            )
            self._db.executemany(
                "delete from investment_row where copy_id = ? and id = ?",
                ((id_, row_id) for row_id, _, after in done if after is None),
            )
            if changes.copy != "current":
                return CopyCounts()
            return self._report(list_, changes.cursor, done, self._history, on_changes)

    def count(self, list_: str, copy: str) -> int:
        sql = "select count(*) from investment_row where copy_id = ?"
        ((count,),) = self._rows(sql, self._id(list_, copy))
        return int(count)

    def swap(
        self, list_: str, cursor: str, on_changes: Optional[OnChanges] = None
    ) -> CopyCounts:
        with self._transaction():
            self._expect(list_, "next", cursor)
            keep = self._history and self._find(list_, "current") is not None
            counts = CopyCounts()
            for block in self._differences(list_):
                counts = counts.plus(self._report(list_, cursor, block, keep, on_changes))
            self._delete(list_, "current")
            self._db.execute(
                "update investment_copy set copy = 'current'"
                " where connection = ? and list = ? and copy = 'next'",
                (self._connection, list_),
            )
            return counts

    def discard(self, list_: str) -> None:
        with self._transaction():
            self._delete(list_, "next")

    def refreshed_at(self) -> Optional[datetime]:
        """Returns the time at which the service last read the institution, for the oldest list of the copy.

        Returns None if the copy is not complete, or the time is not known.
        """
        copies = self._rows(
            "select version, coalesce(refreshed_at, '') from investment_copy"
            " where connection = ? and copy = 'current'",
            self._connection,
        )
        # A list without changes was not requested: it is as new as another one with its version.
        times = [
            max([time, *(other for same, other in copies if same == version and version is not None)])
            for version, time in copies
        ]
        return _time_of(min(times)) if len(times) == len(ID_FIELDS) else None

    def portfolio_transactions(
        self, *, from_: Optional[Day] = None, to: Optional[Day] = None
    ) -> Iterator[PortfolioTransaction]:
        """Iterates over the portfolio transactions of the copy, newest first. All are of one state."""
        return self._copied("portfolio_transactions", from_, to)

    def account_transactions(
        self, *, from_: Optional[Day] = None, to: Optional[Day] = None
    ) -> Iterator[AccountTransaction]:
        """Iterates over the account transactions of the copy, newest first. All are of one state."""
        return self._copied("account_transactions", from_, to)

    def transfer_orders(self) -> Iterator[AssetsTransferOrder]:
        """Iterates over the completed transfer orders of the copy. It does not keep their order."""
        return self._copied("transfer_orders", None, None)

    def delete(self) -> None:
        """Deletes all that the store has written for this connection, also the history."""
        with self._transaction():
            for list_ in ID_FIELDS:
                for copy in ("current", "next"):
                    self._delete(list_, copy)
            self._db.execute(
                "delete from investment_history where connection = ?", (self._connection,)
            )

    def _copied(self, list_: str, from_: object, to: object) -> Iterator[Any]:
        sql = (
            "select row from investment_row where copy_id = ?1"
            f" and (?2 is null or {_DAY} >= ?2) and (?3 is null or {_DAY} <= ?3)"
            f" order by {_DAY} desc, json_extract(row, '$.operationDateHour') desc, id desc"
        )
        id_ = self._id(list_, "current")
        found = self._rows(sql, id_, day("from_", from_), day("to", to))
        return (from_json(row) for (row,) in found)

    def _differences(self, list_: str) -> Iterator[List[_Change]]:
        """Compares the next copy with the current one."""
        upserts = (
            "select n.id, c.row, n.row from investment_row n"
            " left join investment_row c on c.copy_id = ?2 and c.id = n.id"
            " where n.copy_id = ?1 and n.row is not c.row and n.id > ?3"
            f" order by n.id limit {_BLOCK_ROWS}"
        )
        removals = (
            "select c.id, c.row, null from investment_row c where c.copy_id = ?2 and c.id > ?3"
            " and not exists (select 1 from investment_row n where n.copy_id = ?1 and n.id = c.id)"
            f" order by c.id limit {_BLOCK_ROWS}"
        )
        for sql in (upserts, removals):
            last = ""
            while True:
                ids = self._id(list_, "next"), self._id(list_, "current")
                block = self._rows(sql, *ids, last)
                if not block:
                    break
                yield block
                last = block[-1][0]

    def _report(
        self,
        list_: str,
        cursor: str,
        changes: List[_Change],
        keep: bool,
        on_changes: Optional[OnChanges],
    ) -> CopyCounts:
        """Counts changes of the current copy, keeps what they replace, and tells the app."""
        if keep:
            at = _text_of(datetime.now(timezone.utc))
            self._db.executemany(
                "insert into investment_history"
                " (connection, list, id, before, after, seen_at, cursor) values (?, ?, ?, ?, ?, ?, ?)",
                ((self._connection, list_, *change, at, cursor) for change in changes),
            )
        if on_changes is not None and changes:
            result = on_changes(
                _CHANGES[list_](
                    list_,
                    [from_json(after) for _, _, after in changes if after is not None],
                    [id_ for id_, _, after in changes if after is None],
                    {id_: from_json(before) for id_, before, _ in changes if before is not None},
                )
            )
            if inspect.iscoroutine(result):
                result.close()
                raise TypeError("on_changes must not be asynchronous")
        inserted = sum(before is None for _, before, _ in changes)
        removed = sum(after is None for _, _, after in changes)
        return CopyCounts(inserted, len(changes) - inserted - removed, removed)

    def _find(self, list_: str, copy: str) -> Any:
        sql = (
            "select id, cursor, version, total_items, refreshed_at from investment_copy"
            " where connection = ? and list = ? and copy = ?"
        )
        return next(iter(self._rows(sql, self._connection, list_, copy)), None)

    def _id(self, list_: str, copy: str) -> Optional[int]:
        found = self._find(list_, copy)
        return found[0] if found else None

    def _expect(self, list_: str, copy: str, cursor: Optional[str]) -> None:
        if self.cursor(list_, copy) != cursor:
            raise CopyError("conflict", "Another process has changed the copy: synchronize again")

    def _delete(self, list_: str, copy: str) -> None:
        id_ = self._id(list_, copy)
        self._db.execute("delete from investment_row where copy_id = ?", (id_,))
        self._db.execute("delete from investment_copy where id = ?", (id_,))

    def _is_current(self) -> bool:
        sql = "select 1 from pragma_table_info('investment_copy') where name = 'refreshed_at'"
        return bool(self._rows(sql))

    def _rows(self, sql: str, *values: object) -> List[Any]:
        cursor = self._db.cursor()
        # The app may have another one.
        cursor.row_factory = None
        with _waiting():
            return cursor.execute(sql, values).fetchall()

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with _waiting():
            self._db.execute("begin immediate")
            try:
                yield
                self._db.execute("commit")
            except BaseException:
                # SQLite may have rolled back, for example because the disk is full.
                if self._db.in_transaction:
                    self._db.execute("rollback")
                raise


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


def _time_of(text: Optional[str]) -> Optional[datetime]:
    return datetime.fromisoformat(text.replace("Z", "+00:00")) if text else None


def _text_of(time: Optional[datetime]) -> Optional[str]:
    if time is None:
        return None
    return time.isoformat(timespec="milliseconds").replace("+00:00", "Z")
