import email.utils
import errno
import http.client
import json
import logging
import random
import re
import socket
import ssl
import time
import urllib.parse
import uuid
import zlib
from dataclasses import dataclass
from datetime import datetime
from typing import (
    Any,
    Awaitable,
    Callable,
    Dict,
    Generic,
    List,
    Mapping,
    Optional,
    Protocol,
    Set,
    Tuple,
    TypeVar,
    Union,
)

from ._connections import Connections, Headers, Limit, Response
from ._errors import (
    AuthenticationError,
    CursorExpiredError,
    Facts,
    InvestmentDataError,
    ProblemError,
    QuotaError,
    TransportError,
)
from ._options import MAX_SECONDS, Retry, Secret, app_token, instance, number
from ._response_rows import UnusableResponse, too_deep
from ._safe_text import safe_text
from ._types import from_json

VERSION = "2.0.0"

#: Most bytes of a JSON response, after decompression: 10,000 usual rows have a tenth.
_MAX_BYTES = 64 * 2**20
#: Most bytes of a response that is no 200.
_MAX_ERROR_BYTES = 2**20

T = TypeVar("T")
Query = Mapping[str, Union[str, int, None]]

_DECIMALS_AS_TEXT = re.compile(r';\s*IEEE754Compatible\s*=\s*"?true\b', re.IGNORECASE)
_RETRIED = frozenset({429, 500, 502, 503, 504})
#: Names of headers with addresses, which may have the connection token.
_UNSAFE_HEADERS = frozenset({"location", "content-location", "link", "refresh", "set-cookie"})
_PROBLEMS = {401: AuthenticationError, 410: CursorExpiredError, 429: QuotaError}
_MESSAGES = {
    "timeout": "No complete response arrived in time",
    "call_timeout": "The call did not end in time",
    "incomplete_body": "The response is incomplete",
    "unexpected_response": "The response is not from the service",
    "no_tls": "The port does not speak TLS: use http, or another port",
    "ENOTFOUND": "The host of the service is unknown",
    "ECONNREFUSED": "No server listens at the address of the service",
}
#: What OpenSSL makes of a response without TLS.
_NO_TLS = re.compile(
    "WRONG_VERSION_NUMBER|RECORD_LAYER_FAILURE|PACKET_LENGTH_TOO_LONG|HTTP_REQUEST"
)
_log = logging.getLogger("investment_data")


@dataclass(frozen=True)
class Media:
    """Media type of a request, and its name in the response."""

    accept: str
    name: str
    decimals_as_text: bool = True


JSON = Media("application/json;IEEE754Compatible=true", "json")
NDJSON = Media("application/x-ndjson;IEEE754Compatible=true", "x-ndjson")
CSV = Media("text/csv", "csv", decimals_as_text=False)


@dataclass(frozen=True)
class Attempt:
    """End of an attempt, for logs and metrics. It has no address and no token."""

    #: Path after the connection token.
    list: str
    #: Number of the attempt, from 1.
    attempt: int
    #: Duration in seconds.
    duration: float
    #: Status of the response; None without a response.
    status: Optional[int]
    request_id: Optional[str]
    trace_id: str
    #: Code of the error; None after a success.
    code: Optional[str]
    #: Delay in seconds before the next attempt; None after the last one.
    delay: Optional[float]


@dataclass(frozen=True)
class Call:
    """A connection, a list of it, and the end of the call as time.monotonic()."""

    token: Secret
    list: str
    trace_id: str
    end: float

    def seconds_left(self) -> Optional[float]:
        """Seconds until the end; None without an end.

        :raises TransportError: ``call_timeout``, if none are left
        """
        if self.end == float("inf"):
            return None
        left = self.end - time.monotonic()
        if left <= 0:
            facts = Facts(trace_id=self.trace_id)
            raise TransportError("call_timeout", _MESSAGES["call_timeout"], facts)
        return left


@dataclass(frozen=True)
class _Success(Generic[T]):
    value: T


@dataclass(frozen=True)
class _Failure:
    """Failure of an attempt; ``retry`` is true if a later attempt may succeed."""

    error: InvestmentDataError
    retry: bool


