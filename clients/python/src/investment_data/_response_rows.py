"""Forms of the responses: a row without its fields never reaches the app."""

from decimal import Decimal
from typing import Any, Dict, List, NamedTuple, Tuple, Union

from ._rows import COLUMNS

#: Fields that are never null.
_KNOWN = frozenset({"transactionId", "portfolioId", "movementId", "accountId", "id", "type"})
#: Most objects and lists around a value. A row has three.
_MAX_DEPTH = 32
_TYPES: Dict[str, type] = {"text": str, "decimal": Decimal, "boolean": bool}


class _Field(NamedTuple):
    name: str
    #: Field of an object, which is the value of ``name``.
    inner: str
    types: Tuple[type, ...]


def _field_of(path: str, kind: str) -> _Field:
    name, _, inner = path.partition(".")
    types = (_TYPES[kind],) if path in _KNOWN else (_TYPES[kind], type(None))
    return _Field(name, inner, types)


_FIELDS = {
    list_: [_field_of(path, kind) for path, _, kind in columns]
    for list_, columns in COLUMNS.items()
}
_FIELDS["transfer_orders"].insert(0, _field_of("id", "text"))
#: Value of a field that a row lacks.
_MISSING = object()


class UnusableResponse(Exception):
    """A response that the client does not use. The message has no text of it."""


def check_row(list_: str, row: object) -> None:
    """
    :raises UnusableResponse: the row lacks one of its fields, or has a value of another type
    """
    if not isinstance(row, dict):
        raise UnusableResponse("A row of the response is no object")
    if not _is_shallow(row, _MAX_DEPTH):
        raise too_deep()
    for name, inner, types in _FIELDS[list_]:
        value = row.get(name, _MISSING)
        if inner and isinstance(value, dict):
            name, value = inner, value.get(inner, _MISSING)
        elif inner and value is not None:
            raise _no_field(name)
        if not isinstance(value, types):
            raise _no_field(name)


def check_page(list_: str, page: object, is_of_changes: bool) -> None:
    """
    :raises UnusableResponse: this is no page of a list, or of its changes
    """
    body: Dict[str, Any] = page if isinstance(page, dict) else {}
    if not isinstance(body.get("items"), list):
        raise _no_property("items")
    if not _is_count(body.get("totalItems")):
        raise _no_property("totalItems")
    for row in body["items"]:
        check_row(list_, row)
    if not is_of_changes:
        # The pages of a limit of 0 would never end.
        if not _is_count(body.get("limit")) or body["limit"] == 0:
            raise _no_property("limit")
        return
    removed = body.get("removed")
    if not isinstance(removed, list) or not all(isinstance(id_, str) for id_ in removed):
        raise _no_property("removed")
    if not isinstance(body.get("nextCursor"), str):
        raise _no_property("nextCursor")
    if not isinstance(body.get("hasMore"), bool):
        raise _no_property("hasMore")


def check_orders(orders: object) -> None:
    """
    :raises UnusableResponse: these are no orders
    """
    if not isinstance(orders, list):
        raise UnusableResponse("The response is no list")
    for row in orders:
        check_row("transfer_orders", row)


def too_deep() -> UnusableResponse:
    return UnusableResponse("The response has too many objects or lists in each other")


def _is_shallow(value: Union[Dict[str, Any], List[Any]], depth: int) -> bool:
    """Whether an object or a list has no more than ``depth`` of them in each other."""
    for each in value.values() if isinstance(value, dict) else value:
        if isinstance(each, (dict, list)) and (depth == 1 or not _is_shallow(each, depth - 1)):
            return False
    return True


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _no_field(name: str) -> UnusableResponse:
    return UnusableResponse(f"A row of the response has no valid {name}")


def _no_property(name: str) -> UnusableResponse:
    return UnusableResponse(f"The response has no valid {name}")
