"""An HTTP client for management controllers: JSON both ways, a connection for each request, all by a deadline.

The libraries for Redfish and for HTTP take longer to import than a rack takes to be looked at.
"""

from __future__ import annotations

import http.client
import json
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from email.message import Message
from functools import cached_property
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import quote, urljoin, urlsplit

from rackloop.clock import Deadline
from rackloop.errors import BadInput, DeadlineExceeded, NotConnected, ProtocolError

_MOST_REDIRECTS = 3
_READ_BYTES = 65_536
_SHORTEST_S = 1e-3
# What stands for itself in a target, and the per cent sign of what is quoted already.
_SAFE = "!#$%&'()*+,/:;=?@[]~"


@dataclass(frozen=True)
class HttpAnswer:
    """The answer to a request."""

    status: int
    headers: Message
    body: bytes

    def json(self) -> Any:
        """The value in the body. Raises ValueError where it is no JSON."""
        try:
            return json.loads(self.body)
        except RecursionError:
            raise ValueError("it is nested too deeply") from None

    def said(self) -> str:
        """The reason that the service gave for an error, the gravest of several (DSP0266, section 8.6)."""
        try:
            error = self.json()["error"]
            told = [item for item in error.get("@Message.ExtendedInfo") or [] if isinstance(item, dict)]
            graded = [
                item.get("Message") for grade in ("Critical", "Warning") for item in told if item["Severity"] == grade
            ]
            return " ".join(str((graded or [error["message"]])[0]).split())
        except (ValueError, KeyError, TypeError, AttributeError):
            return "it does not say why"


class HttpClient:
    """Sends requests to the service at ``url``.

    ``verify`` is True for a certificate of a public authority, the file of an authority's certificate, or False to
    take any. Controllers choke on connections that stay, so each request has one of its own.
    """

    def __init__(self, url: str, *, verify: bool | Path) -> None:
        self.url = url
        self._verify = verify

    def send(
        self,
        method: str,
        path: str,
        deadline: Deadline,
        *,
        body: Mapping[str, object] | None = None,
        token: str | None = None,
    ) -> HttpAnswer:
        """The answer to a request, whatever its status; a redirection to another place of the service is followed.

        Raises NotConnected where the service cannot be reached, DeadlineExceeded where it answers too late or the
        deadline is over before anything was sent, ProtocolError for what is no HTTP or leads elsewhere.
        """
        headers = {"Accept": "application/json", "OData-Version": "4.0", "Connection": "close"}
        if token is not None:
            headers["X-Auth-Token"] = token
        data = None
        if body is not None:
            headers["Content-Type"] = "application/json"
            data = json.dumps(body).encode()
        for _ in range(_MOST_REDIRECTS):
            answer = self._exchange(method, path, headers, data, deadline)
            location = answer.headers.get("Location")
            is_elsewhere = HTTPStatus.MULTIPLE_CHOICES <= answer.status < HTTPStatus.BAD_REQUEST
            if not is_elsewhere or not location:
                return answer
            target = urljoin(f"{self.url}{path}", location)
            if method != "GET" or not target.startswith(f"{self.url}/"):
                # Whoever answers there would be sent the session's token.
                raise ProtocolError(f"{self.url}{path} says that it is at {target}; give that address instead")
            path = target.removeprefix(self.url)
        raise ProtocolError(f"{self.url}{path} leads from one place to another without an end")

    def _exchange(
        self, method: str, path: str, headers: Mapping[str, str], data: bytes | None, deadline: Deadline
    ) -> HttpAnswer:
        where = f"{self.url}{path}"
        if deadline.is_over():
            raise DeadlineExceeded(f"{where} was not asked: the deadline is over; allow more time")
        connection = self._connection(deadline)
        try:
            connection.request(method, quote(path, safe=_SAFE), body=data, headers=dict(headers))
            response = connection.getresponse()
            return HttpAnswer(response.status, response.headers, _content(response, deadline))
        except ssl.SSLCertVerificationError as error:
            raise NotConnected(
                f"{where}: its certificate is not trusted or not its own: {_words(error)}; give the authority's "
                "certificate as ca_file in the lab description"
            ) from None
        except (OSError, http.client.IncompleteRead) as error:
            if deadline.is_over() or (isinstance(error, TimeoutError) and error.errno is None):
                raise DeadlineExceeded(f"{where} did not answer in time; is the controller hung?") from None
            raise NotConnected(
                f"{where} cannot be reached: {_words(error)}; check the address, and whether the box has power"
            ) from None
        except http.client.HTTPException as error:
            raise ProtocolError(f"{where} is no HTTP service that can be understood: {error!r}") from None
        finally:
            connection.close()

    def _connection(self, deadline: Deadline) -> http.client.HTTPConnection:
        place = urlsplit(self.url)
        timeout_s = max(deadline.remaining_s(), _SHORTEST_S)
        host = place.hostname or ""
        if place.scheme == "http":
            return http.client.HTTPConnection(host, place.port, timeout=timeout_s)
        return http.client.HTTPSConnection(host, place.port, timeout=timeout_s, context=self._context)

    @cached_property
    def _context(self) -> ssl.SSLContext:
        authority = self._verify if isinstance(self._verify, Path) else None
        try:
            context = ssl.create_default_context(cafile=authority)
        except OSError as error:
            raise BadInput(f"{self.url}: the certificate {authority} cannot be read: {_words(error)}") from None
        if self._verify is False:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        return context


def _content(response: http.client.HTTPResponse, deadline: Deadline) -> bytes:
    content = b""
    while part := response.read1(_READ_BYTES):
        content += part
        if response.length != 0 and deadline.is_over():
            raise TimeoutError
    if response.length:
        raise http.client.IncompleteRead(content, response.length)
    return content


def _words(error: Exception) -> str:
    """The words of an error, without what says it and its number."""
    if isinstance(error, OSError) and not isinstance(error, ssl.SSLError) and error.strerror:
        return error.strerror
    return str(error).rpartition(": ")[2] or type(error).__name__
