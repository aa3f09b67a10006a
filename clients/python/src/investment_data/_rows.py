# Made from docs/reference/openapi.json by `npm run docs:renew`. Do not edit.
"""Rows of the service, and the columns of the views of a copy."""

from decimal import Decimal
from typing import Dict, List, Literal, NamedTuple, Optional, TypedDict, Union

#: Type of the movement, from a closed list. `+` adds `titles` to the position, `-` removes them.
#: `=` does not change the position; `titles` is then its size. A transaction that cannot be
#: classified at first has the type `UNKNOWN`. When the cause is resolved and the credential
#: connects again, the same row has the correct type. The client keeps other texts, too.
PortfolioTransactionType = Literal[
    "BUY",
    "COMPENSATION",
    "COUPON",
    "DELISTING",
    "DIVIDENDS",
    "EXPIRATION",
    "INHERITANCE_OR_DONATION_TRANSFER_IN",
    "INHERITANCE_OR_DONATION_TRANSFER_OUT",
    "ISIN_CHANGE_BUY",
    "ISIN_CHANGE_SELL",
    "MERGER_BUY",
    "MERGER_SELL",
    "OFF_MARKET_BUY",
    "OFF_MARKET_SELL",
    "PRODUCT_CHANGE_BUY",
    "PRODUCT_CHANGE_SELL",
    "RIGHTS_CONVERSION_BUY",
    "RIGHTS_CONVERSION_SELL",
    "RIGHTS_EXCLUSION",
    "RIGHTS_ISSUE",
    "SELL",
    "SHARE_ISSUE_PREMIUM",
    "SPINOFF",
    "SPLIT_BUY",
    "SPLIT_SELL",
    "TRANSFER_IN",
    "TRANSFER_OUT",
    "UNKNOWN",
]

#: Reason why the cash balance changed, from a closed list. A transaction that cannot be classified
#: at first has the type `UNKNOWN`. When the cause is resolved and the credential connects again,
#: the same row has the correct type. The client keeps other texts, too.
AccountTransactionType = Literal[
    "COUPON",
    "DEPOSIT",
    "DIVIDENDS",
    "DIVIDEND_RETENTION",
    "DIVIDEND_RETENTION_REFUND",
    "FEES",
    "FEES_REFUND",
    "FOREX_DEPOSIT",
    "FOREX_WITHDRAWAL",
    "GIFT",
    "INTEREST",
    "INTEREST_CHARGE",
    "RETURN_ON_CAPITAL",
    "TAXES",
    "TAX_REFUND",
    "WITHDRAWAL",
    "UNKNOWN",
]

#: ``+`` adds ``titles`` to the position, ``-`` removes them; with ``=`` they are the size of the position.
PositionEffect = Literal["+", "-", "="]

#: Effect of a portfolio transaction on the position, by its type.
EFFECTS: Dict[str, Optional[PositionEffect]] = {
    "BUY": "+",
    "COMPENSATION": "=",
    "COUPON": "=",
    "DELISTING": "-",
    "DIVIDENDS": "=",
    "EXPIRATION": None,
    "INHERITANCE_OR_DONATION_TRANSFER_IN": "+",
    "INHERITANCE_OR_DONATION_TRANSFER_OUT": "-",
    "ISIN_CHANGE_BUY": "+",
    "ISIN_CHANGE_SELL": "-",
    "MERGER_BUY": "+",
    "MERGER_SELL": "-",
    "OFF_MARKET_BUY": "+",
    "OFF_MARKET_SELL": "-",
    "PRODUCT_CHANGE_BUY": "+",
    "PRODUCT_CHANGE_SELL": "-",
    "RIGHTS_CONVERSION_BUY": "+",
    "RIGHTS_CONVERSION_SELL": "-",
    "RIGHTS_EXCLUSION": "-",
    "RIGHTS_ISSUE": "+",
    "SELL": "-",
    "SHARE_ISSUE_PREMIUM": "=",
    "SPINOFF": "+",
    "SPLIT_BUY": "+",
    "SPLIT_SELL": "-",
    "TRANSFER_IN": "+",
    "TRANSFER_OUT": "-",
    "UNKNOWN": "=",
}


