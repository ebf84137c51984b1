"""Redfish services, simulated: a server's controller, and a PDU."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import secrets
import ssl
import uuid
from abc import abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import partial
from http import HTTPStatus
from types import MappingProxyType
from typing import Self
from urllib.parse import parse_qs

from rackloop_drivers.boxes import Account, Chassis, Outlets
from rackloop_drivers.power.redfish import _codec as codec
from rackloop_drivers.power.redfish import _codec_service as service
from rackloop_drivers.power.redfish._console_peer import SshConsolePeer
from rackloop_drivers.power.redfish._http import HttpsServer, Request, Response, number

_MOST_SESSIONS = 64
_OPEN_TO_ALL = {
    *((method, path) for method in ("GET", "HEAD") for path in ("/redfish", "/redfish/v1", service.ODATA)),
    ("GET", service.METADATA),
    ("POST", codec.SESSIONS),
}
# What ends in a boot, which a change of the boot source for once is for.
_BOOTS = {"On", "ForceOn", "ForceRestart", "GracefulRestart", "PowerCycle"}
_ODATA_VERSION = "4.0"
_SCHEME = 'Basic realm="Rackloop"'

Action = Callable[[Mapping[str, object]], Awaitable[None]]


class _Refused(Exception):
    """Answered with this status and error."""

    def __init__(
        self, status: HTTPStatus, key: str, message: str, headers: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        self.response = Response(status, codec.error(key, message), headers)
        super().__init__(message)


def _not_allowed(method: str, path: str, allowed: Iterable[str]) -> Response:
    body = codec.error("OperationNotAllowed", f"{path} takes no {method}.")
    return Response(HTTPStatus.METHOD_NOT_ALLOWED, body, {"Allow": ", ".join(allowed)})


class _RedfishPeer:
    """The common part of every Redfish service: sessions, accounts, and resources found by path.

    ``is_hung`` makes it take requests and never answer, until it is reset. ``changeable`` are the resources that
    may be changed.
    """

    changeable: frozenset[str] = frozenset()

    def __init__(self, account: Account, context: ssl.SSLContext) -> None:
        self.is_hung = False
        self.uuid = str(uuid.uuid4())
        self._account = account
        self._server = HttpsServer(self._answer, context)
        self._sessions: dict[int, str] = {}
        self._numbered = 0

    async def __aenter__(self) -> Self:
        await self._server.resume()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._server.close()

    @property
    def url(self) -> str:
        """Its URL."""
        return f"https://{self._server.address}"

    @property
    def is_pulled(self) -> bool:
        """Whether its network cable is out."""
        return self._server.is_pulled

    async def pull_cable(self, *, out: bool) -> None:
        """Pull its network cable, or plug it in again: while it is out it cannot be reached."""
        await self._server.pull_cable(out=out)

    def expire_sessions(self) -> None:
        """Forget who is logged in."""
        self._sessions.clear()

    @abstractmethod
    def _roots(self) -> dict[str, str]:
        """The collections that the service root leads to, by name, beside sessions and accounts."""

    @abstractmethod
    async def _get(self, path: str, query: str) -> codec.Resource | None:
        """The resource at ``path``, None where there is none."""

    @abstractmethod
    def _action(self, path: str) -> Action | None:
        """The action at ``path``, None where there is none."""

    async def _change(self, path: str, body: Mapping[str, object]) -> None:
        """Change the resource at ``path``, which is among ``changeable``."""

    async def _answer(self, request: Request) -> Response:
        if self.is_hung:
            await asyncio.get_running_loop().create_future()
        path, _, query = request.target.partition("?")
        path = path.rstrip("/")
        if (request.method, path) == ("POST", f"{codec.SESSIONS}/Members"):
            # A POST to the members of a collection is one to the collection.
            path = codec.SESSIONS
        try:
            _require_version(request)
            if (request.method, path) not in _OPEN_TO_ALL:
                self._authenticate(request)
            return await self._dispatch(request, path, query)
        except _Refused as refusal:
            return refusal.response

    async def _dispatch(self, request: Request, path: str, query: str) -> Response:
        method = request.method
        if path == service.METADATA:
            allowed = {"GET": Response(HTTPStatus.OK, service.metadata(), {"Content-Type": "application/xml"})}
            return allowed.get(method) or _not_allowed(method, path, allowed)
        if (action := self._action(path)) is not None:
            if method != "POST":
                return _not_allowed(method, path, ["POST"])
            self._require_rights()
            await action(_object(request))
            return Response(HTTPStatus.NO_CONTENT)
        found = self._own(path) or await self._get(path, query)
        if found is None:
            raise _Refused(HTTPStatus.NOT_FOUND, "ResourceMissingAtURI", f"There is no {method} of {path}.")
        allow = ["GET", "HEAD", *self._methods(path)]
        if method not in allow:
            return _not_allowed(method, path, allow)
        match method:
            case "POST":
                return self._log_in(request)
            case "DELETE":
                del self._sessions[int(path.rpartition("/")[2])]
                return Response(HTTPStatus.NO_CONTENT)
            case "PATCH":
                self._require_rights()
                await self._change(path, _object(request))
                return Response(HTTPStatus.NO_CONTENT)
        headers = {"Allow": ", ".join(allow)}
        if (described := service.described_by(found)) is not None:
            headers["Link"] = described
        if path.startswith(f"{service.ACCOUNTS}/"):
            digest = hashlib.sha256(json.dumps(found).encode()).hexdigest()
            headers["ETag"] = f'W/"{digest[:16]}"'
        return Response(HTTPStatus.OK, found, headers)

    def _methods(self, path: str) -> list[str]:
        """The methods of a resource that is there, beside reading it."""
        if path == codec.SESSIONS:
            return ["POST"]
        if path.startswith(f"{codec.SESSIONS}/"):
            return ["DELETE"]
        return ["PATCH"] if path in self.changeable else []

    def _require_rights(self) -> None:
        if not self._account.may_act:
            message = "The account may read, and change nothing."
            raise _Refused(HTTPStatus.FORBIDDEN, "InsufficientPrivilege", message)

    def _own(self, path: str) -> codec.Resource | None:
        """The resources of this kind of service."""
        if path == "/redfish":
            return {"v1": codec.ROOT}
        if path == "/redfish/v1":
            return codec.service_root(self.uuid, **{name: codec.link(url) for name, url in self._roots().items()})
        if path == service.ODATA:
            own = {"SessionService": service.SESSION_SERVICE, "AccountService": service.ACCOUNT_SERVICE}
            return service.odata({**own, **self._roots()})
        if path == service.SESSION_SERVICE:
            return service.session_service()
        if path == codec.SESSIONS:
            members = [codec.link(f"{path}/{known}") for known in self._sessions]
            return codec.collection(path, "Session", "Sessions", members)
        start, _, text = path.rpartition("/")
        if start == codec.SESSIONS and (known := number(text)) in self._sessions and known is not None:
            return service.session(known, self._account.user)
        return service.account_resource(path, self._account.user, may_act=self._account.may_act)

    def _authenticate(self, request: Request) -> None:
        token = request.headers.get("X-Auth-Token")
        scheme, _, credentials = request.headers.get("Authorization", "").partition(" ")
        if token is not None:
            shown = token.encode()
            if any(secrets.compare_digest(shown, known.encode()) for known in self._sessions.values()):
                return
        elif scheme.lower() == "basic":
            try:
                user, _, password = base64.b64decode(credentials, validate=True).decode().partition(":")
            except ValueError:
                user = password = ""
            if self._account.admits(user, password):
                return
        message = "There is no valid session for this request."
        raise _Refused(HTTPStatus.UNAUTHORIZED, "NoValidSession", message, {"WWW-Authenticate": _SCHEME})

    def _log_in(self, request: Request) -> Response:
        body = _object(request)
        was_locked = self._account.is_locked
        if not self._account.admits(str(body.get("UserName", "")), str(body.get("Password", ""))):
            message = "The account is locked." if was_locked else "The user name or the password is wrong."
            raise _Refused(HTTPStatus.UNAUTHORIZED, "InsufficientPrivilege", message)
        self._numbered += 1
        self._sessions[self._numbered] = token = secrets.token_hex(16)
        # Sessions of clients that never said goodbye go, the oldest first.
        while len(self._sessions) > _MOST_SESSIONS:
            del self._sessions[next(iter(self._sessions))]
        session = service.session(self._numbered, self._account.user)
        headers = {"X-Auth-Token": token, "Location": str(session["@odata.id"])}
        return Response(HTTPStatus.CREATED, session, headers)


class RedfishBmc(_RedfishPeer):
    """The controller of one server. Without feed it refuses connections, and has forgotten who was logged in."""

    changeable = frozenset({codec.SYSTEM})

    def __init__(
        self, chassis: Chassis, account: Account, context: ssl.SSLContext, *, has_console: bool = True
    ) -> None:
        super().__init__(account, context)
        self.account = account
        self._chassis = chassis
        self.console = SshConsolePeer(chassis.line, account) if has_console else None
        """The SSH server that has the server's serial console."""
        self._boot = codec.Boot()
        chassis.follow_feed(self._feed)

    async def __aenter__(self) -> Self:
        if self.console is not None:
            await self.console.start()
        return await super().__aenter__()

    async def __aexit__(self, *failure: object) -> None:
        if self.console is not None:
            await self.console.close()
        await super().__aexit__(*failure)

    async def _feed(self, on: bool) -> None:  # noqa: FBT001 - a listener
        self.expire_sessions()
        self.is_hung = False
        if self.console is not None:
            self.console.feed(on=on)
        if on:
            await self._server.resume()
        else:
            self._server.suspend()

    def _roots(self) -> dict[str, str]:
        return {name: f"/redfish/v1/{name}" for name in ("Systems", "Chassis", "Managers")}

    async def _get(self, path: str, query: str) -> codec.Resource | None:
        server, chassis = self._chassis.server, self._chassis
        match path.removeprefix("/redfish/v1"):
            case "/Systems":
                return codec.collection(path, "ComputerSystem", "Systems", [codec.link(codec.SYSTEM)])
            case "/Systems/1":
                console = codec.serial_console(None if self.console is None else self.console.port)
                return codec.system(server, self.uuid, self._boot, console, is_on=await chassis.is_on())
            case "/Chassis":
                return codec.collection(path, "Chassis", "Chassis", [codec.link(codec.CHASSIS)])
            case "/Chassis/1":
                return codec.chassis(server, is_on=await chassis.is_on())
            case "/Managers":
                return codec.collection(path, "Manager", "Managers", [codec.link(codec.MANAGER)])
            case "/Managers/1":
                return codec.manager(server, self.uuid, chassis.now())
            case "/Systems/1/LogServices":
                return codec.collection(path, "LogService", "Log services", [codec.link(codec.EVENT_LOG)])
            case "/Systems/1/LogServices/SEL":
                return codec.event_log(chassis.now())
            case "/Systems/1/LogServices/SEL/Entries":
                skip = parse_qs(query).get("$skip", ["0"])[0]
                if (first := number(skip)) is None:
                    raise _Refused(
                        HTTPStatus.BAD_REQUEST, "QueryParameterValueTypeError", f"$skip={skip} is no number."
                    )
                return codec.log_entries(chassis.events, first)
        start, _, text = path.rpartition("/")
        if start == f"{codec.EVENT_LOG}/Entries":
            found = [event for event in chassis.events if str(event.number) == text]
            return codec.log_entry(found[0]) if found else None
        return None

    def _action(self, path: str) -> Action | None:
        return {codec.CLEAR_LOG: self._clear_log, codec.RESET: self._reset}.get(path)

    async def _change(self, path: str, body: Mapping[str, object]) -> None:  # noqa: ARG002 - the system alone is
        boot = body.get("Boot")
        others = sorted(body.keys() - {"Boot"})
        if others or not isinstance(boot, dict):
            message = f"{', '.join(others) or 'Boot'} cannot be changed so; Boot can, by an object."
            raise _Refused(HTTPStatus.BAD_REQUEST, "PropertyUnknown", message)
        try:
            self._boot = self._boot.changed(boot)
        except ValueError as error:
            raise _Refused(HTTPStatus.BAD_REQUEST, "PropertyValueNotInList", str(error)) from None

    async def _clear_log(self, _: Mapping[str, object]) -> None:
        self._chassis.clear_events()

    async def _reset(self, body: Mapping[str, object]) -> None:
        how = str(body.get("ResetType"))
        chassis = self._chassis
        acts: dict[str, Callable[[], Awaitable[None]]] = {
            "On": chassis.turn_on,
            "ForceOn": chassis.turn_on,
            "ForceOff": chassis.turn_off,
            "GracefulShutdown": chassis.shut_down,
            "ForceRestart": chassis.cycle,
            "GracefulRestart": chassis.cycle,
            "PowerCycle": chassis.cycle,
            "Nmi": chassis.interrupt,
        }
        if how not in acts:
            message = f"{how} is no ResetType; the values are {', '.join(codec.RESET_TYPES)}."
            raise _Refused(HTTPStatus.BAD_REQUEST, "ActionParameterNotSupported", message)
        if how in {"ForceRestart", "GracefulRestart", "PowerCycle", "Nmi"} and not await chassis.is_on():
            raise _Refused(HTTPStatus.CONFLICT, "ActionNotSupported", f"{how} is for a server that is on.")
        await acts[how]()
        if how in _BOOTS and self._boot.enabled == "Once":
            self._boot = codec.Boot(mode=self._boot.mode)


