"""Tables and views of a copy. The TypeScript client has the same ones, so both can continue a copy."""

import re
from dataclasses import dataclass
from typing import Dict, List, Optional

from ._rows import COLUMNS

#: Columns of the tables, those of release 1.1.0 first.
_COPY_COLUMNS = "id connection list copy cursor version total_items refreshed_at"
_COPY_COLUMNS_OF_1_1_0 = "id connection list copy cursor"
_ROW_COLUMNS = "copy_id id row"
_HISTORY_COLUMNS = "number connection list id before after seen_at cursor"


@dataclass(frozen=True)
class StoreNames:
    """Names of the tables and views of a store."""

    copy: str
    row: str
    history: str
    #: The view of each list.
    lists: Dict[str, str]
    changes: str

    def all(self) -> List[str]:
        """All names: those of the tables, then those of the views."""
        return [self.copy, self.row, self.history, *self.lists.values(), self.changes]


@dataclass(frozen=True)
class DatabaseObject:
    """A table or view of the database."""

    name: str
    type: str
    sql: str
    #: Names of the columns of a table, in their order; None for a view.
    columns: Optional[str]


def names_of(prefix: object) -> StoreNames:
    """Names of the tables and views."""
    if not isinstance(prefix, str):
        raise TypeError("prefix must be a text")
    if not re.fullmatch(r"([a-z][a-z0-9_]{0,29})?", prefix):
        raise ValueError("prefix must be 1 to 30 of a-z, 0-9 and _, and begin with a letter")
    return StoreNames(
        f"{prefix}investment_copy",
        f"{prefix}investment_row",
        f"{prefix}investment_history",
        {list_: f"{prefix}{list_}" for list_ in COLUMNS},
        f"{prefix}investment_changes",
    )


def is_current(names: StoreNames, objects: List[DatabaseObject]) -> bool:
    """True if the tables are those of this release: nothing is left to make."""
    return any(each.name == names.copy and each.columns == _COPY_COLUMNS for each in objects)


def is_own(names: StoreNames, found: DatabaseObject) -> bool:
    """True if a store has made the table or view. Views of each release have one form."""
    is_table = found.type == "table"
    if found.name == names.copy:
        return is_table and found.columns in (_COPY_COLUMNS, _COPY_COLUMNS_OF_1_1_0)
    if found.name == names.row:
        return is_table and found.columns == _ROW_COLUMNS
    if found.name == names.history:
        return is_table and found.columns == _HISTORY_COLUMNS
    if found.type != "view":
        return False
    text = re.sub(r"\s+", " ", found.sql).strip()
    if found.name == names.changes:
        return f" from {names.history} h, json_each(before) " in text
    list_ = next(each for each, view in names.lists.items() if view == found.name)
    fields = r"(, json_extract\(row, '[$.A-Za-z]+'\) as [A-Za-z]+)*"
    source = f"from {names.copy} c join {names.row} r on copy_id = c.id"
    own = f"as select connection, r.id, row{fields} {source}"
    where = f"where list = '{list_}' and copy = 'current'"
    return bool(re.fullmatch(f"create view {found.name} {own} {where}", text, re.IGNORECASE))


def schema_of(names: StoreNames) -> List[str]:
    """Statements that make the tables and views, also from those of release 1.1.0."""
    return [
        f"""create table if not exists {names.copy} (
    id integer primary key,
    connection text not null,
    list text not null,
    copy text not null,
    cursor text not null,
    unique (connection, list, copy)
  )""",
        f"""create table if not exists {names.row} (
    copy_id integer not null references {names.copy} (id),
    id text not null,
    row text not null,
    primary key (copy_id, id)
  ) without rowid""",
        # The columns of a newer release are at the end, and may be null, for a program that goes back.
        *(
            f"alter table {names.copy} add column {column}"
            for column in ("version text", "total_items integer", "refreshed_at text")
        ),
        # The number has the order, because a clock may step back.
        f"""create table {names.history} (
    number integer primary key autoincrement,
    connection text not null,
    list text not null,
    id text not null,
    before text,
    after text,
    seen_at text not null,
    cursor text not null
  )""",
        *(
            statement
            for list_ in COLUMNS
            for statement in (f"drop view if exists {names.lists[list_]}", _view_of(names, list_))
        ),
        f"create view {names.changes} as {_changes_of(names, 'before', '')}"
        f" union all {_changes_of(names, 'after', _ONLY_AFTER)}",
    ]


def _view_of(names: StoreNames, list_: str) -> str:
    fields = ", ".join(
        f"json_extract(row, '$.{column.path}') as {column.name}" for column in COLUMNS[list_]
    )
    return f"""create view {names.lists[list_]} as select connection, r.id, row, {fields}
    from {names.copy} c join {names.row} r on copy_id = c.id
    where list = '{list_}' and copy = 'current'"""


def _changes_of(names: StoreNames, side: str, condition: str) -> str:
    """The fields of one side of a change that differ on the other side."""
    return f"""
  select number, connection, list, h.id,
    case when before is null then 'inserted' when after is null then 'removed' else 'updated' end as change,
    key as field, json_extract(before, fullkey) as before, json_extract(after, fullkey) as after,
    seen_at, cursor
  from {names.history} h, json_each({side})
  where json_extract(before, fullkey) is not json_extract(after, fullkey) {condition}"""


_ONLY_AFTER = "and (before is null or json_type(before, fullkey) is null)"