class RetentionDetail(TypedDict):
    """Amounts retained from a payment. Both are always present."""

    retentionFrom: Decimal
    """Amount retained on the paying side."""
    retentionTo: Decimal
    """Amount retained on the receiving side."""


class Company(TypedDict):
    """A company. Both members are always present."""

    name: str
    """Name of the company."""
    cif: str
    """Tax identification code of the company."""


class PortfolioTransaction(TypedDict):
    """A movement of an investment in one portfolio. Every field is present; None means unknown.
    Signs are the institution’s. In the sample data all numbers are positive; `type` defines the
    direction.
    """

    transactionId: str
    """Identifier, which does not change when a field is corrected."""
    portfolioId: str
    """Identifier of the portfolio that the transaction belongs to."""
    exchangeRate: Optional[Decimal]
    """Rate between two currencies. The divisor is not defined: compare the amounts before you
    convert.
    """
    type: Union[PortfolioTransactionType, str]
    """Type of the movement, from a closed list."""
    titles: Optional[Decimal]
    """Shares or other units, with fractions; see `type` for the effect."""
    amount: Optional[Decimal]
    """Money that the transaction moves, in `currency`."""
    amountBaseCurrency: Optional[Decimal]
    """The same amount in the base currency of the portfolio."""
    commission: Optional[Decimal]
    """Charge, in `currency`. It is negative at some institutions."""
    taxes: Optional[Decimal]
    """Taxes, in `currency`. They are negative at some institutions."""
    currency: Optional[str]
    """Currency of the amounts: usually ISO 4217, otherwise the institution’s code (GBX for pence).
    """
    localCurrency: Optional[str]
    """Second currency, for example that of the quoted price."""
    description: Optional[str]
    """Text of the institution, in its language."""
    price: Optional[Decimal]
    """Price as the institution quotes it, for example in per cent or in pence."""
    operationDateDay: Optional[str]
    """Day of the transaction. Lists are sorted by it. None only if `valueDateDay` is known. Format:
    YYYY-MM-DD.
    """
    originalOperationDateDay: Optional[str]
    """Operation date in `originalOperationDateTz`. Format: YYYY-MM-DD."""
    valueDateDay: Optional[str]
    """First day in the position or the balance. Lists sort by it if there is no operation date.
    Format: YYYY-MM-DD.
    """
    originalValueDateDay: Optional[str]
    """Value date in `originalValueDateTz`. Format: YYYY-MM-DD."""
    operationDateHour: Optional[str]
    """Time of day on `operationDateDay`: HH:mm or HH:mm:ss, with a fraction or without. Old rows
    may have other texts.
    """
    originalOperationDateHour: Optional[str]
    """Time of day on `originalOperationDateDay`: HH:mm or HH:mm:ss, with a fraction or without. Old
    rows may have other texts.
    """
    valueDateHour: Optional[str]
    """Time of day on `valueDateDay`: HH:mm or HH:mm:ss, with a fraction or without. Old rows may
    have other texts.
    """
    originalValueDateHour: Optional[str]
    """Time of day on `originalValueDateDay`: HH:mm or HH:mm:ss, with a fraction or without. Old
    rows may have other texts.
    """
    originalOperationDateTz: Optional[str]
    """Time zone of the original operation fields, usually an IANA name."""
    originalValueDateTz: Optional[str]
    """Time zone of the original value fields, usually an IANA name."""
    investment: Optional[str]
    """Identifier of the investment that the transaction concerns."""
    relatedTransaction: Optional[str]
    """`transactionId` of a transaction that belongs with it, such as the other side of a split."""
    retentionDetail: Optional[RetentionDetail]
    """Amounts retained from a payment: both, or None."""