class Waiting(Protocol):
    """Way in which a client waits for the network."""

    def run(self, work: Callable[[], T], limit: Limit) -> Awaitable[T]: ...

    def sleep(self, seconds: float) -> Awaitable[None]: ...

    def within(self, work: Awaitable[T], seconds: float) -> Awaitable[T]:
        """Cancels the work after a time: TimeoutError."""
        ...


class Http:
    """Sends GET requests, and repeats those that failed for a time."""

    def __init__(
        self,
        base_url: str,
        token: str,
        timeout: float,
        call_timeout: Optional[float],
        retry: Retry,
        ssl_context: Optional[ssl.SSLContext],
        on_attempt: Optional[Callable[[Attempt], object]],
        waiting: Waiting,
    ) -> None:
        instance("retry", retry, Retry)
        if ssl_context is not None:
            instance("ssl_context", ssl_context, ssl.SSLContext)
        if on_attempt is not None and not callable(on_attempt):
            raise TypeError("on_attempt must be a function")
        base = _base_of(base_url)
        self._path = Secret(urllib.parse.urlsplit(base.reveal()).path)
        self._token = Secret(app_token(token))
        self._timeout = number("timeout", timeout, 0.001, MAX_SECONDS)
        self._call_timeout = float("inf")
        if call_timeout is not None:
            self._call_timeout = number("call_timeout", call_timeout, 0.001, MAX_SECONDS)
        self._retry = retry
        self._on_attempt = on_attempt
        self.waiting = waiting
        self._warnings: Set[str] = set()
        self.connections = Connections(base.reveal(), ssl_context)

    def call(self, token: Secret, list_: str, trace_id: Optional[str]) -> Call:
        """Begins a call: its time limit starts."""
        end = time.monotonic() + self._call_timeout
        return Call(token, list_, trace_id or str(uuid.uuid4()), end)

    async def get(
        self, call: Call, query: Query, check: Callable[[Any], None]
    ) -> Tuple[Any, Headers]:
        """Returns the JSON of a 200, with Decimals, and its headers.

        :param check: raises UnusableResponse for JSON of another form
        """

        def read(response: Response) -> Tuple[Any, Headers]:
            body = _json_of(response)
            check(body)
            return body, response.headers

        return await self._repeat(call, query, JSON, read)

    async def open(self, call: Call, query: Query, media: Media) -> Response:
        """Returns a 200 whose body is not read. No attempt follows."""
        return await self._repeat(call, query, media, lambda response: response)

    async def read(self, call: Call, response: Response, work: Callable[[Response], T]) -> T:
        """Reads a part of a body. The time in which the app uses a part does not count."""
        limit = response.limit
        limit.restart()
        result = await self.waiting.run(
            lambda: self._guard(call, 1, limit, [response], lambda: _Success(work(response))), limit
        )
        if isinstance(result, _Failure):
            raise result.error
        return result.value

    async def _repeat(
        self, call: Call, query: Query, media: Media, read: Callable[[Response], T]
    ) -> T:
        attempt = 1
        while True:
            start = time.monotonic()
            limit = Limit(self._timeout, call.end)
            seen: List[Response] = []
            result = await self.waiting.run(
                lambda: self._guard(
                    call,
                    attempt,
                    limit,
                    seen,
                    lambda: self._attempt(call, attempt, query, media, read, limit, seen),
                ),
                limit,
            )
            error = result.error if isinstance(result, _Failure) else None
            delay = self._delay(call, result) if isinstance(result, _Failure) else None
            if self._on_attempt is not None:
                response = seen[0] if seen else None
                self._on_attempt(
                    Attempt(
                        list=call.list,
                        attempt=attempt,
                        duration=time.monotonic() - start,
                        status=response.status if response else None,
                        request_id=self._facts(call, attempt, response).headers.get("x-request-id"),
                        trace_id=call.trace_id,
                        code=error.code if error else None,
                        delay=delay,
                    )
                )
            if isinstance(result, _Success):
                return result.value
            if delay is None:
                raise result.error
            await self.waiting.sleep(delay)
            attempt += 1

    def _delay(self, call: Call, failure: _Failure) -> Optional[float]:
        """Seconds before the next attempt, or None if there is none."""
        retry_after = failure.error.retry_after or 0.0
        attempts = failure.error.attempts
        last = not failure.retry or attempts >= self._retry.attempts
        if last or retry_after > self._retry.max_delay:
            return None
        backoff = self._retry.base_delay * 2.0 ** (attempts - 1) * random.random()
        delay = min(self._retry.max_delay, retry_after + backoff)
        return delay if time.monotonic() + delay < call.end else None

    def _guard(
        self,
        call: Call,
        attempts: int,
        limit: Limit,
        seen: List[Response],
        work: Callable[[], Union[_Success[T], _Failure]],
    ) -> Union[_Success[T], _Failure]:
        """Returns errors: one that is raised here would have the URL in its context."""
        sentence = ""
        try:
            return work()
        except UnusableResponse as error:
            code, retry, sentence = "unexpected_response", False, str(error)
        except (
            OSError,
            http.client.HTTPException,
            EOFError,
            RecursionError,
            ValueError,
            zlib.error,
        ) as error:
            code, retry = _code_of(error, limit)
        for response in seen:
            response.close()
        message = sentence or _MESSAGES.get(code, f"The request failed: {code}")
        facts = self._facts(call, attempts, seen[0] if seen else None)
        return _Failure(TransportError(code, message, facts), retry)

    def _attempt(
        self,
        call: Call,
        attempts: int,
        query: Query,
        media: Media,
        read: Callable[[Response], T],
        limit: Limit,
        seen: List[Response],
    ) -> Union[_Success[T], _Failure]:
        given = {name: str(value) for name, value in query.items() if value is not None}
        headers = {
            "Accept": media.accept,
            "Accept-Encoding": "gzip",
            "Authorization": f"Bearer {self._token.reveal()}",
            "User-Agent": f"investment-data-client-python/{VERSION}",
            "X-Client-Trace-ID": call.trace_id,
        }
        path = f"api/v1/queries/connections/{call.token.reveal()}/{call.list}"
        target = f"{self._path.reveal()}{path}?{urllib.parse.urlencode(given)}"
        response = self.connections.send(target, headers, limit)
        seen.append(response)
        self._warn(call, response.headers)
        content_type = response.headers.get("content-type", "")
        is_type = media.name in content_type
        exact = not media.decimals_as_text or _DECIMALS_AS_TEXT.search(content_type)
        if response.status == 200 and is_type and exact:
            return _Success(read(response))
        facts = self._facts(call, attempts, response)
        secrets = self._secrets(call)
        error = _error_of(
            response.status,
            response.read_all(_MAX_ERROR_BYTES) or b"",
            is_type,
            facts,
            lambda text: safe_text(text, secrets),
        )
        return _Failure(error, response.status in _RETRIED)

    def _facts(self, call: Call, attempts: int, response: Optional[Response]) -> Facts:
        if response is None:
            return Facts(trace_id=call.trace_id, attempts=attempts)
        secrets = self._secrets(call)
        safe = {
            name: value
            for name, value in response.headers.items()
            if name not in _UNSAFE_HEADERS and not any(secret in value for secret in secrets)
        }
        retry_after = _retry_after(response.headers)
        return Facts(response.status, safe, retry_after, call.trace_id, attempts)

    def _secrets(self, call: Call) -> Tuple[str, ...]:
        token = call.token.reveal()
        return (token, urllib.parse.unquote(token), self._token.reveal())

    def _warn(self, call: Call, headers: Headers) -> None:
        """Warns once about the end of a list. See "Compatibility" on the page /docs."""
        names = ("Deprecation", "Sunset")
        values = {name: headers[name.lower()] for name in names if name.lower() in headers}
        secrets = self._secrets(call)
        marks = [f"{name}: {safe_text(value, secrets)}" for name, value in values.items()]
        message = f"The service will end or change {call.list} ({', '.join(marks)}). Read its CHANGELOG.md."
        if marks and message not in self._warnings:
            self._warnings.add(message)
            _log.warning(message)


