"""What goes wrong with controllers and PDUs is said once, clearly, in time; a wrong password locks nobody out."""

from __future__ import annotations

import asyncio
import os
import re
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from http import HTTPStatus
from pathlib import Path
from threading import Event

import pytest

from rackloop.abilities import PowerPort
from rackloop.clock import Deadline, RealClock, VirtualClock
from rackloop.errors import (
    BadInput,
    DeadlineExceeded,
    LabError,
    LoginRefused,
    NameUnknown,
    NotConnected,
    NotSupported,
    ProtocolError,
    ToolError,
)
from rackloop.lab import FileSecret
from rackloop_drivers.boxes import Account, Chassis, Login, MemorySwitching
from rackloop_drivers.power.ipmi import IpmiBmc, IpmiEventLog, IpmiPowerPort, Ipmitool
from rackloop_drivers.power.ipmi._tool import end_tool
from rackloop_drivers.power.redfish import RedfishEventLog, RedfishOutlet, RedfishPowerPort, RedfishService, serve_tls
from rackloop_drivers.power.redfish._codec import service_root
from rackloop_drivers.power.redfish._http import HttpsServer, Request, Response
from rackloop_drivers.power.snmp import ApcOutlet, CyberPowerOutlet, SnmpAgent
from tests.deadlines import CLOCK, soon
from tests.loop_thread import loop_thread
from tests.power_boxes import FEEDING, OUTLETS, PASSWORD, READ_COMMUNITY, USER, PowerBoxes, power_boxes

WRONG = "wrong horse"


@pytest.fixture
def boxes(tmp_path: Path) -> Iterator[PowerBoxes]:
    with power_boxes(tmp_path) as boxes:
        yield boxes


Made = Callable[[PowerBoxes, ExitStack, str], PowerPort]


def redfish(boxes: PowerBoxes, stack: ExitStack, password: str) -> PowerPort:
    return RedfishPowerPort(stack.enter_context(boxes.redfish(password)))


def redfish_outlet(boxes: PowerBoxes, stack: ExitStack, password: str) -> PowerPort:
    return RedfishOutlet(stack.enter_context(boxes.redfish(password, pdu=True)), FEEDING)


def ipmi(boxes: PowerBoxes, _stack: ExitStack, password: str) -> PowerPort:
    return IpmiPowerPort(boxes.ipmitool(password))


def apc(boxes: PowerBoxes, _stack: ExitStack, community: str) -> PowerPort:
    return ApcOutlet(boxes.agent(boxes.apc, community), FEEDING)


def cyberpower(boxes: PowerBoxes, _stack: ExitStack, community: str) -> PowerPort:
    return CyberPowerOutlet(boxes.agent(boxes.cyberpower, community), FEEDING)


def failures(boxes: PowerBoxes) -> int:
    return boxes.loop.call(lambda: boxes.account.failures)


