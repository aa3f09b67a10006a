import re
from dataclasses import dataclass
from datetime import date, datetime
from typing import Dict, Optional, Union

#: A day: a date, or a text such as ``2025-03-14``.
Day = Union[date, str]

#: Longest time limit and delay: a day, in seconds.
MAX_SECONDS = 86_400


def number(name: str, value: object, least: float, most: float) -> float:
    """A valid number. The message of its error has no value."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"{name} must be a number")
    if not least <= value <= most:
        raise ValueError(f"{name} must be a number from {least} to {most}")
    return float(value)


def integer(name: str, value: object, least: int, most: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name} must be an integer")
    if not least <= value <= most:
        raise ValueError(f"{name} must be an integer from {least} to {most}")
    return value


def instance(name: str, value: object, kind: type) -> None:
    if not isinstance(value, kind):
        raise TypeError(f"{name} must be of the type {kind.__name__}")


def visible_ascii(name: str, value: object, most: int = 8192) -> str:
    """A valid header. An error of http.client would show an invalid one."""
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a text")
    if len(value) > most or re.fullmatch(r"[\x21-\x7e]+", value) is None:
        raise ValueError(f"{name} must be 1 to {most} visible ASCII characters")
    return value


def app_token(value: object) -> str:
    """The token of an app; an error also for a whole header, because the client adds ``Bearer``."""
    if isinstance(value, str) and re.match(r"bearer\b", value, re.IGNORECASE):
        raise ValueError('token must be the token alone: the client adds "Bearer"')
    if value == "":
        raise ValueError("the token is empty: is the variable set?")
    return visible_ascii("token", value)


def connection_token(value: object) -> str:
    """The token of a connection.

    The service would answer 404 for a line break that a file has at its end, as it does for a connection that
    was removed.
    """
    if not isinstance(value, str):
        raise TypeError("the token of a connection must be a text")
    # A path would lose `.` and `..`.
    if re.fullmatch(r"\.{0,2}", value) or re.search("[\ud800-\udfff]", value):
        raise ValueError("the token of a connection must be a text other than '.' and '..'")
    if value != value.strip() or re.search("[\x00-\x1f\x7f-\x9f\u2028\u2029]|^\ufeff|\ufeff$", value):
        problem = "begins or ends with white space, or has a line break"
        raise ValueError(f"the token of a connection {problem}")
    return value


def day(name: str, value: object) -> Optional[str]:
    """Text of a day. A datetime is no day: its day depends on a time zone."""
    if isinstance(value, datetime) or not isinstance(value, (date, str, type(None))):
        raise TypeError(f"{name} must be a date, or a text such as 2025-03-14")
    return None if value is None else str(value)


def calendar_day(name: str, value: object) -> str:
    """Text of a day of the calendar: it is counted, or compared as text."""
    text = day(name, value)
    if text is None:
        raise TypeError(f"{name} must be a date, or a text such as 2025-03-14")
    try:
        is_day = date.fromisoformat(text).isoformat() == text
    except ValueError:
        is_day = False
    if not is_day:
        raise ValueError(f"{name} must be a day such as 2025-03-14")
    return text


@dataclass(frozen=True)
class Retry:
    """Repeated attempts of a request. Delays are in seconds."""

    #: Attempts of a request, with the first.
    attempts: int = 6
    #: Longest random delay before the second attempt; it doubles with each attempt.
    base_delay: float = 0.5
    #: Longest delay. A longer ``Retry-After`` ends the attempts.
    max_delay: float = 60.0

    def __post_init__(self) -> None:
        integer("attempts", self.attempts, 1, 1000)
        number("base_delay", self.base_delay, 0, MAX_SECONDS)
        number("max_delay", self.max_delay, 0, MAX_SECONDS)


class Secret:
    """Text that ``repr()`` hides, so that a report of local variables does not show it."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        return self._text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._text == self._text

    def __hash__(self) -> int:
        return hash(self._text)

    def __repr__(self) -> str:
        return "Secret()"


def days(from_: object, to: object) -> Dict[str, Optional[str]]:
    return {"from": day("from_", from_), "to": day("to", to)}