class RedfishPdu(_RedfishPeer):
    """A PDU with a Redfish service, which has this one ``unit``."""

    unit = codec.PDU.rpartition("/")[2]

    def __init__(self, outlets: Outlets, account: Account, context: ssl.SSLContext) -> None:
        super().__init__(account, context)
        self._outlets = outlets

    def _roots(self) -> dict[str, str]:
        return {"PowerEquipment": "/redfish/v1/PowerEquipment"}

    async def _get(self, path: str, query: str) -> codec.Resource | None:  # noqa: ARG002 - nothing here is paged
        match path.removeprefix("/redfish/v1"):
            case "/PowerEquipment":
                kind = "PowerEquipment.v1_2_0.PowerEquipment"
                return codec.resource(path, kind, "Power equipment", RackPDUs=codec.link(f"{path}/RackPDUs"))
            case "/PowerEquipment/RackPDUs":
                return codec.collection(path, "PowerDistribution", "Rack PDUs", [codec.link(codec.PDU)])
            case "/PowerEquipment/RackPDUs/1":
                kind = "PowerDistribution.v1_3_0.PowerDistribution"
                links = {"EquipmentType": "RackPDU", "Outlets": codec.link(f"{path}/Outlets")}
                return codec.resource(path, kind, self._outlets.name, **links)
            case "/PowerEquipment/RackPDUs/1/Outlets":
                members = [codec.link(f"{path}/{number}") for number in range(1, self._outlets.count + 1)]
                return codec.collection(path, "Outlet", "Outlets", members)
        start, _, text = path.rpartition("/")
        if start == f"{codec.PDU}/Outlets" and (outlet := self._number(text)):
            return codec.outlet(outlet, is_on=self._outlets.is_on(outlet))
        return None

    def _action(self, path: str) -> Action | None:
        unit, what, _ = path.partition("/Actions/Outlet.PowerControl")
        start, _, text = unit.rpartition("/")
        outlet = self._number(text)
        is_one = unit + what == path and bool(what) and start == f"{codec.PDU}/Outlets"
        return partial(self._switch, outlet) if is_one and outlet is not None else None

    async def _switch(self, outlet: int, body: Mapping[str, object]) -> None:
        match body.get("PowerState"):
            case "On" | "Off" as wanted:
                await self._outlets.switch(outlet, on=wanted == "On")
            case "PowerCycle":
                await self._outlets.cycle(outlet)
            case other:
                message = f"{other} is no PowerState; the values are On, Off, PowerCycle."
                raise _Refused(HTTPStatus.BAD_REQUEST, "ActionParameterNotSupported", message)

    def _number(self, text: str) -> int | None:
        found = number(text)
        return found if found is not None and 1 <= found <= self._outlets.count else None


def _require_version(request: Request) -> None:
    if request.headers.get("OData-Version", _ODATA_VERSION) != _ODATA_VERSION:
        message = f"OData-Version {_ODATA_VERSION} is spoken here."
        raise _Refused(HTTPStatus.PRECONDITION_FAILED, "PreconditionFailed", message)


def _object(request: Request) -> dict[str, object]:
    try:
        return dict(request.json())
    except ValueError:
        raise _Refused(HTTPStatus.BAD_REQUEST, "MalformedJSON", "The body is not a JSON object.") from None
