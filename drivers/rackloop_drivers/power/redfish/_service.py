"""A Redfish service reached by sushy: logged in when first used, every request held to its deadline."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from rackloop.clock import Deadline
from rackloop.errors import DeadlineExceeded, LabError, LoginRefused, NotConnected, ProtocolError
from rackloop_drivers.boxes import Login

if TYPE_CHECKING:
    from sushy.auth import SessionAuth  # type: ignore[import-untyped]

    from rackloop_drivers.power.redfish._connector import DeadlineConnector

_LOG_OUT_S = 1.0
# What goes wrong is raised here, once; the library would write it to the log as well.
logging.getLogger("sushy").addHandler(logging.NullHandler())


class RedfishService:
    """The service at ``url``, shared by all drivers of its box; safe to use from several threads, in turn.

    ``verify`` is True for a certificate of a public authority, the file of an authority's certificate, or False to
    take any. Requests raise NotConnected, DeadlineExceeded, LoginRefused, ProtocolError, or LabError with what the
    service said.
    """

    def __init__(self, url: str, login: Login, *, verify: bool | Path = True) -> None:
        self.url = url.rstrip("/")
        self._login = login
        self._verify = verify
        by = verify if isinstance(verify, Path) else "a public authority"
        self.trusted_as = f"{self.url}, verified by {by}" if verify else f"{self.url}, not verified"
        """The name of what answers here: another address, or another authority, may be another box."""
        self._connector: DeadlineConnector | None = None
        self._session: SessionAuth | None = None

    def get(self, path: str, deadline: Deadline) -> Mapping[str, Any]:
        """The resource at ``path``."""
        with self._login.turn(deadline):
            response = self._request("get", path, None, deadline)
            try:
                resource = response.json()
            except ValueError as error:
                raise ProtocolError(f"{self.url}{path}: answered something that is no JSON: {error}") from error
        if not isinstance(resource, dict):
            raise ProtocolError(f"{self.url}{path}: answered JSON that is no resource")
        return resource

    def post(self, path: str, body: Mapping[str, object], deadline: Deadline) -> None:
        """Have the action at ``path`` carried out; where the deadline is over nothing is sent."""
        with self._login.turn(deadline):
            self._request("post", path, body, deadline)

    def close(self) -> None:
        """Log out, where the service still answers at once."""
        with self._login.turn():
            self._log_out()

    def _request(self, method: str, path: str, body: Mapping[str, object] | None, deadline: Deadline) -> Any:
        from sushy.exceptions import AccessError  # type: ignore[import-untyped]

        if urlsplit(path).netloc and not path.startswith(f"{self.url}/"):
            # Whoever answers there would be sent the session's token.
            raise ProtocolError(f"{self.url}: a link leads to {path}, another place than the service's own")
        is_fresh = self._connector is None
        if is_fresh:
            self._log_in(deadline)
        try:
            return self._send(method, path, body, deadline)
        except AccessError as error:
            if is_fresh:
                raise self._may_not(method, path, error) from None
            if error.status_code == HTTPStatus.FORBIDDEN:
                # The session is still there, most likely, and a box has few.
                self._log_out()
        # The session has expired, or the box was restarted.
        self._forget()
        self._log_in(deadline)
        try:
            return self._send(method, path, body, deadline)
        except AccessError as error:
            raise self._may_not(method, path, error) from None

    def _may_not(self, method: str, path: str, error: Any) -> LoginRefused:
        is_act = error.status_code == HTTPStatus.FORBIDDEN
        return self._login.refused(f"it may not {method.upper()} {path}", for_good=not is_act)

    def _send(self, method: str, path: str, body: Mapping[str, object] | None, deadline: Deadline) -> Any:
        with self._explained(path, deadline):
            assert self._connector is not None  # noqa: S101 - it is logged in
            self._connector.deadline = deadline
            return getattr(self._connector, method)(path, data=body, allow_reauth=False)

    def _log_in(self, deadline: Deadline) -> None:
        from sushy import Sushy  # type: ignore[import-untyped]
        from sushy.auth import SessionAuth
        from sushy.exceptions import AccessError

        from rackloop_drivers.power.redfish._connector import DeadlineConnector

        password = self._login.password()
        with self._explained("/redfish/v1", deadline):
            verify = str(self._verify) if isinstance(self._verify, Path) else self._verify
            connector = DeadlineConnector(self.url, deadline, verify=verify)
            session = SessionAuth(self._login.user, password)
            try:
                Sushy(self.url, auth=session, connector=connector)
            except AccessError as error:
                raise self._login.refused(_said(error)) from None
        self._connector, self._session = connector, session

    def _log_out(self) -> None:
        if self._connector is not None and self._session is not None:
            from sushy.exceptions import SushyError

            with suppress(SushyError):
                number = self._session.get_session_resource_id()
                self._connector.delete(number, timeout=_LOG_OUT_S, allow_reauth=False)
        self._forget()

    def _forget(self) -> None:
        if self._session is not None:
            self._session.reset_session_attrs()
        if self._connector is not None:
            self._connector.close()
        self._connector = self._session = None

    @contextmanager
    def _explained(self, path: str, deadline: Deadline) -> Iterator[None]:
        from ssl import SSLError

        from sushy import exceptions

        where = f"{self.url}{path}"
        try:
            yield
        except exceptions.ConnectionError as error:
            cause = _root_cause(error.__context__ or error)
            if isinstance(cause, SSLError):
                raise NotConnected(
                    f"{where}: its certificate is not trusted or not its own: {_words(cause)}; give the authority's "
                    "certificate as ca_file in the lab description"
                ) from None
            if deadline.is_over():
                raise DeadlineExceeded(f"{where} did not answer in time; is the controller hung?") from None
            raise NotConnected(
                f"{where} cannot be reached: {_words(cause)}; check the address, and whether the box has power"
            ) from None
        except exceptions.AccessError:
            raise
        except exceptions.HTTPError as error:
            raise LabError(f"{where} answered {error.status_code}: {_said(error)}") from None
        except exceptions.SushyError as error:
            raise ProtocolError(f"{where} is no Redfish service that can be understood: {error}") from None
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            # The library takes it that a service answers JSON objects: another web server does not, nor does a box
            # whose Redfish has not begun yet.
            raise ProtocolError(
                f"{where} answered what no Redfish service does ({error}); check the address, and whether the box has "
                "finished booting"
            ) from error


def _said(error: Any) -> str:
    """The reason that the service gave."""
    detail = getattr(error, "detail", None)
    text = detail if isinstance(detail, str) else str(error)
    return " ".join(text.split())


def _root_cause(error: BaseException) -> BaseException:
    """The innermost error: that of the library's HTTP client wraps urllib3's, which wraps the socket's or OpenSSL's."""
    while True:
        inner = getattr(error, "reason", None)
        if not isinstance(inner, BaseException):
            inner = next((item for item in error.args if isinstance(item, BaseException)), None)
        if inner is None:
            return error
        error = inner


def _words(error: BaseException) -> str:
    """The words of an error, without what says it."""
    return str(error).rpartition(": ")[2]
