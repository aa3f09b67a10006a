"""Tables and views of a copy in PostgreSQL. The TypeScript client has the same ones, so both can continue a copy."""

import re
from typing import List

from ._rows import COLUMNS, Column
from ._sqlite_schema import StoreNames

#: Comment of each table and view of a store. It tells them from those of the app. The number is that of the
#: schema.
MARK = "copy of the Investment Data Query Service, schema 1"


def _column_name(name: str) -> str:
    """operationDateDay is operation_date_day, because PostgreSQL folds names."""
    return re.sub("[A-Z]", lambda letter: f"_{letter[0].lower()}", name)


def _expression_of(column: Column) -> str:
    steps = column.path.replace(".", ",")
    text = f"(row #>> '{{{steps}}}')"
    if column.kind == "decimal":
        return f"{text}::numeric"
    if column.kind == "boolean":
        return f"{text}::boolean"
    # Hours and identifiers stay texts, because institutions may have other forms.
    return f"{text}::date" if column.name.endswith("Day") else text


def _view_of(names: StoreNames, list_: str) -> str:
    fields = ", ".join(
        f"{_expression_of(column)} as {_column_name(column.name)}" for column in COLUMNS[list_]
    )
    return f"""create view {names.lists[list_]} as
    select c.connection, r.id, r.row, {fields}
    from {names.copy} c join {names.row} r on r.copy_id = c.id
    where c.list = '{list_}' and c.copy = 'current'"""


def postgres_schema(names: StoreNames) -> List[str]:
    """Statements that make the tables and views."""
    statements = [
        f"""create table {names.copy} (
    id bigint generated always as identity primary key,
    connection text not null,
    list text not null,
    copy text not null,
    cursor text not null,
    version text,
    total_items bigint,
    refreshed_at timestamptz,
    unique (connection, list, copy)
  )""",
        # The order of the identifiers is that of their bytes, so that it does not depend on the database.
        f"""create table {names.row} (
    copy_id bigint not null references {names.copy} (id),
    id text collate "C" not null,
    row jsonb not null,
    primary key (copy_id, id)
  )""",
        # The number has the order, because a clock may step back.
        f"""create table {names.history} (
    number bigint generated always as identity primary key,
    connection text not null,
    list text not null,
    id text not null,
    before jsonb,
    after jsonb,
    seen_at timestamptz not null,
    cursor text not null
  )""",
        f"create index on {names.history} (connection, list, id)",
        *(_view_of(names, list_) for list_ in COLUMNS),
        f"""create view {names.changes} as
    select h.number, h.connection, h.list, h.id,
      case when before is null then 'inserted' when after is null then 'removed' else 'updated' end as change,
      f.field, before ->> f.field as before, after ->> f.field as after, h.seen_at, h.cursor
    from {names.history} h cross join lateral (
      select jsonb_object_keys(coalesce(before, '{{}}')) as field
      union select jsonb_object_keys(coalesce(after, '{{}}'))
    ) f
    where before ->> f.field is distinct from after ->> f.field""",
    ]
    tables = [names.copy, names.row, names.history]
    views = [*names.lists.values(), names.changes]
    return [
        *statements,
        *(f"comment on table {name} is '{MARK}'" for name in tables),
        *(f"comment on view {name} is '{MARK}'" for name in views),
        _with_rights_of_reader(views),
    ]


def _with_rights_of_reader(views: List[str]) -> str:
    """A statement that lets views show the rows that their reader may see, and not those of their owner.

    Row-level security of the tables then holds for the views. PostgreSQL has the option since version 15.
    """
    changes = "\n      ".join(f"alter view {name} set (security_invoker = true);" for name in views)
    return f"""do $$ begin
    if current_setting('server_version_num')::int >= 150000 then
      {changes}
    end if;
  end $$"""
