"""Client of the Investment Data Query Service. It needs no other package."""

from ._client import (
    Changes,
    Complete,
    Connection,
    CursorExpired,
    Day,
    InvestmentData,
    SyncResult,
)
from ._errors import ProblemError, TransportError
from ._http import Retry
from ._types import (
    AccountTransaction,
    AccountTransactionType,
    AssetsTransferOrder,
    Company,
    PortfolioTransaction,
    PortfolioTransactionType,
    RetentionDetail,
)

__all__ = [
    "AccountTransaction",
    "AccountTransactionType",
    "AssetsTransferOrder",
    "Changes",
    "Company",
    "Complete",
    "Connection",
    "CursorExpired",
    "Day",
    "InvestmentData",
    "PortfolioTransaction",
    "PortfolioTransactionType",
    "ProblemError",
    "RetentionDetail",
    "Retry",
    "SyncResult",
    "TransportError",
]
