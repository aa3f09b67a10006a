from typing import Any, Iterable, List, Set, Tuple, TypeVar

from ._types import position_effect

Row = TypeVar("Row")

#: Types that add shares without the loss of others, also if they name a row that removes shares.
_GRANTS = ("RIGHTS_ISSUE", "SPINOFF")


def effective_day(row: Any) -> str:
    """Returns the effective day of a transaction: its operation date, or else its value date."""
    day: str = row["operationDateDay"] or row["valueDateDay"] or ""
    return day


def chronological(rows: Iterable[Row]) -> List[Row]:
    """Returns transactions with the oldest first. Rows of a day have the order of their hours.

    Without hours: of two related rows, the outgoing one is first; other incoming rows come before outgoing
    ones.
    """
    all_: List[Any] = list(rows)
    effects = {_id_of(row): position_effect(row["type"]) for row in all_}
    paired: Set[Any] = set()
    for row in all_:
        related = row.get("relatedTransaction")
        if {effects[_id_of(row)], effects.get(related)} == {"+", "-"}:
            paired.update((_id_of(row), related))

    def order(row: Any) -> Tuple[str, str, str, int, str]:
        """A sale without an hour is the last row of its day, others are the first."""
        effect, is_paired = effects[_id_of(row)], _id_of(row) in paired
        rank = 3
        if effect == "+":
            rank = 2 if is_paired and row["type"] not in _GRANTS else 0
        elif effect == "-":
            rank = 1 if is_paired else 4
        hour = row["operationDateHour"]
        part = "1" if hour is not None else "2" if rank == 4 else "0"
        return effective_day(row), part, hour or "", rank, _id_of(row)

    return sorted(all_, key=order)


def _id_of(row: Any) -> str:
    id_: str = row["transactionId"] if "transactionId" in row else row["movementId"]
    return id_
