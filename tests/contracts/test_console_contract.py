"""Every driver of consoles keeps its contract against the box it is for, simulated, and against a real line."""

from __future__ import annotations

import gc
import os
import socket
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path

import pytest
from pyghmi.ipmi.console import Console as PyghmiConsole  # type: ignore[import-untyped]

from rackloop.abilities import Console
from rackloop.clock import Deadline
from rackloop.contracts import console as contract
from rackloop.contracts.console import ConsoleArm
from rackloop.errors import (
    BadInput,
    HostKeyUnknown,
    LabError,
    LoginRefused,
    NotConnected,
    NotSupported,
)
from rackloop.lab import FileSecret
from rackloop_drivers.console import Ser2netConsole, Ser2netPeer, TtyConsole, TtyPeer
from rackloop_drivers.host import SshAccess, open_shell
from rackloop_drivers.power.ipmi import IpmiBmc, IpmiConsole, Ipmitool
from rackloop_drivers.power.redfish import RedfishBmc, RedfishConsole, RedfishService, serve_tls
from rackloop_drivers.remembered import Remembered
from rackloop_drivers.stream_console import Stream
from tests.deadlines import CLOCK, soon
from tests.power_boxes import PASSWORD, USER, PowerBoxes, power_boxes

pytestmark = pytest.mark.filterwarnings("ignore:set(Daemon|Name)")  # pyserial 3.5, rfc2217
REAL_LINE = "RACKLOOP_REAL_CONSOLE"
"""A serial line with a loop-back plug, such as /dev/ttyUSB0."""

WRONG = "wrong horse"


@pytest.fixture(scope="module")
def boxes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PowerBoxes]:
    with power_boxes(tmp_path_factory.mktemp("boxes")) as boxes:
        yield boxes


class Server:
    """A server's serial line, from the thread of a test."""

    def __init__(self, boxes: PowerBoxes) -> None:
        self.boxes = boxes
        self.line = boxes.chassis.line
        self._typed = bytearray()
        self.line.on_input = self._typed.extend

    def say(self, text: bytes) -> None:
        self.boxes.loop.call(lambda: self.line.say(text))

    def typed(self) -> bytes:
        return bytes(self._typed)

    def arm(self, console: Console, cut: Callable[[], None] | None = None) -> ConsoleArm:
        return ConsoleArm(console, self.say, self.typed, cut and (lambda: self.boxes.loop.call(cut)))


def ser2net(server: Server, stack: ExitStack, *, is_telnet: bool = False) -> ConsoleArm:
    peer = stack.enter_context(server.boxes.loop.entered(Ser2netPeer(server.line, is_telnet=is_telnet)))
    return server.arm(Ser2netConsole(peer.address, CLOCK), peer.cut)


def rfc2217(server: Server, stack: ExitStack) -> ConsoleArm:
    return ser2net(server, stack, is_telnet=True)


def tty(server: Server, stack: ExitStack) -> ConsoleArm:
    peer = stack.enter_context(server.boxes.loop.entered(TtyPeer(server.line)))
    return server.arm(TtyConsole(peer.device, CLOCK))


def ipmi(server: Server, stack: ExitStack) -> ConsoleArm:
    bmc = sol_bmc(server, stack)
    return server.arm(IpmiConsole(Ipmitool(bmc.address, server.boxes.login(bmc.address)), CLOCK))


def redfish(server: Server, stack: ExitStack) -> ConsoleArm:
    bmc, service = redfish_bmc(server, stack)
    assert bmc.console is not None
    return server.arm(RedfishConsole(service, partial(shell, server, bmc), CLOCK, remembered(server)), bmc.console.cut)


def sol_bmc(server: Server, stack: ExitStack) -> IpmiBmc:
    boxes = server.boxes
    return stack.enter_context(boxes.loop.entered(boxes.loop.call(lambda: IpmiBmc(boxes.chassis, boxes.account))))


def redfish_bmc(server: Server, stack: ExitStack, *, has_console: bool = True) -> tuple[RedfishBmc, RedfishService]:
    boxes = server.boxes
    folder = boxes.folder / "redfish"
    folder.mkdir(exist_ok=True)
    ca_file, context = serve_tls(folder, CLOCK)
    bmc = stack.enter_context(
        boxes.loop.entered(
            boxes.loop.call(lambda: RedfishBmc(boxes.chassis, boxes.account, context, has_console=has_console))
        )
    )
    service = RedfishService(bmc.url, boxes.login(bmc.url), verify=ca_file)
    stack.callback(service.close)
    return bmc, service


