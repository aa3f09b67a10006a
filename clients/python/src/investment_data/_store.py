import json
import sqlite3
from contextlib import contextmanager
from dataclasses import dataclass
from typing import (
    Any,
    AsyncIterator,
    Awaitable,
    Callable,
    Iterator,
    List,
    Optional,
    Protocol,
    Tuple,
    TypeVar,
    Union,
)

from ._errors import CopyError, CursorExpiredError

T = TypeVar("T")

#: A value; an awaitable of it for the asynchronous client.
Maybe = Union[T, Awaitable[T]]

#: New copies that a call begins before it fails.
_MAX_BUILDS = 3


@dataclass(frozen=True)
class CopyChanges:
    """One page of changes."""

    #: ``portfolio_transactions`` or ``account_transactions``.
    list: str
    #: ``current``: complete, for the app. ``next``: built beside it, and replaces it when it is complete.
    copy: str
    #: Cursor of the copy before these changes; None if the copy does not exist yet.
    since: Optional[str]
    #: Cursor of the copy after these changes.
    cursor: str
    #: Identifiers, and new and changed rows, each in its latest state.
    upserts: List[Tuple[str, Any]]
    #: Identifiers of rows that no longer exist.
    removed: List[str]


class CopyStore(Protocol):
    """Database that keeps a copy of the transactions of one connection."""

    def cursor(self, list_: str, copy: str) -> Maybe[Optional[str]]:
        """Returns the cursor of a copy, or None if the copy does not exist."""

    def apply(self, changes: CopyChanges) -> Maybe[None]:
        """Writes rows, removals and the cursor in one transaction.

        :raises CopyError: ``conflict``, if the cursor of the copy is not ``since``: another process has written
        """

    def count(self, list_: str, copy: str) -> Maybe[int]:
        """Counts the rows of a copy."""

    def swap(self, list_: str, cursor: str) -> Maybe[None]:
        """Replaces the current copy by the next one, in one transaction.

        :raises CopyError: ``conflict``, if the cursor of the next copy is not ``cursor``
        """

    def discard(self, list_: str) -> Maybe[None]:
        """Deletes the next copy, if there is one."""


@dataclass(frozen=True)
class CopyResult:
    """Result of sync_transactions() for a list."""

    #: Rows of the copy, and of the list.
    total_items: int
    #: True if the copy is new: the first one, or one that replaced a copy with unknown changes.
    rebuilt: bool


# The TypeScript client has the same tables, so both can continue a copy.
_SCHEMA = """
create table if not exists investment_copy (
  id integer primary key,
  connection text not null,
  list text not null,
  copy text not null,
  cursor text not null,
  unique (connection, list, copy)
);
create table if not exists investment_row (
  copy_id integer not null references investment_copy (id),
  id text not null,
  row text not null,
  primary key (copy_id, id)
) without rowid;
create view if not exists portfolio_transactions as
  select connection, r.id, row from investment_copy c join investment_row r on copy_id = c.id
  where list = 'portfolio_transactions' and copy = 'current';
create view if not exists account_transactions as
  select connection, r.id, row from investment_copy c join investment_row r on copy_id = c.id
  where list = 'account_transactions' and copy = 'current';
"""


