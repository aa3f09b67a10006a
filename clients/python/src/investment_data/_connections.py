"""Connections of http.client that are kept, with a time limit of a whole response."""

import base64
import errno
import http.client
import io
import os
import re
import socket
import ssl
import threading
import time
import urllib.parse
import urllib.request
import zlib
from typing import Any, Dict, List, Mapping, Optional, Tuple

from ._options import Secret

_PART_BYTES = 65_536
#: Most bytes of a decompressed part.
_DECODED_BYTES = 2**20
#: Seconds for which an idle connection is kept, if the server does not say how long it keeps it.
_IDLE_SECONDS = 30.0
#: Seconds by which the client is earlier than the server, because a request takes time to arrive.
_EARLIER_SECONDS = 2.0

Headers = Mapping[str, str]


class Limit:
    """Time limit of a response. ``call_end`` is the end of its call, as time.monotonic()."""

    def __init__(self, seconds: float, call_end: float) -> None:
        self._seconds = seconds
        self._call_end = call_end
        self.socket: Optional[socket.socket] = None
        self.restart()

    def restart(self) -> None:
        self._end = min(time.monotonic() + self._seconds, self._call_end)

    def left(self) -> float:
        left = self._end - time.monotonic()
        if left <= 0:
            raise TimeoutError
        return left

    @property
    def code(self) -> str:
        return "call_timeout" if self._end == self._call_end else "timeout"

    def cancel(self) -> None:
        """Ends a wait in another thread."""
        self._end = 0
        if self.socket is not None:
            try:
                self.socket.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass  # The connection has ended.


class _TimedReader(io.RawIOBase):
    """Reads a socket. The timeout of a socket applies to each read, so it is renewed."""

    def __init__(self, sock: socket.socket, limit: Limit) -> None:
        self._socket = sock
        self._limit = limit
        self._raw = sock.makefile("rb", buffering=0)
        self.in_headers = True

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> Optional[int]:
        self._socket.settimeout(self._limit.left())
        count = self._raw.readinto(buffer)
        # http.client takes the end of the connection for the end of the headers.
        if count == 0 and self.in_headers:
            raise ConnectionResetError(errno.ECONNRESET, "The response has no end of headers")
        return count

    def close(self) -> None:
        self._raw.close()
        super().close()


class _Connection(http.client.HTTPConnection):
    """Connection whose waits end with the limit of its request."""

    limit: Limit
    reader: _TimedReader

    def __init__(self, host: str, port: int, name: str, context: Optional[ssl.SSLContext]) -> None:
        super().__init__(host, port)
        self._name = name
        self._context = context
        self.response_class = self._respond  # type: ignore[assignment]
        self._create_connection = self._dial
        self._idle_since = 0.0
        self._keep_seconds = _IDLE_SECONDS

    def rest(self, headers: Headers) -> None:
        """Notes the begin of an idle time, after a response with these headers."""
        # time.monotonic() may stand still while the computer sleeps.
        self._idle_since = time.time()
        kept = re.search("timeout=([0-9]{1,9})", headers.get("keep-alive", ""))
        self._keep_seconds = float(kept[1]) - _EARLIER_SECONDS if kept else _IDLE_SECONDS

    @property
    def is_fresh(self) -> bool:
        """Whether the server still keeps the connection. A firewall may drop an older one without a sign."""
        idle_seconds = time.time() - self._idle_since
        return 0 <= idle_seconds < self._keep_seconds

    def connect(self) -> None:
        super().connect()
        if self._context is not None:
            self.sock.settimeout(self.limit.left())
            self.sock = self._context.wrap_socket(self.sock, server_hostname=self._name)

    def _dial(self, address: Tuple[str, int], *_: object) -> socket.socket:
        """Tries all addresses of a name within the limit."""
        found = socket.getaddrinfo(*address, type=socket.SOCK_STREAM)
        for index, (family, kind, protocol, _name, place) in enumerate(found):
            sock = socket.socket(family, kind, protocol)
            try:
                sock.settimeout(self.limit.left() / (len(found) - index))
                sock.connect(place)
                return sock
            except OSError:
                sock.close()
                if index == len(found) - 1:
                    raise
        raise OSError

    def _respond(self, sock: socket.socket, **options: Any) -> http.client.HTTPResponse:
        response = http.client.HTTPResponse(sock, **options)
        response.fp.close()
        self.reader = _TimedReader(sock, self.limit)
        response.fp = io.BufferedReader(self.reader)
        self.limit.socket = sock
        return response