def shell(
    server: Server,
    bmc: RedfishBmc,
    host: str,
    port: int,
    deadline: Deadline,
    *,
    password: str = PASSWORD,
    is_known: bool = True,
) -> Stream:
    folder = server.boxes.folder
    assert bmc.console is not None
    known_hosts = folder / "known_hosts"
    known_hosts.write_text(bmc.console.known_hosts_line if is_known else "")
    secret = folder / "ssh.password"
    secret.write_text(password)
    access = SshAccess("srv1", host, known_hosts, port, USER, password=FileSecret(secret), use_agent=False)
    return open_shell(access, deadline)


def remembered(server: Server) -> Remembered:
    """Each controller here is a new one, with a port of its own: nothing that is kept is of it."""
    return Remembered(server.boxes.folder / "consoles.json", CLOCK, 86400.0)


def real(_server: Server, _stack: ExitStack) -> ConsoleArm:
    if not (device := os.environ.get(REAL_LINE)):
        pytest.skip(f"no serial line with a loop-back plug: set {REAL_LINE} to its device")
    console = TtyConsole(device, CLOCK)
    return ConsoleArm(console, lambda text: console.send(text, soon()), None)


@pytest.mark.parametrize("clause", contract.CONTRACT, ids=lambda clause: clause.__name__)
@pytest.mark.parametrize("arm", [ser2net, rfc2217, tty, ipmi, redfish, real])
def test_console(
    clause: Callable[[contract.ConsoleFactory], None],
    arm: Callable[[Server, ExitStack], ConsoleArm],
    boxes: PowerBoxes,
) -> None:
    @contextmanager
    def make() -> Iterator[ConsoleArm]:
        with ExitStack() as stack:
            made = arm(Server(boxes), stack)
            stack.callback(made.console.close)
            yield made

    clause(make)


@pytest.fixture
def server(boxes: PowerBoxes) -> Server:
    return Server(boxes)


def two_consoles(server: Server, bmc: IpmiBmc, stack: ExitStack) -> tuple[IpmiConsole, IpmiConsole]:
    """Two consoles of one controller, the first of them open."""
    first, second = (
        IpmiConsole(Ipmitool(bmc.address, server.boxes.login(bmc.address)), CLOCK) for _ in ("mine", "yours")
    )
    for console in (first, second):
        stack.callback(console.close)
    first.open(soon())
    return first, second


def test_a_controller_has_one_session_of_serial_over_lan(server: Server, stack: ExitStack) -> None:
    first, second = two_consoles(server, sol_bmc(server, stack), stack)
    with pytest.raises(LabError, match="another session has the console"):
        second.open(soon())
    first.close()
    second.open(soon())


def test_a_session_on_which_much_is_said_is_given_back(server: Server, stack: ExitStack) -> None:
    bmc = sol_bmc(server, stack)
    first, second = two_consoles(server, bmc, stack)
    server.say(b"more than a terminal holds\r\n" * 1000)
    # Nobody reads it: ipmitool waits for room in its terminal, acknowledges nothing, and the controller tries again.
    assert soon().poll(lambda: server.boxes.loop.call(lambda: bmc.sol._tries > 1), every_s=0.01)
    first.close()
    second.open(soon())


def test_serial_over_lan_that_is_disabled_says_how_to_enable_it(server: Server, stack: ExitStack) -> None:
    bmc = sol_bmc(server, stack)
    bmc.sol.is_enabled = False
    console = IpmiConsole(Ipmitool(bmc.address, server.boxes.login(bmc.address)), CLOCK)
    with pytest.raises(LabError, match="sol set enabled true"):
        console.open(soon())


def test_a_wrong_password_is_tried_once(server: Server, stack: ExitStack) -> None:
    bmc = sol_bmc(server, stack)
    console = IpmiConsole(Ipmitool(bmc.address, server.boxes.login(bmc.address, password=WRONG)), CLOCK)
    with pytest.raises(LoginRefused, match="check user and password"):
        console.open(soon())
    with pytest.raises(LoginRefused, match="not tried again"):
        console.open(soon())
    assert server.boxes.account.failures == 1
    server.boxes.account.succeed()


def test_another_client_hears_serial_over_lan(server: Server, stack: ExitStack) -> None:
    """What pyghmi, another implementation, makes of the simulated controller's packets."""
    bmc = sol_bmc(server, stack)
    host, _, port = bmc.address.partition(":")
    heard: list[bytes] = []

    def note(data: object) -> None:
        if isinstance(data, bytes):
            heard.append(data)

    session = PyghmiConsole(bmc=host, userid=USER, password=PASSWORD, iohandler=note, port=int(port), force=True)
    soon().poll(lambda: PyghmiConsole.wait_for_rsp(0.1) is not None and session.connected, every_s=0.01)
    server.say(b"hello from srv1\r\n")
    soon().poll(lambda: PyghmiConsole.wait_for_rsp(0.1) is not None and b"hello" in b"".join(heard), every_s=0.01)
    session.send_data(b"typed")
    soon().poll(lambda: PyghmiConsole.wait_for_rsp(0.1) is not None and server.typed() == b"typed", every_s=0.01)
    session.close()
    assert b"hello from srv1\r\n" in b"".join(heard)
    assert server.typed() == b"typed"


