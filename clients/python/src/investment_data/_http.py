import email.utils
import errno
import http.client
import json
import random
import re
import socket
import ssl
import time
import urllib.error
import urllib.parse
import urllib.request
import zlib
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Dict, Mapping, Optional, Tuple, Union

from ._errors import ProblemError, TransportError
from ._types import DECIMAL_FIELDS

_ACCEPT = "application/json;IEEE754Compatible=true"
_DECIMALS_AS_TEXT = re.compile(r';\s*IEEE754Compatible\s*=\s*"?true\b', re.IGNORECASE)
_RETRIED = frozenset({429, 500, 502, 503, 504})
_CHUNK_BYTES = 65_536

Query = Mapping[str, Union[str, int, None]]
Headers = Mapping[str, str]


@dataclass(frozen=True)
class Retry:
    """Repeated attempts of a request. Delays are in seconds."""

    #: Attempts of a request, with the first.
    attempts: int = 6
    #: Longest random delay before the second attempt; it doubles with each attempt.
    base_delay: float = 0.5
    #: Longest delay. A longer ``Retry-After`` ends the attempts.
    max_delay: float = 60.0


class Secret:
    """Text that ``repr()`` hides, so that a report of local variables does not show it."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return "Secret()"


@dataclass(frozen=True)
class _Failure:
    """Failure of an attempt; ``retry`` is true if a later attempt may succeed."""

    error: Exception
    retry: bool
    retry_after: float = 0.0


class _EveryStatus(urllib.request.HTTPErrorProcessor):
    """Returns every response. The errors of urllib have the URL, and it follows redirects."""

    def http_response(self, request: Any, response: Any) -> Any:
        return response

    https_response = http_response


class Http:
    """Sends GET requests, and repeats those that failed for a time."""

    def __init__(
        self,
        base_url: str,
        token: str,
        timeout: float,
        retry: Retry,
        ssl_context: Optional[ssl.SSLContext],
    ) -> None:
        self._base = _base_of(base_url)
        # An error of http.client would show an invalid token.
        if re.fullmatch(r"[\x21-\x7e]+", token) is None:
            raise ValueError("token must be visible ASCII characters")
        self._token = Secret(token)
        self._timeout = timeout
        self._retry = retry
        https = urllib.request.HTTPSHandler(context=ssl_context)
        self._opener = urllib.request.build_opener(_EveryStatus(), https)

    def get(self, path: Secret, query: Query) -> Tuple[Any, Headers]:
        """Returns the JSON of a 200, with Decimals, and its headers by lower-case name."""
        attempt = 1
        while True:
            result = self._attempt(path, query)
            if not isinstance(result, _Failure):
                return result
            delay = self._delay(attempt, result.retry_after)
            if not result.retry or attempt >= self._retry.attempts or delay is None:
                raise result.error
            time.sleep(delay)
            attempt += 1

    def _delay(self, attempt: int, retry_after: float) -> Optional[float]:
        """``Retry-After`` plus a random part, or None if the service asks for a longer delay."""
        if retry_after > self._retry.max_delay:
            return None
        backoff = self._retry.base_delay * 2.0 ** (attempt - 1)
        return min(self._retry.max_delay, retry_after + random.random() * backoff)

    def _attempt(self, path: Secret, query: Query) -> Union[Tuple[Any, Headers], _Failure]:
        """Returns errors: one that is raised here would have the URL in its context."""
        try:
            return _read(*self._send(path, query))
        except (TimeoutError, socket.timeout):
            code = "timeout"
        except (http.client.IncompleteRead, EOFError, zlib.error):
            code = "incomplete_body"
        except (OSError, http.client.HTTPException) as error:
            code = _code_of(error)
        return _transport_failure(code)

    def _send(self, path: Secret, query: Query) -> Tuple[int, Headers, bytes]:
        given = {name: str(value) for name, value in query.items() if value is not None}
        request = urllib.request.Request(
            f"{self._base.reveal()}{path.reveal()}?{urllib.parse.urlencode(given)}",
            headers={
                "Accept": _ACCEPT,
                "Accept-Encoding": "gzip",
                "Authorization": f"Bearer {self._token.reveal()}",
            },
        )
        deadline = time.monotonic() + self._timeout
        with self._opener.open(request, timeout=self._timeout) as response:
            chunks = []
            while True:
                chunk = response.read1(_CHUNK_BYTES)
                if not chunk:
                    break
                chunks.append(chunk)
                # The timeout of a socket applies to each read.
                if time.monotonic() > deadline:
                    raise TimeoutError
            # Rest of the announced length. A read does not report that the connection ended before it.
            if response.length:
                raise EOFError
            headers = {name.lower(): value for name, value in response.getheaders()}
            return response.status, headers, _decoded(b"".join(chunks), headers)


def _base_of(base_url: str) -> Secret:
    base: Optional[urllib.parse.SplitResult]
    try:
        base = urllib.parse.urlsplit(base_url)
        valid = base.scheme in ("http", "https") and bool(base.hostname) and base.username is None
    except ValueError:
        valid = False
    if not valid or re.search(r"[\s\x00-\x1f\x7f?#]", base_url):
        raise ValueError("base_url must be an http or https URL without credentials")
    return Secret(base_url.rstrip("/") + "/")


def _decoded(body: bytes, headers: Headers) -> bytes:
    if headers.get("content-encoding") != "gzip":
        return body
    decoder = zlib.decompressobj(wbits=31)
    decoded = decoder.decompress(body)
    if not decoder.eof:
        raise EOFError
    return decoded


def _read(status: int, headers: Headers, text: bytes) -> Union[Tuple[Any, Headers], _Failure]:
    content_type = headers.get("content-type", "")
    is_json = "json" in content_type
    try:
        body = json.loads(text, object_hook=_with_decimals)
    except ValueError:
        if status == 200 and is_json:
            return _transport_failure("incomplete_body")
        body = None
    if status == 200 and body is not None and _DECIMALS_AS_TEXT.search(content_type):
        return body, headers
    error = _problem_of(status, body)
    if error is None and status == 200 and is_json:
        message = "The service cannot send decimals as text"
        error = TransportError("decimals_not_text", message, status)
    if error is None:
        message = f"Status {status} is not from the service"
        error = TransportError("unexpected_response", message, status)
    return _Failure(error, status in _RETRIED, _retry_after(headers))


def _with_decimals(value: Dict[str, Any]) -> Dict[str, Any]:
    for name in DECIMAL_FIELDS.intersection(value):
        if isinstance(value[name], str):
            value[name] = Decimal(value[name])
    return value


def _problem_of(status: int, body: Any) -> Optional[Exception]:
    if not isinstance(body, dict):
        return None
    texts = [body.get(name) for name in ("code", "detail", "requestId")]
    if not all(isinstance(text, str) for text in texts):
        return None
    code, detail, request_id = map(str, texts)
    return ProblemError(status, code, detail, request_id, body.get("errors"))


def _retry_after(headers: Headers) -> float:
    """Seconds of ``Retry-After``, which is a number of seconds or an HTTP date."""
    text = headers.get("retry-after", "")
    if re.fullmatch("[0-9]+", text):
        return float(text)
    try:
        return max(0.0, email.utils.parsedate_to_datetime(text).timestamp() - time.time())
    except (TypeError, ValueError, OverflowError):
        return 0.0


def _transport_failure(code: str) -> _Failure:
    messages = {
        "timeout": "No complete response arrived in time",
        "incomplete_body": "The response is incomplete",
    }
    return _Failure(TransportError(code, messages.get(code, f"The request failed: {code}")), True)


def _code_of(error: BaseException) -> str:
    """Code of a network error. urllib wraps it as ``reason``."""
    reason = getattr(error, "reason", error)
    if isinstance(reason, (TimeoutError, socket.timeout)):
        return "timeout"
    # The errno of these errors is a code of OpenSSL or getaddrinfo(): 1 would be read as EPERM.
    if isinstance(reason, ssl.SSLError):
        return reason.reason or "network_error"
    if isinstance(reason, socket.gaierror):
        return "EAI_AGAIN" if reason.errno == socket.EAI_AGAIN else "ENOTFOUND"
    number = getattr(reason, "errno", None)
    return errno.errorcode.get(number, "network_error") if number else "network_error"
