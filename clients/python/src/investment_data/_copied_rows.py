"""The rows of a copy, as stores and their readers give them out."""

from abc import ABC, abstractmethod
from typing import Any, AsyncIterator, Iterator, Optional

from ._options import Day
from ._rows import AccountTransaction, AssetsTransferOrder, PortfolioTransaction


class CopiedRows(ABC):
    @abstractmethod
    def _copied(self, list_: str, from_: object, to: object) -> Iterator[Any]:
        """Iterates over the rows of a list."""

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


class AsyncCopiedRows(ABC):
    @abstractmethod
    def _copied(self, list_: str, from_: object, to: object) -> AsyncIterator[Any]:
        """Iterates over the rows of a list."""

    def portfolio_transactions(
        self, *, from_: Optional[Day] = None, to: Optional[Day] = None
    ) -> AsyncIterator[PortfolioTransaction]:
        """Iterates over the portfolio transactions of the copy, newest first. All are of one state."""
        return self._copied("portfolio_transactions", from_, to)

    def account_transactions(
        self, *, from_: Optional[Day] = None, to: Optional[Day] = None
    ) -> AsyncIterator[AccountTransaction]:
        """Iterates over the account transactions of the copy, newest first. All are of one state."""
        return self._copied("account_transactions", from_, to)

    def transfer_orders(self) -> AsyncIterator[AssetsTransferOrder]:
        """Iterates over the completed transfer orders of the copy. It does not keep their order."""
        return self._copied("transfer_orders", None, None)
