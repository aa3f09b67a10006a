from typing import Dict, List, Optional


class ProblemError(Exception):
    """Error response of the service. The message has no token and no address."""

    def __init__(
        self,
        status: int,
        code: str,
        detail: str,
        request_id: str,
        errors: Optional[List[Dict[str, str]]] = None,
    ) -> None:
        super().__init__(f"{status} {code}: {detail} (request {request_id})")
        self.status = status
        #: Code for programs, such as ``connection_not_found``. Later versions may add codes.
        self.code = code
        self.detail = detail
        #: Identifier of the request. Quote it when you report an error.
        self.request_id = request_id
        #: Invalid parameters of a 400: ``parameter``, ``code`` and ``detail`` of each.
        self.errors = errors or []


class TransportError(Exception):
    """No response of the service arrived, or one that the client cannot use.

    ``code`` is ``timeout``, ``incomplete_body``, ``unexpected_response``, ``decimals_not_text``, or a code of
    the network such as ``ECONNRESET``. The message has no token and no address.
    """

    def __init__(self, code: str, message: str, status: Optional[int] = None) -> None:
        super().__init__(message)
        self.code = code
        #: Status of an unexpected response.
        self.status = status
