from decimal import Context, Decimal, Inexact
from typing import Iterable

#: Keeps every digit: a decimal has 38 digits before the point and 38 after it. More digits would be an error.
EXACT = Context(prec=1000, traps=[Inexact])


def exact_sum(decimals: Iterable[Decimal]) -> Decimal:
    """Adds decimals without rounding. ``sum()`` rounds to the precision of the context, 28 digits by default.

    Leave out None yourself: the sum of an unknown amount is not known.

    :raises TypeError: a value is not a Decimal
    """
    total = Decimal(0)
    for decimal in decimals:
        if not isinstance(decimal, Decimal) or not decimal.is_finite():
            raise TypeError("exact_sum() adds values of the type Decimal; leave out None")
        total = EXACT.add(total, decimal)
    return total