def _base_of(base_url: str) -> Secret:
    if not isinstance(base_url, str):
        raise TypeError("base_url must be a text")
    try:
        base = urllib.parse.urlsplit(base_url)
        valid = base.scheme in ("http", "https") and bool(base.hostname) and base.username is None
        valid = valid and base.port != 0
    except ValueError:
        valid = False
    if not valid or re.fullmatch(r"[\x21-\x7e]+", base_url) is None or re.search("[?#]", base_url):
        raise ValueError("base_url must be an http or https URL without credentials, in ASCII")
    if re.search("/api/v1(/|$)", base.path):
        raise ValueError("base_url must not have the path /api/v1: the client adds it")
    return Secret(base_url.rstrip("/") + "/")


def _json_of(response: Response) -> Any:
    """JSON, within bounds of its size and depth."""
    body = response.read_all(_MAX_BYTES)
    if body is None:
        size = _MAX_BYTES // 2**20
        raise UnusableResponse(f"The response is larger than {size} MiB: use a smaller page size")
    try:
        return from_json(body.decode())
    except RecursionError:
        raise too_deep() from None


def refreshed_at_of(headers: Headers) -> Optional[datetime]:
    """Reads ``Data-Refreshed``; None if the service has not refreshed the connection yet."""
    try:
        return datetime.fromisoformat(headers["data-refreshed"].replace("Z", "+00:00"))
    except (KeyError, ValueError):
        return None


