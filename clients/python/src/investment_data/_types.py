"""Rows of the service. Every field is present; ``None`` means unknown.

A ``Decimal`` has every digit of the institution. Write it with ``format(value, "f")``, because ``str()``
may use an exponent. Identifiers are UUIDs in lower case, and days are texts such as ``2025-03-14``.
"""

import json
from decimal import Decimal
from typing import Any, Dict, Literal, Optional, TypedDict, Union

# Later versions of the service may add values.
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

#: ``+`` adds ``titles`` to the position, ``-`` removes them; with ``=`` they are the size of the position.
PositionEffect = Literal["+", "-", "="]

#: Effect of a portfolio transaction on the position, by its type.
_EFFECTS: Dict[str, Optional[PositionEffect]] = {
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


def position_effect(type_: str) -> Optional[PositionEffect]:
    """Returns the effect of a type on the position; None for EXPIRATION and for unknown types."""
    return _EFFECTS.get(type_)


# Later versions of the service may add values.
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


class RetentionDetail(TypedDict):
    """Amounts retained from a payment."""

    retentionFrom: Decimal
    retentionTo: Decimal


class PortfolioTransaction(TypedDict):
    """Movement of an investment in a portfolio."""

    transactionId: str
    portfolioId: str
    exchangeRate: Optional[Decimal]
    type: Union[PortfolioTransactionType, str]
    titles: Optional[Decimal]
    amount: Optional[Decimal]
    amountBaseCurrency: Optional[Decimal]
    commission: Optional[Decimal]
    taxes: Optional[Decimal]
    currency: Optional[str]
    localCurrency: Optional[str]
    description: Optional[str]
    price: Optional[Decimal]
    operationDateDay: Optional[str]
    originalOperationDateDay: Optional[str]
    valueDateDay: Optional[str]
    originalValueDateDay: Optional[str]
    operationDateHour: Optional[str]
    originalOperationDateHour: Optional[str]
    valueDateHour: Optional[str]
    originalValueDateHour: Optional[str]
    originalOperationDateTz: Optional[str]
    originalValueDateTz: Optional[str]
    investment: Optional[str]
    relatedTransaction: Optional[str]
    retentionDetail: Optional[RetentionDetail]


class AccountTransaction(TypedDict):
    """Movement of cash in an account."""

    movementId: str
    accountId: str
    type: Union[AccountTransactionType, str]
    amount: Decimal
    exchangeRate: Optional[Decimal]
    commission: Optional[Decimal]
    taxes: Optional[Decimal]
    currency: Optional[str]
    localCurrency: Optional[str]
    description: Optional[str]
    operationDateDay: Optional[str]
    originalOperationDateDay: Optional[str]
    valueDateDay: Optional[str]
    originalValueDateDay: Optional[str]
    operationDateHour: Optional[str]
    originalOperationDateHour: Optional[str]
    valueDateHour: Optional[str]
    originalValueDateHour: Optional[str]
    originalOperationDateTz: Optional[str]
    originalValueDateTz: Optional[str]
    investment: Optional[str]


class Company(TypedDict):
    """Company with its Spanish tax identification code."""

    name: str
    cif: str


class AssetsTransferOrder(TypedDict):
    """Completed order to transfer assets."""

    id: str
    portfolio: Optional[str]
    investment: Optional[str]
    name: Optional[str]
    isin: Optional[str]
    currency: Optional[str]
    assetType: Optional[str]
    titles: Optional[Decimal]
    amount: Optional[Decimal]
    total: Optional[bool]
    marketer: Optional[Company]
    managementCompany: Optional[Company]


# Names of all decimal fields. The response has them as text.
DECIMAL_FIELDS = frozenset(
    {
        "exchangeRate",
        "titles",
        "amount",
        "amountBaseCurrency",
        "commission",
        "taxes",
        "price",
        "retentionFrom",
        "retentionTo",
    }
)


def _with_decimals(value: Dict[str, Any]) -> Dict[str, Any]:
    for name in DECIMAL_FIELDS & value.keys():
        text = value[name]
        if isinstance(text, str):
            value[name] = Decimal(text)
    return value


_decoder = json.JSONDecoder(object_hook=_with_decimals)
_encoder = json.JSONEncoder(
    default=lambda decimal: format(decimal, "f"), ensure_ascii=False, separators=(",", ":")
)


def from_json(text: str) -> Any:
    """Parses JSON, with decimal fields as Decimal."""
    return _decoder.decode(text)


def to_json(row: object) -> str:
    """Writes a row with decimals as text, as the TypeScript client does."""
    return _encoder.encode(row)
