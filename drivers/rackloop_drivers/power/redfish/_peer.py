"""Redfish services, simulated: a server's controller, and a PDU."""

from __future__ import annotations

import asyncio
import base64
import binascii
import secrets
import ssl
import uuid
from abc import abstractmethod
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Self
from urllib.parse import parse_qs, urlsplit

from rackloop_drivers.login import Account
from rackloop_drivers.power.redfish import _codec as codec
from rackloop_drivers.power.redfish._http import HttpsServer, Request, Response
from rackloop_drivers.simulated_power import Chassis, Outlets

_MOST_SESSIONS = 64
_OPEN_TO_ALL = {("GET", "/redfish"), ("GET", "/redfish/v1"), ("POST", codec.SESSIONS)}


class _Refused(Exception):
    """Answered with this status and error."""

    def __init__(self, status: HTTPStatus, key: str, message: str) -> None:
        self.response = Response(status, codec.error(key, message))
        super().__init__(message)


class _RedfishPeer:
    """What every Redfish service has: sessions, accounts, and resources found by path.

    ``is_hung`` makes it take requests and never answer, until it is reset.
    """

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
        """Where it answers."""
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
    async def _get(self, path: str, query: str) -> codec.Resource | None:
        """The resource at ``path``, None where there is none."""

    @abstractmethod
    async def _act(self, path: str, request: Request) -> None:
        """Carry out the action at ``path``; raises KeyError where there is none."""

    async def _answer(self, request: Request) -> Response:
        if self.is_hung:
            await asyncio.get_running_loop().create_future()
        parts = urlsplit(request.target)
        path = parts.path.rstrip("/")
        try:
            if (request.method, path) not in _OPEN_TO_ALL:
                self._authenticate(request)
            return await self._dispatch(request, path, parts.query)
        except _Refused as refusal:
            return refusal.response

    async def _dispatch(self, request: Request, path: str, query: str) -> Response:
        if request.method in {"GET", "HEAD"}:
            found = self._get_session(path) or await self._get(path, query)
            if found is not None:
                return Response(HTTPStatus.OK, found)
        elif request.method == "POST":
            if path == codec.SESSIONS:
                return self._log_in(request)
            if not self._account.may_act:
                message = "The account may read, and change nothing."
                raise _Refused(HTTPStatus.FORBIDDEN, "InsufficientPrivilege", message)
            try:
                await self._act(path, request)
            except KeyError:
                pass
            else:
                return Response(HTTPStatus.NO_CONTENT)
        elif request.method == "DELETE" and path.startswith(f"{codec.SESSIONS}/"):
            number = path.rpartition("/")[2]
            if number.isdecimal() and self._sessions.pop(int(number), None) is not None:
                return Response(HTTPStatus.NO_CONTENT)
        raise _Refused(HTTPStatus.NOT_FOUND, "ResourceMissingAtURI", f"There is no {request.method} of {path}.")

    def _get_session(self, path: str) -> codec.Resource | None:
        if path == "/redfish":
            return {"v1": codec.ROOT}
        if path == codec.SESSION_SERVICE:
            return codec.resource(
                path,
                "SessionService.v1_1_9.SessionService",
                "Session Service",
                ServiceEnabled=True,
                Sessions=codec.link(codec.SESSIONS),
            )
        if path == codec.SESSIONS:
            members = [codec.link(f"{path}/{number}") for number in self._sessions]
            return codec.collection(path, "Session", "Sessions", members)
        start, _, number = path.rpartition("/")
        if start == codec.SESSIONS and number.isdecimal() and int(number) in self._sessions:
            return codec.session(int(number), self._account.user)
        return None

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
            except (binascii.Error, UnicodeDecodeError):
                user = password = ""
            if self._account.admits(user, password):
                return
        raise _Refused(HTTPStatus.UNAUTHORIZED, "NoValidSession", "There is no valid session for this request.")

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
        session = codec.session(self._numbered, self._account.user)
        headers = {"X-Auth-Token": token, "Location": str(session["@odata.id"])}
        return Response(HTTPStatus.CREATED, session, headers)


