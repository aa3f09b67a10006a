"""Tables and views of a copy. The TypeScript client has the same ones, so both can continue a copy."""

from ._rows import COLUMNS


def _view_of(list_: str) -> str:
    fields = ", ".join(
        f"json_extract(row, '$.{column.path}') as {column.name}" for column in COLUMNS[list_]
    )
    return f"""create view {list_} as select connection, r.id, row, {fields}
    from investment_copy c join investment_row r on copy_id = c.id
    where list = '{list_}' and copy = 'current'"""


def _changes_of(side: str, condition: str) -> str:
    """The fields of one side of a change that differ on the other side."""
    return f"""
  select number, connection, list, h.id,
    case when before is null then 'inserted' when after is null then 'removed' else 'updated' end as change,
    key as field, json_extract(before, fullkey) as before, json_extract(after, fullkey) as after,
    seen_at, cursor
  from investment_history h, json_each({side})
  where json_extract(before, fullkey) is not json_extract(after, fullkey) {condition}"""


_ONLY_AFTER = "and (before is null or json_type(before, fullkey) is null)"

# Makes the tables and views, also from those of release 1.1.0.
SCHEMA = [
    """create table if not exists investment_copy (
    id integer primary key,
    connection text not null,
    list text not null,
    copy text not null,
    cursor text not null,
    unique (connection, list, copy)
  )""",
    """create table if not exists investment_row (
    copy_id integer not null references investment_copy (id),
    id text not null,
    row text not null,
    primary key (copy_id, id)
  ) without rowid""",
    # The columns of a newer release are at the end, and may be null, for a program that goes back.
    *(
        f"alter table investment_copy add column {column}"
        for column in ("version text", "total_items integer", "refreshed_at text")
    ),
    # The number has the order, because a clock may step back.
    """create table investment_history (
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
        for statement in (f"drop view if exists {list_}", _view_of(list_))
    ),
    "create view investment_changes as"
    f" {_changes_of('before', '')} union all {_changes_of('after', _ONLY_AFTER)}",
]