class SqliteStore:
    """Keeps copies in SQLite.

    The views ``portfolio_transactions`` and ``account_transactions`` have the complete copies:
    ``connection``, ``id``, and ``row`` as JSON with decimals as text.

    :param connection: your own name of the connection, not its token; one database may have many
    """

    def __init__(self, db: sqlite3.Connection, connection: str) -> None:
        if not isinstance(connection, str):
            raise TypeError("connection must be a text")
        self._db = db
        self._connection = connection
        db.executescript(_SCHEMA)

    def cursor(self, list_: str, copy: str) -> Optional[str]:
        found = self._find(list_, copy)
        return found[1] if found else None

    def apply(self, changes: CopyChanges) -> None:
        with self._transaction():
            self._expect(changes.list, changes.copy, changes.since)
            self._db.execute(
                "insert into investment_copy (connection, list, copy, cursor) values (?, ?, ?, ?)"
                " on conflict (connection, list, copy) do update set cursor = excluded.cursor",
                (self._connection, changes.list, changes.copy, changes.cursor),
            )
            id_, _ = self._find(changes.list, changes.copy) or (None, None)
            self._db.executemany(
                "insert or replace into investment_row values (?, ?, ?)",
                ((id_, row_id, _encoder.encode(row)) for row_id, row in changes.upserts),
            )
            self._db.executemany(
                "delete from investment_row where copy_id = ? and id = ?",
                ((id_, row_id) for row_id in changes.removed),
            )

    def count(self, list_: str, copy: str) -> int:
        id_, _ = self._find(list_, copy) or (None, None)
        (count,) = self._row("select count(*) from investment_row where copy_id = ?", id_)
        return int(count)

    def swap(self, list_: str, cursor: str) -> None:
        with self._transaction():
            self._expect(list_, "next", cursor)
            self._delete(list_, "current")
            self._db.execute(
                "update investment_copy set copy = 'current'"
                " where connection = ? and list = ? and copy = 'next'",
                (self._connection, list_),
            )

    def discard(self, list_: str) -> None:
        with self._transaction():
            self._delete(list_, "next")

    def _find(self, list_: str, copy: str) -> Optional[Tuple[int, str]]:
        sql = (
            "select id, cursor from investment_copy where connection = ? and list = ? and copy = ?"
        )
        found: Optional[Tuple[int, str]] = self._row(sql, self._connection, list_, copy)
        return found

    def _row(self, sql: str, *values: object) -> Any:
        cursor = self._db.cursor()
        # The app may have another one.
        cursor.row_factory = None
        return cursor.execute(sql, values).fetchone()

    def _expect(self, list_: str, copy: str, cursor: Optional[str]) -> None:
        if self.cursor(list_, copy) != cursor:
            raise CopyError("conflict", "Another process has changed the copy: synchronize again")

    def _delete(self, list_: str, copy: str) -> None:
        id_, _ = self._find(list_, copy) or (None, None)
        self._db.execute("delete from investment_row where copy_id = ?", (id_,))
        self._db.execute("delete from investment_copy where id = ?", (id_,))

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._db.execute("begin immediate")
        try:
            yield
            self._db.execute("commit")
        except BaseException:
            # SQLite may have rolled back, for example because the disk is full.
            if self._db.in_transaction:
                self._db.execute("rollback")
            raise


_encoder = json.JSONEncoder(
    default=lambda decimal: format(decimal, "f"), ensure_ascii=False, separators=(",", ":")
)


async def value_of(value: Maybe[T]) -> T:
    return await value if isinstance(value, Awaitable) else value


async def sync_copy(
    store: CopyStore,
    list_: str,
    id_name: str,
    pages_since: Callable[[Optional[str]], AsyncIterator[Any]],
) -> CopyResult:
    """Brings the copy of a list up to date. Builds a second one if it cannot be continued."""
    building = await value_of(store.cursor(list_, "next")) is not None
    complete = await value_of(store.cursor(list_, "current")) is not None
    copy = "current" if complete and not building else "next"
    builds = 0
    while True:
        since = await value_of(store.cursor(list_, copy))
        total = 0
        error: Exception
        try:
            async for page in pages_since(since):
                upserts = [(row[id_name], row) for row in page["items"]]
                cursor = page["nextCursor"]
                changes = CopyChanges(list_, copy, since, cursor, upserts, page["removed"])
                await value_of(store.apply(changes))
                since, total = cursor, page["totalItems"]
            count = await value_of(store.count(list_, copy))
            if count == total and since is not None:
                if copy == "next":
                    await value_of(store.swap(list_, since))
                return CopyResult(total, copy == "next")
            error = CopyError("count_differs", f"The copy has {count} rows, and the list {total}")
        except CursorExpiredError as expired:
            error = expired
        if builds == _MAX_BUILDS:
            raise error
        await value_of(store.discard(list_))
        copy = "next"
        builds += 1