#: Form of the codes of the service. A later version may add codes.
_CODE = re.compile("[a-z][a-z0-9_]{0,63}")
#: Number of parameters that an error repeats. The service lists 20 at most.
_MAX_FAULTS = 20


def _error_of(
    status: int, text: bytes, is_type: bool, facts: Facts, safe: Callable[[str], str]
) -> InvestmentDataError:
    try:
        body = json.loads(text)
    except (ValueError, RecursionError):  # a page of a proxy
        body = None
    names = ("code", "detail", "requestId")
    if isinstance(body, dict) and all(isinstance(body.get(name), str) for name in names):
        code, detail, request_id = (str(body[name]) for name in names)
        if _CODE.fullmatch(code) and safe(code) == code:
            kind = _PROBLEMS.get(status, ProblemError)
            faults = _faults_of(body.get("errors"), safe)
            return kind(status, code, safe(detail), safe(request_id), faults, facts)
    if status == 200 and is_type:
        message = "The service cannot send decimals as text"
        return TransportError("decimals_not_text", message, facts)
    message = f"Status {status} is not from the service"
    return TransportError("unexpected_response", message, facts)


def _faults_of(errors: Any, safe: Callable[[str], str]) -> List[Dict[str, str]]:
    listed = errors[:_MAX_FAULTS] if isinstance(errors, list) else []
    names = ("parameter", "code", "detail")
    return [
        {name: safe(str(fault.get(name))) for name in names}
        for fault in listed
        if isinstance(fault, dict)
    ]


def _retry_after(headers: Headers) -> Optional[float]:
    """Seconds of ``Retry-After``, which is a number of seconds or an HTTP date."""
    text = headers.get("retry-after", "")
    if re.fullmatch("[0-9]+", text):
        return float(text)
    try:
        return max(0.0, email.utils.parsedate_to_datetime(text).timestamp() - time.time())
    except (TypeError, ValueError, OverflowError):
        return None


def _code_of(error: Exception, limit: Limit) -> Tuple[str, bool]:
    """Code of a failure, and whether a later attempt may succeed."""
    if isinstance(error, (TimeoutError, socket.timeout)):
        return limit.code, limit.code == "timeout"
    # An error of a certificate is also a ValueError. Its errno is a code of OpenSSL: 1 is not EPERM.
    if isinstance(error, ssl.SSLError):
        if _NO_TLS.search(error.reason or ""):
            return "no_tls", False
        return error.reason or "network_error", isinstance(error, ssl.SSLEOFError)
    # A name that no host can have.
    if isinstance(error, UnicodeError) and not isinstance(error, UnicodeDecodeError):
        return "ENOTFOUND", False
    if isinstance(error, (http.client.IncompleteRead, EOFError, ValueError, zlib.error)):
        return "incomplete_body", True
    if isinstance(error, socket.gaierror):
        again = error.errno == socket.EAI_AGAIN
        return ("EAI_AGAIN" if again else "ENOTFOUND"), again
    if isinstance(error, (http.client.HTTPException, RecursionError)):
        return "unexpected_response", False
    number = getattr(error, "errno", None)
    return (errno.errorcode.get(number, "network_error") if number else "network_error"), True
