from collections import defaultdict
from typing import DefaultDict, Iterable, Mapping, Optional, Set, Tuple

from ._rows import AssetsTransferOrder


class Naming:
    """What investments are called."""

    def __init__(
        self, orders: Iterable[AssetsTransferOrder], names: Optional[Mapping[str, str]]
    ) -> None:
        #: Names that the app knows. They come before those of transfer orders.
        self._names = names or {}
        self._names_of_orders: DefaultDict[str, Set[str]] = defaultdict(set)
        self._isins: DefaultDict[str, Set[str]] = defaultdict(set)
        for order in orders:
            investment, name, isin = order["investment"], order["name"], order["isin"]
            if investment is None:
                continue
            if name is not None:
                self._names_of_orders[investment].add(name)
            if isin is not None:
                self._isins[investment].add(isin)

    def of(self, investment: Optional[str]) -> Tuple[Optional[str], Optional[str]]:
        """Name and ISIN of an investment."""
        if investment is None:
            return None, None
        name = self._names.get(investment)
        if name is None:
            name = _only_one(self._names_of_orders.get(investment))
        return name, _only_one(self._isins.get(investment))


def _only_one(texts: Optional[Set[str]]) -> Optional[str]:
    """The text on which all orders agree; None if there is none, or if they differ."""
    return next(iter(texts)) if texts and len(texts) == 1 else None
