"""A Redfish service: logged in when first used, every request held to its deadline."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from http import HTTPStatus
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from rackloop.clock import Deadline, RealClock
from rackloop.errors import LabError, ProtocolError, RackloopError
from rackloop_drivers.boxes import Login
from rackloop_drivers.power.redfish._client import HttpAnswer, HttpClient

_ROOT = "/redfish/v1/"
_SESSIONS = f"{_ROOT}SessionService/Sessions"
_LOG_OUT_S = 1.0
_REFUSED = (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN)


class _Session(NamedTuple):
    """A session: what shows that a request belongs to it, and where it ends, if that is known."""

    token: str
    path: str | None


class RedfishService:
    """The service at ``url``, shared by all drivers of its box; safe to use from several threads, in turn.

    ``verify`` is True for a certificate of a public authority, the file of an authority's certificate, or False to
    take any. Requests raise NotConnected, DeadlineExceeded, LoginRefused, ProtocolError, or LabError with what the
    service said.
    """

    def __init__(self, url: str, login: Login, *, verify: bool | Path = True) -> None:
        self.url = url.rstrip("/")
        self._login = login
        self._client = HttpClient(self.url, verify=verify)
        self._session: _Session | None = None

    def get(self, path: str, deadline: Deadline) -> Mapping[str, Any]:
        """The resource at ``path``."""
        with self._login.turn(deadline):
            return self._resource(path, self._request("GET", path, None, deadline))

    def post(self, path: str, body: Mapping[str, object], deadline: Deadline) -> None:
        """Have the action at ``path`` carried out; where the deadline is over nothing is sent."""
        with self._login.turn(deadline):
            self._request("POST", path, body, deadline)

    def close(self) -> None:
        """Log out, where the service still answers at once."""
        with self._login.turn():
            session, self._session = self._session, None
            if session is not None and session.path is not None:
                with suppress(RackloopError):
                    soon = Deadline.after(RealClock(), _LOG_OUT_S)
                    self._client.send("DELETE", session.path, soon, token=session.token)

    def _request(self, method: str, path: str, body: Mapping[str, object] | None, deadline: Deadline) -> HttpAnswer:
        target = path.removeprefix(self.url)
        if urlsplit(target).netloc or not target.startswith("/"):
            # Whoever answers there would be sent the session's token.
            raise ProtocolError(f"{self.url}: a link leads to {path}, another place than the service's own")
        is_fresh = self._session is None
        token = self._logged_in(deadline)
        answer = self._client.send(method, target, deadline, body=body, token=token)
        if answer.status in _REFUSED and not is_fresh:
            # The session has expired, or the box was restarted.
            self._session = None
            answer = self._client.send(method, target, deadline, body=body, token=self._logged_in(deadline))
        if answer.status in _REFUSED:
            is_act = answer.status == HTTPStatus.FORBIDDEN
            raise self._login.refused(f"it may not {method} {path}", for_good=not is_act)
        return self._succeeded(target, answer)

    def _logged_in(self, deadline: Deadline) -> str:
        """The token of the session; a new one where there is none."""
        if self._session is None:
            self._session = self._log_in(deadline)
        return self._session.token

    def _log_in(self, deadline: Deadline) -> _Session:
        user, password = self._login.user, self._login.password()
        root = self._resource(_ROOT, self._let_in(_ROOT, self._client.send("GET", _ROOT, deadline)))
        match root:
            case {"Links": {"Sessions": {"@odata.id": str(path)}}} if path.startswith("/"):
                sessions = path
            case _:
                sessions = _SESSIONS
        account = {"UserName": user, "Password": password}
        answer = self._let_in(sessions, self._client.send("POST", sessions, deadline, body=account))
        if (token := answer.headers.get("X-Auth-Token")) is None:
            raise ProtocolError(
                f"{self.url}{sessions} is no Redfish service that can be understood: it gave no token for the session"
            )
        place = answer.headers.get("Location")
        if place is None:
            with suppress(ValueError, KeyError, TypeError):
                place = str(answer.json()["@odata.id"])
        return _Session(token, urlsplit(place).path if place else None)

    def _let_in(self, path: str, answer: HttpAnswer) -> HttpAnswer:
        """The answer of a service that takes the account. Raises LoginRefused where it does not."""
        if answer.status in _REFUSED:
            raise self._login.refused(answer.said())
        return self._succeeded(path, answer)

    def _succeeded(self, path: str, answer: HttpAnswer) -> HttpAnswer:
        if answer.status >= HTTPStatus.MULTIPLE_CHOICES:
            raise LabError(f"{self.url}{path} answered {answer.status}: {answer.said()}")
        return answer

    def _resource(self, path: str, answer: HttpAnswer) -> Mapping[str, Any]:
        where = path if path.startswith(self.url) else f"{self.url}{path}"
        try:
            resource = answer.json()
        except ValueError as error:
            raise ProtocolError(f"{where}: answered something that is no JSON: {error}") from error
        if not isinstance(resource, dict):
            raise ProtocolError(f"{where}: answered JSON that is no resource")
        return resource