@pytest.mark.parametrize("make", [redfish, redfish_outlet, ipmi])
def test_a_wrong_password_is_tried_once_and_never_shown(
    make: Made, boxes: PowerBoxes, stack: ExitStack, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    port = make(boxes, stack, WRONG)
    messages = []
    for ask in (port.is_on, port.turn_off, port.turn_on, port.is_on):
        with pytest.raises(LoginRefused, match=r"refused the account operator: .*; check user and password") as caught:
            ask(soon())
        messages.append(str(caught.value))
    assert failures(boxes) == 1
    assert [message.endswith("(not tried again)") for message in messages] == [False, True, True, True]
    assert WRONG not in "".join(messages) + caplog.text
    assert boxes.is_on()


@pytest.mark.parametrize("make", [redfish, ipmi])
def test_the_box_locks_who_tries_again_and_again(make: Made, boxes: PowerBoxes, stack: ExitStack) -> None:
    for _ in range(3):
        with pytest.raises(LoginRefused):
            make(boxes, stack, WRONG).is_on(soon())
    assert failures(boxes) == 3
    with pytest.raises(LoginRefused):
        make(boxes, stack, PASSWORD).is_on(soon())
    boxes.loop.call(boxes.account.succeed)
    assert make(boxes, stack, PASSWORD).is_on(soon())


@pytest.mark.parametrize("make", [redfish, ipmi])
def test_the_right_password_forgives_earlier_failures(make: Made, boxes: PowerBoxes, stack: ExitStack) -> None:
    for _ in range(3):
        for _ in range(2):
            with pytest.raises(LoginRefused):
                make(boxes, stack, WRONG).is_on(soon())
        assert make(boxes, stack, PASSWORD).is_on(soon())
    assert failures(boxes) == 0


def test_drivers_of_one_box_try_its_account_once_between_them(boxes: PowerBoxes, stack: ExitStack) -> None:
    service, ipmitool = stack.enter_context(boxes.redfish(WRONG)), boxes.ipmitool(WRONG)
    for ask in (RedfishPowerPort(service).is_on, RedfishEventLog(service).events, RedfishEventLog(service).now):
        with pytest.raises(LoginRefused):
            ask(soon())
    assert failures(boxes) == 1
    for ask in (IpmiEventLog(ipmitool).events, IpmiPowerPort(ipmitool).is_on, IpmiEventLog(ipmitool).now):
        with pytest.raises(LoginRefused):
            ask(soon())
    assert failures(boxes) == 2


def test_a_lockout_ends_by_itself() -> None:
    clock = VirtualClock()
    account = Account("a", "right", clock, failures_allowed=2, lockout_s=60)
    assert [account.admits("a", "wrong") for _ in range(2)] == [False, False]
    clock.advance(59)
    assert not account.admits("a", "right")
    clock.advance(2)
    assert account.admits("a", "right")


@pytest.mark.parametrize("make", [redfish, redfish_outlet, ipmi, apc, cyberpower])
def test_a_box_that_takes_requests_and_never_answers_is_waited_for_until_the_deadline(
    make: Made, boxes: PowerBoxes, stack: ExitStack
) -> None:
    port = make(boxes, stack, PASSWORD)
    assert port.is_on(soon())
    boxes.hang()
    for ask in (port.is_on, port.turn_off):
        deadline = soon(0.3)
        with pytest.raises(DeadlineExceeded, match=r"hung|deadline is over"):
            ask(deadline)
        assert deadline.is_over()
    boxes.hang(is_hung=False)
    assert port.is_on(soon())


def test_a_slow_login_ends_at_its_deadline_however_many_requests_it_takes(tmp_path: Path) -> None:
    clock, asked = VirtualClock(), list[str]()
    (tmp_path / "password").write_text(PASSWORD)

    async def answer_slowly(request: Request) -> Response:
        asked.append(request.method)
        clock.advance(11)
        return Response(HTTPStatus.OK, service_root("1"))

    ca_file, context = serve_tls(tmp_path, RealClock())
    server = HttpsServer(answer_slowly, context)
    url = f"https://{server.address}"
    service = RedfishService(url, Login(url, USER, FileSecret(tmp_path / "password")), verify=ca_file)
    with loop_thread() as loop:
        loop.run(server.resume())
        with pytest.raises(DeadlineExceeded, match="was not asked: the deadline is over"):
            service.get("/redfish/v1/Systems/1", Deadline.after(clock, 10))
        loop.run(server.close())
    assert asked == ["GET"]


def test_a_link_to_another_place_is_not_followed_with_a_session(boxes: PowerBoxes, stack: ExitStack) -> None:
    service = stack.enter_context(boxes.redfish())
    own = f"{boxes.redfish_bmc.url}/redfish/v1/Systems/1"
    assert service.get(own, soon())["PowerState"] == "On"
    with pytest.raises(ProtocolError, match="another place"):
        service.get("https://bmc.example/redfish/v1/Systems/1", soon())


@pytest.mark.parametrize("make", [redfish, ipmi])
def test_a_controller_without_feed_is_gone_and_comes_back_as_it_was(
    make: Made, boxes: PowerBoxes, stack: ExitStack
) -> None:
    port = make(boxes, stack, PASSWORD)
    for was_on in (False, True):
        (port.turn_on if was_on else port.turn_off)(soon())
        boxes.feed(on=False)
        assert not boxes.is_on()
        with pytest.raises((NotConnected, DeadlineExceeded), match=r"has power|unreachable|deadline is over"):
            port.is_on(soon(0.5))
        boxes.feed(on=True)
        assert port.is_on(soon()) is was_on


@pytest.mark.parametrize("where", ["127.0.0.1:1", "no.such.host.invalid"])
@pytest.mark.parametrize("kind", ["redfish", "ipmi", "snmp"])
def test_nothing_at_an_address_is_not_connected(kind: str, where: str, tmp_path: Path) -> None:
    (tmp_path / "password").write_text("any")
    login = Login(where, "operator", FileSecret(tmp_path / "password"))
    drivers: dict[str, Callable[[], PowerPort]] = {
        "redfish": lambda: RedfishPowerPort(RedfishService(f"https://{where}", login)),
        "ipmi": lambda: IpmiPowerPort(Ipmitool(where, login)),
        "snmp": lambda: ApcOutlet(SnmpAgent(where, login), 1),
    }
    with pytest.raises(NotConnected, match=re.escape(where)):
        drivers[kind]().is_on(soon())


def test_a_unit_whose_name_does_not_resolve_is_told_so(tmp_path: Path) -> None:
    (tmp_path / "password").write_text("any")
    login = Login("no.such.host.invalid", "operator", FileSecret(tmp_path / "password"))
    with pytest.raises(NameUnknown, match=r"^no\.such\.host\.invalid: the name .* does not resolve \([^()]*\); look"):
        ApcOutlet(SnmpAgent("no.such.host.invalid", login), 1).is_on(soon())


def test_a_certificate_nobody_vouched_for_is_refused_before_the_password_is_sent(boxes: PowerBoxes) -> None:
    url = boxes.redfish_bmc.url
    with pytest.raises(NotConnected, match=r"certificate is not trusted .*ca_file"):
        RedfishPowerPort(RedfishService(url, boxes.login(url))).is_on(soon())
    careless = RedfishService(url, boxes.login(url), verify=False)
    assert RedfishPowerPort(careless).is_on(soon())
    careless.close()


def test_a_community_that_may_only_look_cannot_switch(boxes: PowerBoxes, stack: ExitStack) -> None:
    port = apc(boxes, stack, READ_COMMUNITY)
    assert port.is_on(soon())
    with pytest.raises(LoginRefused, match="refused its community: it may not write"):
        port.turn_off(soon())
    assert port.is_on(soon())


@pytest.mark.parametrize("make", [redfish, redfish_outlet])
def test_an_account_that_may_only_look_cannot_switch(make: Made, boxes: PowerBoxes, stack: ExitStack) -> None:
    boxes.loop.call(lambda: setattr(boxes.account, "may_act", False))
    port = make(boxes, stack, PASSWORD)
    assert port.is_on(soon())
    for _ in range(2):
        with pytest.raises(LoginRefused, match=r"refused the account operator: it may not POST /redfish/v1/.*"):
            port.turn_off(soon())
    assert port.is_on(soon())
    box = boxes.redfish_bmc if make is redfish else boxes.redfish_pdu
    # Each attempt is made with a new session; the one before is given back, as a controller has few.
    assert len(boxes.loop.call(lambda: box._sessions)) == 1


def test_an_account_that_is_no_operator_is_refused(boxes: PowerBoxes, stack: ExitStack) -> None:
    boxes.loop.call(lambda: setattr(boxes.account, "may_act", False))
    with pytest.raises(LoginRefused, match="Set Session Privilege Level to OPERATOR failed"):
        ipmi(boxes, stack, PASSWORD).is_on(soon())


def test_a_community_the_agent_does_not_know_is_not_answered(boxes: PowerBoxes, stack: ExitStack) -> None:
    with pytest.raises(NotConnected, match="its community"):
        apc(boxes, stack, WRONG).is_on(soon())


@pytest.mark.parametrize(("user", "password", "said"), [(USER, WRONG, "digest"), ("nobody", PASSWORD, "Unknown")])
def test_a_user_the_agent_does_not_know_is_refused_once(user: str, password: str, said: str, boxes: PowerBoxes) -> None:
    port = ApcOutlet(boxes.agent(boxes.apc, password, user), FEEDING)
    with pytest.raises(LoginRefused, match=rf"refused the account {user}: .*{said}.*; check user and password"):
        port.turn_off(soon())
    with pytest.raises(LoginRefused, match="not tried again"):
        port.turn_off(soon())
    assert boxes.is_on()


def test_an_outlet_that_is_not_there_is_named(boxes: PowerBoxes, stack: ExitStack) -> None:
    outside = OUTLETS + 1
    with pytest.raises(LabError, match=r"there is no outlet 5 among /redfish/v1/.*/Outlets/1"):
        RedfishOutlet(stack.enter_context(boxes.redfish(pdu=True)), outside).is_on(soon())
    with pytest.raises(LabError, match=r"has not all of .*\.3\.5\.1\.1\.4\.5"):
        ApcOutlet(boxes.agent(boxes.apc), outside).is_on(soon())
    with pytest.raises(LabError, match=r"is no integer|has not all of"):
        ApcOutlet(boxes.agent(boxes.apc, user=USER), outside).is_on(soon())
    with pytest.raises(LabError, match="is this the right kind of PDU"):
        CyberPowerOutlet(boxes.agent(boxes.apc), FEEDING).is_on(soon())


def test_a_pdu_at_a_controllers_address_is_said_to_be_none(boxes: PowerBoxes, stack: ExitStack) -> None:
    controller, pdu = stack.enter_context(boxes.redfish()), stack.enter_context(boxes.redfish(pdu=True))
    with pytest.raises(NotSupported, match="no PowerEquipment"):
        RedfishOutlet(controller, 1).is_on(soon())
    with pytest.raises(NotSupported, match="no Systems"):
        RedfishPowerPort(pdu).turn_off(soon())
    with pytest.raises(NotSupported, match="keeps no system event log"):
        RedfishEventLog(pdu).events(soon())


def test_a_cipher_suite_the_controller_has_not_is_named(boxes: PowerBoxes) -> None:
    address = boxes.ipmi_bmc.address
    with pytest.raises(LabError, match=r"no cipher suite 8; .*cipher_suite:"):
        IpmiPowerPort(Ipmitool(address, boxes.login(address), cipher_suite=8)).is_on(soon())
    assert IpmiPowerPort(Ipmitool(address, boxes.login(address), cipher_suite=3)).is_on(soon())


def test_without_ipmitool_the_package_is_named(boxes: PowerBoxes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", os.devnull)
    with pytest.raises(ToolError, match="install the package ipmitool"):
        IpmiPowerPort(boxes.ipmitool()).is_on(soon())


def test_a_box_without_an_account_says_where_to_add_one(boxes: PowerBoxes) -> None:
    url = boxes.redfish_bmc.url
    with pytest.raises(BadInput, match="add password:"):
        RedfishPowerPort(RedfishService(url, Login(url, "operator", None))).is_on(soon())
    with pytest.raises(BadInput, match="add user:"):
        IpmiPowerPort(Ipmitool(boxes.ipmi_bmc.address, boxes.login("bmc", None))).is_on(soon())


def test_a_command_that_is_delayed_is_waited_for(boxes: PowerBoxes, stack: ExitStack) -> None:
    port = apc(boxes, stack, PASSWORD)
    boxes.loop.call(lambda: setattr(boxes.outlets["apc"], "delay_s", 0.2))
    port.turn_off(soon())
    assert not boxes.is_on()
    port.turn_on(soon())
    assert boxes.is_on()
    boxes.loop.call(lambda: setattr(boxes.outlets["apc"], "delay_s", 3600.0))
    with pytest.raises(DeadlineExceeded, match=r"told to be off and is not|in time|deadline is over"):
        port.turn_off(soon(0.5))
    # What is pending would switch it off within the hour: to turn on what is on is an act then.
    boxes.loop.call(lambda: setattr(boxes.outlets["apc"], "delay_s", 0.0))
    port.turn_on(soon())
    assert not boxes.loop.call(lambda: boxes.outlets["apc"].is_pending(FEEDING))


def test_a_session_that_expired_is_opened_anew(boxes: PowerBoxes, stack: ExitStack) -> None:
    port = redfish(boxes, stack, PASSWORD)
    assert port.is_on(soon())
    boxes.loop.call(boxes.redfish_bmc.expire_sessions)
    assert port.is_on(soon())


def test_sessions_are_closed_with_the_drivers(boxes: PowerBoxes) -> None:
    for _ in range(3):
        with boxes.redfish() as service:
            assert RedfishPowerPort(service).is_on(soon())
            assert service.get("/redfish/v1/SessionService/Sessions", soon())["Members@odata.count"] == 1


class Thinking(MemorySwitching):
    """Power whose state is not told before ``answer``."""

    def __init__(self) -> None:
        super().__init__()
        self.is_asked = Event()
        self._over: set[asyncio.Future[bool]] = set()

    async def is_on(self, target: str) -> bool:
        answer: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._over.add(answer)
        self.is_asked.set()
        return await answer

    def answer(self) -> None:
        for waiting in self._over:
            waiting.set_result(True)


def test_an_ipmitool_that_is_late_closes_its_session(boxes: PowerBoxes, stack: ExitStack) -> None:
    """As after its deadline: a controller has few sessions, and keeps those of which it never hears again."""
    loop, thinking = boxes.loop, Thinking()
    bmc = loop.call(lambda: IpmiBmc(Chassis("srv2", thinking, CLOCK), boxes.account))
    stack.enter_context(loop.entered(bmc))
    stack.callback(loop.call, thinking.answer)
    tool = Ipmitool(bmc.address, boxes.login(bmc.address))
    with tempfile.TemporaryFile() as said:
        running = tool.start("chassis", "power", "status", output=said.fileno(), errors=said, deadline=soon())
        with running:
            assert thinking.is_asked.wait(120)
            assert loop.call(lambda: len(bmc._sessions)) == 1
            end_tool(running, 120.0)
    assert loop.call(lambda: len(bmc._sessions)) == 0


def test_who_waits_for_others_waits_no_longer_than_its_deadline(boxes: PowerBoxes, stack: ExitStack) -> None:
    url = boxes.redfish_bmc.url
    login = boxes.login(url)
    port = RedfishPowerPort(RedfishService(url, login, verify=boxes.ca_file))
    with login.turn(), pytest.raises(DeadlineExceeded, match="others are still waiting"):
        port.is_on(soon(0.1))
    assert port.is_on(soon())


@pytest.mark.parametrize("address", ["pdu1:snmp", "pdu1:70000", "", "user@pdu1", "pdu1/outlets", ":161"])
def test_an_address_that_is_none_is_shown(address: str) -> None:
    with pytest.raises(BadInput, match=rf"'{address}' is no address: .*give 'host' or 'host:port'"):
        SnmpAgent(address, Login(address, None, None))


def test_an_act_after_the_deadline_is_not_sent(boxes: PowerBoxes, stack: ExitStack) -> None:
    clock = VirtualClock()
    late = Deadline(clock, 0)
    for make in (redfish, ipmi, apc):
        with pytest.raises(DeadlineExceeded, match="deadline is over"):
            make(boxes, stack, PASSWORD).turn_off(late)
    assert boxes.is_on()