class AccountTransaction(TypedDict):
    """A movement of cash in one account. Every field is present; None means unknown. Signs are the
    institution’s.
    """

    movementId: str
    """Identifier, which does not change when a field is corrected."""
    accountId: str
    """Identifier of the account whose balance the transaction changes."""
    type: Union[AccountTransactionType, str]
    """Reason why the cash balance changed, from a closed list."""
    amount: Decimal
    """Change of the cash balance, in `currency`: positive for cash in, negative for cash out."""
    exchangeRate: Optional[Decimal]
    """Rate between two currencies. The divisor is not defined: compare the amounts before you
    convert.
    """
    commission: Optional[Decimal]
    """Charge, in `currency`. It is negative at some institutions."""
    taxes: Optional[Decimal]
    """Taxes, in `currency`. They are negative at some institutions."""
    currency: Optional[str]
    """Currency of the amounts: usually ISO 4217, otherwise the institution’s code (GBX for pence).
    """
    localCurrency: Optional[str]
    """Second currency, for example that of the quoted price."""
    description: Optional[str]
    """Text of the institution, in its language."""
    operationDateDay: Optional[str]
    """Day of the transaction. Lists are sorted by it. None only if `valueDateDay` is known. Format:
    YYYY-MM-DD.
    """
    originalOperationDateDay: Optional[str]
    """Operation date in `originalOperationDateTz`. Format: YYYY-MM-DD."""
    valueDateDay: Optional[str]
    """First day in the position or the balance. Lists sort by it if there is no operation date.
    Format: YYYY-MM-DD.
    """
    originalValueDateDay: Optional[str]
    """Value date in `originalValueDateTz`. Format: YYYY-MM-DD."""
    operationDateHour: Optional[str]
    """Time of day on `operationDateDay`: HH:mm or HH:mm:ss, with a fraction or without. Old rows
    may have other texts.
    """
    originalOperationDateHour: Optional[str]
    """Time of day on `originalOperationDateDay`: HH:mm or HH:mm:ss, with a fraction or without. Old
    rows may have other texts.
    """
    valueDateHour: Optional[str]
    """Time of day on `valueDateDay`: HH:mm or HH:mm:ss, with a fraction or without. Old rows may
    have other texts.
    """
    originalValueDateHour: Optional[str]
    """Time of day on `originalValueDateDay`: HH:mm or HH:mm:ss, with a fraction or without. Old
    rows may have other texts.
    """
    originalOperationDateTz: Optional[str]
    """Time zone of the original operation fields, usually an IANA name."""
    originalValueDateTz: Optional[str]
    """Time zone of the original value fields, usually an IANA name."""
    investment: Optional[str]
    """Identifier of the investment that the transaction concerns."""


class AssetsTransferOrder(TypedDict):
    """An order to transfer assets that the user completed. Every field is present; None means
    unknown.
    """

    id: str
    """Identifier of the order."""
    portfolio: Optional[str]
    """Portfolio of the assets, by its name or number in the order."""
    investment: Optional[str]
    """Identifier of the investment to transfer."""
    name: Optional[str]
    """Name of the asset to transfer."""
    isin: Optional[str]
    """ISIN of the asset (ISO 6166)."""
    currency: Optional[str]
    """Currency of `amount`, usually an ISO 4217 code."""
    assetType: Optional[str]
    """Type of asset: STOCK, ETF, RIGHTS, FUND, PP, BOND or WARRANT. Others may follow."""
    titles: Optional[Decimal]
    """Number of shares or other units to transfer, with fractions."""
    amount: Optional[Decimal]
    """Value to transfer, in `currency`."""
    total: Optional[bool]
    """True for the whole position, false for a part of it."""
    marketer: Optional[Company]
    """Company that markets the asset."""
    managementCompany: Optional[Company]
    """Company that manages the asset."""


#: Names of all decimal fields. The response has them as text.
DECIMAL_FIELDS = frozenset(
    {
        "amount",
        "amountBaseCurrency",
        "commission",
        "exchangeRate",
        "price",
        "retentionFrom",
        "retentionTo",
        "taxes",
        "titles",
    }
)