def test_a_controller_without_a_console_by_ssh_says_what_it_offers(server: Server, stack: ExitStack) -> None:
    bmc, service = redfish_bmc(server, stack, has_console=False)
    console = RedfishConsole(service, partial(shell, server, bmc), CLOCK, remembered(server))
    with pytest.raises(NotSupported, match=r"by SSH \(offered: none\); enable it in the controller"):
        console.open(soon())


def test_a_controller_whose_host_key_is_unknown_is_shown_no_password(server: Server, stack: ExitStack) -> None:
    bmc, service = redfish_bmc(server, stack)
    console = RedfishConsole(service, partial(shell, server, bmc, is_known=False), CLOCK, remembered(server))
    with pytest.raises(HostKeyUnknown, match="is not in"):
        console.open(soon())


def test_a_console_that_is_remembered_is_shown_without_a_session_of_redfish(server: Server, stack: ExitStack) -> None:
    bmc, service = redfish_bmc(server, stack)
    for known in (False, True):
        console = RedfishConsole(service, partial(shell, server, bmc), CLOCK, remembered(server))
        stack.callback(console.close)
        console.open(soon())
        server.say(b"hello\r\n")
        heard = console.read(soon())
        assert heard is not None
        assert b"hello" in heard.data
        console.close()
        service.close()
        if not known:
            service = RedfishService(bmc.url, server.boxes.login(bmc.url, password=WRONG), verify=service._verify)


def test_a_wrong_password_is_refused_by_the_controllers_ssh(server: Server, stack: ExitStack) -> None:
    bmc, service = redfish_bmc(server, stack)
    console = RedfishConsole(service, partial(shell, server, bmc, password=WRONG), CLOCK, remembered(server))
    with pytest.raises(LoginRefused, match="the password"):
        console.open(soon())
    server.boxes.account.succeed()


@pytest.mark.parametrize("is_telnet", [False, True], ids=["plain TCP", "RFC 2217"])
def test_a_ser2net_that_vanishes_is_noticed_after_40_seconds(
    server: Server, stack: ExitStack, *, is_telnet: bool
) -> None:
    peer = stack.enter_context(server.boxes.loop.entered(Ser2netPeer(server.line, is_telnet=is_telnet)))
    console = Ser2netConsole(peer.address, CLOCK)
    stack.callback(console.close)
    console.open(soon())
    port = int(peer.address.rpartition(":")[2])
    wire = stack.enter_context(_connected_to(port))
    assert wire.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
    idle, apart, probes = (
        wire.getsockopt(socket.IPPROTO_TCP, option)
        for option in (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT)
    )
    assert idle + probes * apart == 40


def _connected_to(port: int) -> socket.socket:
    """This process's end of its connection to a port of its own."""
    for descriptor in Path("/proc/self/fd").iterdir():
        with suppress(OSError), ExitStack() as stack:
            wire = stack.enter_context(socket.fromfd(int(descriptor.name), socket.AF_INET, socket.SOCK_STREAM))
            if wire.getpeername() == ("127.0.0.1", port):
                stack.pop_all()
                return wire
    raise LookupError(port)


def test_a_line_that_was_reset_leaves_no_socket_open(server: Server, stack: ExitStack) -> None:
    peer = stack.enter_context(server.boxes.loop.entered(Ser2netPeer(server.line, is_telnet=True)))
    console = Ser2netConsole(peer.address, CLOCK)
    console.open(soon())
    gc.collect()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        server.boxes.loop.call(lambda: peer.cut(is_reset=True))
        with pytest.raises(NotConnected):
            soon().poll(lambda: console.read(soon()) is None, every_s=0.01)
        gc.collect()
    assert not [one.message for one in caught if issubclass(one.category, ResourceWarning)]


def test_nothing_at_an_address_is_said(tmp_path: Path) -> None:
    with pytest.raises(NotConnected, match=r"ser2net 127\.0\.0\.1:9: Connection refused"):
        Ser2netConsole("127.0.0.1:9", CLOCK).open(soon())
    with pytest.raises(BadInput, match=r"'a\.\.b:2001' is no address: "):
        Ser2netConsole("a..b:2001", CLOCK).open(soon())
    with pytest.raises(NotConnected, match="cannot be had"):
        Ser2netConsole("rfc2217://127.0.0.1:9", CLOCK).open(soon())
    with pytest.raises(NotConnected, match="No such file"):
        TtyConsole(str(tmp_path / "none"), CLOCK).open(soon())
