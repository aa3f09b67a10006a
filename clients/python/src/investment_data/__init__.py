"""Client of the Investment Data Query Service. It needs no other package."""

from ._async_client import AsyncConnection, AsyncInvestmentData, AsyncRows
from ._client import Connection, InvestmentData, Rows
from ._chronological import chronological, effective_day
from ._copies import (
    AccountChanges,
    CopyChanges,
    CopyCounts,
    CopyResult,
    CopyState,
    CopyStore,
    KnownCopy,
    OnChanges,
    OrderChanges,
    PortfolioChanges,
    PostgresOnChanges,
    RowChanges,
    SyncedCopies,
)
from ._decimals import exact_sum
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
from ._lists import (
    Changes,
    Complete,
    CountDiffers,
    CursorExpired,
    Orders,
    SyncResult,
)
from ._options import Day, Retry
from ._position_walk import Gap, PositionCheck, PositionReason, PositionStatus
from ._positions import (
    Position,
    PositionsOfDay,
    check_positions,
    positions,
    positions_by_day,
)
from ._postgres_store import AsyncPostgresReader, AsyncPostgresStore, PostgresReader, PostgresStore
from ._rows import (
    AccountTransaction,
    AccountTransactionType,
    AssetsTransferOrder,
    Company,
    PortfolioTransaction,
    PortfolioTransactionType,
    PositionEffect,
    RetentionDetail,
)
from ._sqlite_store import SqliteReader, SqliteStore
from ._types import position_effect

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
    "AccountChanges",
    "AccountTransaction",
    "AccountTransactionType",
    "AssetsTransferOrder",
    "AsyncConnection",
    "AsyncInvestmentData",
    "AsyncPostgresReader",
    "AsyncPostgresStore",
    "AsyncRows",
    "Attempt",
    "AuthenticationError",
    "Changes",
    "Company",
    "Complete",
    "Connection",
    "CopyChanges",
    "CopyCounts",
    "CopyError",
    "CopyResult",
    "CopyState",
    "CopyStore",
    "CountDiffers",
    "CursorExpired",
    "CursorExpiredError",
    "Day",
    "Gap",
    "InvestmentData",
    "InvestmentDataError",
    "KnownCopy",
    "OnChanges",
    "OrderChanges",
    "Orders",
    "PortfolioChanges",
    "PortfolioTransaction",
    "PortfolioTransactionType",
    "Position",
    "PositionCheck",
    "PositionEffect",
    "PositionReason",
    "PositionStatus",
    "PositionsOfDay",
    "PostgresOnChanges",
    "PostgresReader",
    "PostgresStore",
    "ProblemError",
    "QuotaError",
    "RetentionDetail",
    "Retry",
    "RowChanges",
    "Rows",
    "SqliteReader",
    "SqliteStore",
    "SyncResult",
    "SyncedCopies",
    "TransportError",
    "__version__",
    "check_positions",
    "chronological",
    "effective_day",
    "exact_sum",
    "position_effect",
    "positions",
    "positions_by_day",
]
