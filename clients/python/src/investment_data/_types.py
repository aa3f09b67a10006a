"""What the rows mean, and their JSON.

A ``Decimal`` has every digit of the institution. Write it with ``format(value, "f")``, because ``str()``
may use an exponent. Identifiers are UUIDs in lower case, and days are texts such as ``2025-03-14``.
"""

import json
import re
from decimal import Decimal
from typing import Any, Dict, Optional

from ._rows import DECIMAL_FIELDS, EFFECTS, PositionEffect


def position_effect(type_: str) -> Optional[PositionEffect]:
    """Returns the effect of a type on the position; None for EXPIRATION and for unknown types."""
    return EFFECTS.get(type_)


_DECIMAL = re.compile(r"-?[0-9]+(\.[0-9]+)?")


def _with_decimals(value: Dict[str, Any]) -> Dict[str, Any]:
    for name in DECIMAL_FIELDS & value.keys():
        text = value[name]
        if isinstance(text, str) and _DECIMAL.fullmatch(text):
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
