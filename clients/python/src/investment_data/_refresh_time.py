from datetime import datetime
from typing import List, Optional, Tuple

from ._copies import ID_FIELDS


def oldest_refresh(copies: List[Tuple[Optional[str], Optional[str]]]) -> Optional[datetime]:
    """The time at which the service last read the institution, for the oldest list of a copy.

    None if a list is missing, or the time is not known.

    :param copies: version and time of each complete list
    """
    if len(copies) < len(ID_FIELDS):
        return None
    # A list without changes was not requested: it is as new as another one with its version.
    times = [
        max([time or "", *(other or "" for same, other in copies if version and same == version)])
        for version, time in copies
    ]
    return time_of(min(times))


def time_of(text: Optional[str]) -> Optional[datetime]:
    return datetime.fromisoformat(text.replace("Z", "+00:00")) if text else None


def text_of(time: Optional[datetime]) -> Optional[str]:
    if time is None:
        return None
    return time.isoformat(timespec="milliseconds").replace("+00:00", "Z")
