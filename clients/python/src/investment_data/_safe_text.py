import re
import unicodedata
import urllib.parse
from typing import Sequence

#: Longest text of a response that an error repeats, in characters.
_MAX_LENGTH = 500


def safe_text(text: str, tokens: Sequence[str]) -> str:
    """Makes a text of a response safe for an error and its log.

    A service or a proxy may repeat the request, which has both tokens, or send line breaks and control
    characters. A text with a token is left out.
    """
    decoded = urllib.parse.unquote(text)
    if any(token and (token in text or token in decoded) for token in tokens):
        return "(left out, because it has a token)"
    printable = "".join(" " if _is_control(sign) else sign for sign in text[: _MAX_LENGTH + 1])
    printable = re.sub(" {2,}", " ", printable)
    return printable if len(text) <= _MAX_LENGTH else printable[:_MAX_LENGTH] + " …"


def _is_control(sign: str) -> bool:
    return unicodedata.category(sign) in ("Cc", "Cf", "Cs", "Zl", "Zp")