class Column(NamedTuple):
    """Column of a view of a copy: path of the field in the row, and name of the column."""

    path: str
    name: str
    kind: Literal["text", "boolean", "decimal"]


#: Columns of each view, after ``connection``, ``id`` and ``row``.
COLUMNS: Dict[str, List[Column]] = {
    "portfolio_transactions": [
        Column("transactionId", "transactionId", "text"),
        Column("portfolioId", "portfolioId", "text"),
        Column("type", "type", "text"),
        Column("titles", "titles", "decimal"),
        Column("amount", "amount", "decimal"),
        Column("amountBaseCurrency", "amountBaseCurrency", "decimal"),
        Column("price", "price", "decimal"),
        Column("exchangeRate", "exchangeRate", "decimal"),
        Column("commission", "commission", "decimal"),
        Column("taxes", "taxes", "decimal"),
        Column("currency", "currency", "text"),
        Column("localCurrency", "localCurrency", "text"),
        Column("description", "description", "text"),
        Column("operationDateDay", "operationDateDay", "text"),
        Column("originalOperationDateDay", "originalOperationDateDay", "text"),
        Column("valueDateDay", "valueDateDay", "text"),
        Column("originalValueDateDay", "originalValueDateDay", "text"),
        Column("operationDateHour", "operationDateHour", "text"),
        Column("originalOperationDateHour", "originalOperationDateHour", "text"),
        Column("valueDateHour", "valueDateHour", "text"),
        Column("originalValueDateHour", "originalValueDateHour", "text"),
        Column("originalOperationDateTz", "originalOperationDateTz", "text"),
        Column("originalValueDateTz", "originalValueDateTz", "text"),
        Column("investment", "investment", "text"),
        Column("relatedTransaction", "relatedTransaction", "text"),
        Column("retentionDetail.retentionFrom", "retentionFrom", "decimal"),
        Column("retentionDetail.retentionTo", "retentionTo", "decimal"),
    ],
    "account_transactions": [
        Column("movementId", "movementId", "text"),
        Column("accountId", "accountId", "text"),
        Column("type", "type", "text"),
        Column("amount", "amount", "decimal"),
        Column("exchangeRate", "exchangeRate", "decimal"),
        Column("commission", "commission", "decimal"),
        Column("taxes", "taxes", "decimal"),
        Column("currency", "currency", "text"),
        Column("localCurrency", "localCurrency", "text"),
        Column("description", "description", "text"),
        Column("operationDateDay", "operationDateDay", "text"),
        Column("originalOperationDateDay", "originalOperationDateDay", "text"),
        Column("valueDateDay", "valueDateDay", "text"),
        Column("originalValueDateDay", "originalValueDateDay", "text"),
        Column("operationDateHour", "operationDateHour", "text"),
        Column("originalOperationDateHour", "originalOperationDateHour", "text"),
        Column("valueDateHour", "valueDateHour", "text"),
        Column("originalValueDateHour", "originalValueDateHour", "text"),
        Column("originalOperationDateTz", "originalOperationDateTz", "text"),
        Column("originalValueDateTz", "originalValueDateTz", "text"),
        Column("investment", "investment", "text"),
    ],
    "transfer_orders": [
        Column("portfolio", "portfolio", "text"),
        Column("investment", "investment", "text"),
        Column("name", "name", "text"),
        Column("isin", "isin", "text"),
        Column("currency", "currency", "text"),
        Column("assetType", "assetType", "text"),
        Column("titles", "titles", "decimal"),
        Column("amount", "amount", "decimal"),
        Column("total", "total", "boolean"),
        Column("marketer.name", "marketerName", "text"),
        Column("marketer.cif", "marketerCif", "text"),
        Column("managementCompany.name", "managementCompanyName", "text"),
        Column("managementCompany.cif", "managementCompanyCif", "text"),
    ],
}
