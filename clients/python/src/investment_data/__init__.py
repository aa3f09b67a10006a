"""Client of the Investment Data Query Service. It needs no other package."""

from ._async_client import AsyncConnection, AsyncInvestmentData
from ._client import Connection, InvestmentData
from ._errors import (
    AuthenticationError,
    CopyError,
    CursorExpiredError,
    InvestmentDataError,
    ProblemError,
    QuotaError,
    TransportError,
)
from ._http import VERSION as __version__
from ._http import Attempt
from ._lists import Changes, Complete, CountDiffers, CursorExpired, SyncedCopies, SyncResult
from ._options import Day, Retry
from ._store import CopyChanges, CopyResult, CopyStore, SqliteStore
from ._types import (
    AccountTransaction,
    AccountTransactionType,
    AssetsTransferOrder,
    Company,
    PortfolioTransaction,
    PortfolioTransactionType,
    RetentionDetail,
)

# Tracebacks show the name to import.
for _error in (
    AuthenticationError,
    CopyError,
    CursorExpiredError,
    InvestmentDataError,
    ProblemError,
    QuotaError,
    TransportError,
):
    _error.__module__ = __name__

__all__ = [
    "AccountTransaction",
    "AccountTransactionType",
    "AssetsTransferOrder",
    "AsyncConnection",
    "AsyncInvestmentData",
    "Attempt",
    "AuthenticationError",
    "Changes",
    "Company",
    "Complete",
    "Connection",
    "CopyChanges",
    "CopyError",
    "CopyResult",
    "CopyStore",
    "CountDiffers",
    "CursorExpired",
    "CursorExpiredError",
    "Day",
    "InvestmentData",
    "InvestmentDataError",
    "PortfolioTransaction",
    "PortfolioTransactionType",
    "ProblemError",
    "QuotaError",
    "RetentionDetail",
    "Retry",
    "SqliteStore",
    "SyncResult",
    "SyncedCopies",
    "TransportError",
    "__version__",
]