class Connections:
    """Sends requests to one server. Threads can share it."""

    def __init__(self, base_url: str, context: Optional[ssl.SSLContext]) -> None:
        # A connection is not shared with a process that was made by fork().
        self._idle: Dict[int, List[_Connection]] = {}
        self._lock = threading.Lock()
        base = urllib.parse.urlsplit(base_url)
        self._host = base.hostname or ""
        self._port = base.port or (443 if base.scheme == "https" else 80)
        self._authority = Secret(base.netloc)
        self._context = None
        if base.scheme == "https":
            self._context = context or ssl.create_default_context()
        self._proxy: Optional[urllib.parse.SplitResult] = None
        proxy = urllib.request.getproxies().get(base.scheme)
        if proxy and not urllib.request.proxy_bypass(self._host):
            self._proxy = urllib.parse.urlsplit(proxy if "://" in proxy else f"http://{proxy}")

    def send(self, path: str, headers: Headers, limit: Limit) -> "Response":
        """Sends a GET request."""
        while True:
            connection, reused = self._take()
            connection.limit = limit
            try:
                if reused:
                    connection.sock.settimeout(limit.left())
                self._request(connection, path, headers)
                response = connection.getresponse()
                connection.reader.in_headers = False
                return Response(self, connection, response, limit)
            except BaseException as error:
                connection.close()
                # The server may close a connection that nobody uses.
                is_timeout = isinstance(error, (TimeoutError, socket.timeout))
                is_closed = isinstance(error, (OSError, http.client.HTTPException))
                if reused and is_timeout:
                    # The idle connections have probably gone silent, too.
                    self.close()
                if not reused or is_timeout or not is_closed:
                    raise

    def give(self, connection: _Connection, headers: Headers) -> None:
        """Keeps a connection after a response with these headers."""
        connection.rest(headers)
        with self._lock:
            self._idle.setdefault(os.getpid(), []).append(connection)

    def close(self) -> None:
        with self._lock:
            idle = self._idle.pop(os.getpid(), [])
        for connection in idle:
            connection.close()

    def __del__(self) -> None:
        self.close()

    def _take(self) -> Tuple[_Connection, bool]:
        with self._lock:
            idle = self._idle.pop(os.getpid(), [])
            fresh = [connection for connection in idle if connection.is_fresh]
            newest = fresh.pop() if fresh else None
            self._idle[os.getpid()] = fresh
        for connection in idle:
            if connection is not newest and connection not in fresh:
                connection.close()
        if newest is not None:
            return newest, True
        if self._proxy is None:
            return _Connection(self._host, self._port, self._host, self._context), False
        proxy = (self._proxy.hostname or "", self._proxy.port or 80)
        connection = _Connection(*proxy, self._host, self._context)
        if self._context is not None:
            connection.set_tunnel(self._host, self._port, self._proxy_headers())
        return connection, False

    def _request(self, connection: _Connection, path: str, headers: Headers) -> None:
        authority = self._authority.reveal()
        headers = {"Host": authority, **headers}
        # A proxy without TLS reads the whole address, and its own credentials.
        if self._proxy is not None and self._context is None:
            path = f"http://{authority}{path}"
            headers.update(self._proxy_headers())
        connection.request("GET", path, headers=headers)

    def _proxy_headers(self) -> Dict[str, str]:
        if self._proxy is None or self._proxy.username is None:
            return {}
        names = [
            urllib.parse.unquote(name or "")
            for name in (self._proxy.username, self._proxy.password)
        ]
        return {
            "Proxy-Authorization": "Basic " + base64.b64encode(":".join(names).encode()).decode()
        }


class Response:
    """Response whose body is read in parts. Its connection is kept after the last part."""

    def __init__(
        self,
        connections: Connections,
        connection: _Connection,
        response: http.client.HTTPResponse,
        limit: Limit,
    ) -> None:
        self._connections = connections
        self._connection = connection
        self._response = response
        self._ended = False
        self.limit = limit
        self.status = response.status
        self.headers: Headers = {name.lower(): value for name, value in response.getheaders()}
        compressed = self.headers.get("content-encoding") == "gzip"
        self._decoder = zlib.decompressobj(wbits=31) if compressed else None

    def read(self) -> bytes:
        """The next part of the body, decompressed; empty at its end."""
        while True:
            rest = self._decoder.unconsumed_tail if self._decoder else b""
            part = rest or self._response.read1(_PART_BYTES)
            if not part:
                self._end()
                return b""
            if self._decoder is None:
                return part
            decoded = self._decoder.decompress(part, _DECODED_BYTES)
            if decoded:
                return decoded

    def read_all(self, most: int) -> Optional[bytes]:
        """The whole body; None if it is larger than ``most`` bytes, decompressed."""
        parts: List[bytes] = []
        size = 0
        for part in iter(self.read, b""):
            size += len(part)
            if size > most:
                self.close()
                return None
            parts.append(part)
        return b"".join(parts)

    def close(self) -> None:
        """Ends a response that is not read to its end."""
        if not self._ended:
            self._response.close()
            self._connection.close()

    def _end(self) -> None:
        # Rest of the announced length. A read does not report that the connection ended before it.
        if self._response.length or (self._decoder is not None and not self._decoder.eof):
            raise EOFError
        self._ended = True
        self._response.close()
        if self._connection.sock is not None:
            self._connections.give(self._connection, self.headers)
