from dataclasses import dataclass, field
from typing import Any, Dict, List, Mapping, Optional, Tuple, Type


@dataclass(frozen=True)
class Facts:
    """Facts of a failed request, the same for every error of the client."""

    status: Optional[int] = None
    headers: Mapping[str, str] = field(default_factory=dict)
    retry_after: Optional[float] = None
    trace_id: Optional[str] = None
    attempts: int = 1


class InvestmentDataError(Exception):
    """Error of the client. No message, attribute or traceback has a token or an address."""

    def __init__(self, code: str, message: str, facts: Facts = Facts()) -> None:
        super().__init__(message)
        #: Code for programs.
        self.code = code
        #: Status of the response; None without a response.
        self.status = facts.status
        #: Headers of the response by lower-case name, without those that may show a token.
        self.headers = facts.headers
        #: Delay in seconds that the response asks for with ``Retry-After``.
        self.retry_after = facts.retry_after
        #: ``X-Request-ID`` of the response. Quote it when you report an error.
        self.request_id = facts.headers.get("x-request-id")
        #: ``X-Client-Trace-ID`` of the request.
        self.trace_id = facts.trace_id
        #: Attempts of the request, with the first.
        self.attempts = facts.attempts

    def __reduce__(self) -> Tuple[Any, ...]:
        # Processes of a pool pickle errors. The constructors have other arguments than Exception.
        return _restore, (type(self), self.args), self.__dict__


class ProblemError(InvestmentDataError):
    """Error response of the service.

    ``code`` is such as ``connection_not_found``. Later versions of the service may add codes.
    """

    status: int
    request_id: str

    def __init__(
        self,
        status: int,
        code: str,
        detail: str,
        request_id: str,
        errors: Optional[List[Dict[str, str]]] = None,
        facts: Facts = Facts(),
    ) -> None:
        faults = "".join(f" {each['parameter']}: {each['detail']}" for each in errors or [])
        super().__init__(code, f"{status} {code}: {detail}{faults} (request {request_id})", facts)
        self.status = status
        self.detail = detail
        self.request_id = request_id
        #: Invalid parameters of a 400: ``parameter``, ``code`` and ``detail`` of each.
        self.errors = errors or []


class AuthenticationError(ProblemError):
    """401: the token of the app is missing, malformed, unknown, revoked or expired."""


class QuotaError(ProblemError):
    """429: the app has sent too many requests. ``retry_after`` is the delay until the next one."""


class CursorExpiredError(ProblemError):
    """410: the changes since the cursor are not known."""


def is_lost_cursor(error: ProblemError) -> bool:
    """True if a copy must start again: its cursor has expired, or an older version of the service rejects it."""
    codes = [each.get("code") for each in error.errors]
    return isinstance(error, CursorExpiredError) or "invalid_cursor" in codes


class TransportError(InvestmentDataError):
    """No response of the service arrived, or one that the client cannot use.

    ``code`` is ``timeout`` of an attempt, ``call_timeout``, ``incomplete_body``, ``unexpected_response``,
    ``decimals_not_text``, ``no_tls``, or a code of the network such as ``ECONNRESET``.
    """


class CopyError(InvestmentDataError):
    """Error of a copy, by its ``code``.

    - ``conflict`` with another process, which has changed the copy or locks the database: synchronize again.
    - ``count_differs``: the copy has another number of rows than the list.
    - ``name_taken``: the database has tables or views of the app with the names of the store. Set a prefix.
    - ``transaction_open``: the app has begun a transaction on the database. End it first. Or a store writes inside
      ``on_changes``.
    - ``transaction_ended``: the ``store`` of ``on_changes`` is used after its transaction.
    """


def name_taken(name: str, store: str) -> CopyError:
    """Error of a store that must not touch a table or view of the app."""
    advice = f'Rename it, or give the store other names: {store}, prefix="copy_")'
    message = f"The database has a {name} that no store has made. {advice}"
    return CopyError("name_taken", message)


def _restore(kind: Type[InvestmentDataError], args: Tuple[object, ...]) -> InvestmentDataError:
    return kind.__new__(kind, *args)