class RedfishBmc(_RedfishPeer):
    """The controller of one server. Without feed it refuses connections, and has forgotten who was logged in."""

    def __init__(self, chassis: Chassis, account: Account, context: ssl.SSLContext) -> None:
        super().__init__(account, context)
        self._chassis = chassis
        chassis.follow_feed(self._feed)

    async def _feed(self, on: bool) -> None:  # noqa: FBT001 - a listener
        self.expire_sessions()
        self.is_hung = False
        if on:
            await self._server.resume()
        else:
            self._server.suspend()

    async def _get(self, path: str, query: str) -> codec.Resource | None:
        server, chassis = self._chassis.server, self._chassis
        match path.removeprefix("/redfish/v1"):
            case "":
                return codec.service_root(
                    self.uuid,
                    Systems=codec.link("/redfish/v1/Systems"),
                    Chassis=codec.link("/redfish/v1/Chassis"),
                    Managers=codec.link("/redfish/v1/Managers"),
                )
            case "/Systems":
                return codec.collection(path, "ComputerSystem", "Systems", [codec.link(codec.SYSTEM)])
            case "/Systems/1":
                return codec.system(server, self.uuid, is_on=await chassis.is_on())
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
                if not skip.isdecimal():
                    raise _Refused(
                        HTTPStatus.BAD_REQUEST, "QueryParameterValueTypeError", f"$skip={skip} is no number."
                    )
                return codec.log_entries(chassis.events, int(skip))
        start, _, number = path.rpartition("/")
        if start == f"{codec.EVENT_LOG}/Entries":
            found = [event for event in chassis.events if str(event.number) == number]
            return codec.log_entry(found[0]) if found else None
        return None

    async def _act(self, path: str, request: Request) -> None:
        body = _object(request)
        if path == codec.CLEAR_LOG:
            self._chassis.clear_events()
        elif path == codec.RESET:
            await self._reset(str(body.get("ResetType")))
        else:
            raise KeyError(path)

    async def _reset(self, how: str) -> None:
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


class RedfishPdu(_RedfishPeer):
    """A PDU with a Redfish service."""

    def __init__(self, outlets: Outlets, account: Account, context: ssl.SSLContext) -> None:
        super().__init__(account, context)
        self._outlets = outlets

    async def _get(self, path: str, query: str) -> codec.Resource | None:  # noqa: ARG002 - nothing here is paged
        match path.removeprefix("/redfish/v1"):
            case "":
                return codec.service_root(self.uuid, PowerEquipment=codec.link("/redfish/v1/PowerEquipment"))
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
        start, _, number = path.rpartition("/")
        if start == f"{codec.PDU}/Outlets" and (outlet := self._number(number)):
            return codec.outlet(outlet, is_on=self._outlets.is_on(outlet))
        return None

    async def _act(self, path: str, request: Request) -> None:
        body = _object(request)
        start, _, number = path.removesuffix("/Actions/Outlet.PowerControl").rpartition("/")
        outlet = self._number(number)
        if path == start or start != f"{codec.PDU}/Outlets" or not path.endswith(".PowerControl") or outlet is None:
            raise KeyError(path)
        match body.get("PowerState"):
            case "On" | "Off" as wanted:
                await self._outlets.switch(outlet, on=wanted == "On")
            case "PowerCycle":
                await self._outlets.cycle(outlet)
            case other:
                message = f"{other} is no PowerState; the values are On, Off, PowerCycle."
                raise _Refused(HTTPStatus.BAD_REQUEST, "ActionParameterNotSupported", message)

    def _number(self, text: str) -> int | None:
        return int(text) if text.isdecimal() and 1 <= int(text) <= self._outlets.count else None


def _object(request: Request) -> dict[str, object]:
    try:
        return dict(request.json())
    except ValueError:
        raise _Refused(HTTPStatus.BAD_REQUEST, "MalformedJSON", "The body is not a JSON object.") from None
