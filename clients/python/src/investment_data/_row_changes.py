"""Changes of rows, for all stores."""

from typing import Any, Dict, List, Optional, Tuple

from ._copies import AccountChanges, CopyChanges, CopyCounts, OrderChanges, PortfolioChanges
from ._types import from_json, to_json

#: Identifier, and JSON of the row before and after a change; None if the row did not or does not exist.
Change = Tuple[str, Optional[str], Optional[str]]

_CHANGES: Dict[str, Any] = {
    "portfolio_transactions": PortfolioChanges,
    "account_transactions": AccountChanges,
    "transfer_orders": OrderChanges,
}


def counts_of(changes: List[Change]) -> CopyCounts:
    inserted = sum(before is None for _, before, _ in changes)
    removed = sum(after is None for _, _, after in changes)
    return CopyCounts(inserted, len(changes) - inserted - removed, removed)


def row_changes_of(list_: str, changes: List[Change], store: Any) -> Any:
    """The changes as an app gets them, with the store of the transaction."""
    told = _CHANGES[list_](
        list_,
        [from_json(after) for _, _, after in changes if after is not None],
        [id_ for id_, _, after in changes if after is None],
        {id_: from_json(before) for id_, before, _ in changes if before is not None},
    )
    object.__setattr__(told, "store", store)
    return told


def latest_of(changes: CopyChanges) -> Dict[str, Optional[str]]:
    """The last state of each row of a page; None for a removed row."""
    latest: Dict[str, Optional[str]] = {row_id: to_json(row) for row_id, row in changes.upserts}
    latest.update((row_id, None) for row_id in changes.removed)
    return latest
