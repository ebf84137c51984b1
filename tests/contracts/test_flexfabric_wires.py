"""The simulated switch on its wires: any SCPI client may talk to it, and none can hurt it."""

from __future__ import annotations

import os
import select
import socket
import termios
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from rackloop.errors import BadInput, LockedOut, NotConnected
from rackloop.portmap import Full, PortMap
from rackloop.seed import stream
from rackloop_drivers.fabric.flexfabric import (
    FlexFabric,
    LineFault,
    LineFaultRule,
    LineFaults,
    SwitchPeer,
    SwitchThread,
    open_flexfabric,
)
from tests.deadlines import CLOCK, soon
from tests.switch_in_memory import switch_in_memory, tcp
from tests.switch_wires import terminal_server

IDENTITY = "Rackloop,FlexFabric-160,FF000001,1.0"


@pytest.fixture
def switch(tmp_path: Path) -> Iterator[SwitchThread]:
    with switch_in_memory(state_path=tmp_path / "switch.json") as thread:
        yield thread


def serve_pty(switch: SwitchThread, link: Path | None = None, *, is_paced: bool = False) -> str:
    async def serve(peer: SwitchPeer) -> str:
        return peer.serve_pty(link, is_paced=is_paced)

    return switch.call(serve)


def read_lines(sock: socket.socket, count: int) -> list[bytes]:
    chunks: list[bytes] = []
    ended = 0
    while ended < count:
        chunks.append(sock.recv(65536))
        assert chunks[-1], chunks
        ended += chunks[-1].count(b"\n")
    return b"".join(chunks).splitlines()


def write_all(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]


def test_pyvisa_can_drive_it(switch: SwitchThread) -> None:
    import pyvisa

    host, port = switch.call(lambda peer: peer.serve_tcp())
    manager = pyvisa.ResourceManager("@py")
    try:
        box = manager.open_resource(f"TCPIP::{host}::{port}::SOCKET", open_timeout=20_000, timeout=20_000)
        assert isinstance(box, pyvisa.resources.MessageBasedResource)
        box.read_termination = box.write_termination = "\n"
        assert box.query("*IDN?") == IDENTITY
        assert box.query("ROUTE:MAP?") == "(@)"
        box.write("ROUTE:LOAD (@1!17,2!18)")
        assert box.query("ROUTE:LOAD?") == "(@1!17,2!18)"
        box.write("TRIGGER:ROUTE 1")
        assert box.query("ROUTE:MAP?;GENERATION?") == "(@1!17,2!18);2"
        box.write("TRIGGER:ROUTE 1")
        assert box.query("SYSTEM:ERROR?").startswith('-221,"Settings conflict')
        assert box.query("SYSTEM:ERROR?") == '0,"No error"'
        box.write("MEASURE:VOLTAGE?")
        assert box.query("SYSTEM:ERROR:NEXT?").startswith('-113,"Undefined header')
        assert box.query("*ESR?") == "48"
        box.close()
    finally:
        manager.close()


def test_the_serial_port_has_a_link_that_goes_with_it(switch: SwitchThread, tmp_path: Path) -> None:
    link = tmp_path / "tty"
    link.write_text("left by a switch that died")
    path = serve_pty(switch, link)
    assert link.readlink() == Path(path)
    session = open_flexfabric(str(link), CLOCK, soon())
    assert FlexFabric(session).port_count(soon()) == 160
    session.close()
    switch.call(lambda peer: peer.close())
    assert not link.is_symlink()


def test_a_serial_line_is_one_connection_whoever_opens_it(switch: SwitchThread) -> None:
    path = serve_pty(switch)
    for sent, expected in ((b"ROUT:LOAD (@1!17)\n*OPC?\n", b"1\n"), (b"ROUT:LOAD?\n", b"(@1!17)\n")):
        descriptor = os.open(path, os.O_RDWR | os.O_NOCTTY)
        os.write(descriptor, sent)
        heard = b""
        while not heard.endswith(b"\n"):
            assert select.select([descriptor], [], [], 20)[0]
            heard += os.read(descriptor, 4096)
        os.close(descriptor)
        assert heard == expected


def test_a_second_program_cannot_open_the_port(switch: SwitchThread) -> None:
    path = serve_pty(switch)
    session = open_flexfabric(path, CLOCK, soon())
    with pytest.raises(NotConnected, match="no other program has the port open"):
        open_flexfabric(path, CLOCK, soon())
    session.close()


def test_a_paced_line_carries_a_whole_map(switch: SwitchThread) -> None:
    whole = PortMap.of((port, port + 80) for port in range(1, 81))
    session = open_flexfabric(serve_pty(switch, is_paced=True), CLOCK, soon(), answer_within_s=5)
    fabric = FlexFabric(session)
    fabric.apply(Full(whole), soon())
    assert fabric.live_map(soon()).pairs == whole
    session.close()


def test_a_slow_line_behind_a_terminal_server_has_the_time_it_takes(switch: SwitchThread) -> None:
    pairs = PortMap.of((port, port + 80) for port in range(1, 11))

    async def serve(peer: SwitchPeer) -> str:
        return peer.serve_pty(baud=4800)

    with (
        terminal_server(switch.call(serve)) as url,
        closing(FlexFabric(open_flexfabric(url, CLOCK, soon(), answer_within_s=0.2, baud=4800))) as fabric,
    ):
        fabric.apply(Full(pairs), soon())
        assert fabric.live_map(soon()).pairs == pairs


def test_the_highest_token_outlives_the_switch(tmp_path: Path) -> None:
    state = tmp_path / "switch.json"
    for token in (41, 42):
        with switch_in_memory(state_path=state) as thread:
            open_flexfabric(tcp(thread), CLOCK, soon(), token).close()
    with switch_in_memory(state_path=state) as thread:
        url = tcp(thread)
        with pytest.raises(LockedOut):
            open_flexfabric(url, CLOCK, soon(), 41)
        open_flexfabric(url, CLOCK, soon(), 42).close()


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"highest_token": "5"}', '{"highest_token": -1}', "\x00"])
def test_a_state_file_that_is_none_is_bad_input(tmp_path: Path, text: str) -> None:
    state = tmp_path / "switch.json"
    state.write_text(text)
    with pytest.raises(BadInput, match="not a switch's state"), switch_in_memory(state_path=state):
        pass


def test_a_port_that_is_taken_is_said(switch: SwitchThread) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(NotConnected, match="choose another port"):
        switch.call(lambda peer: peer.serve_tcp("127.0.0.1", taken.getsockname()[1]))


def test_who_never_reads_holds_up_nobody_else(switch: SwitchThread) -> None:
    address = switch.call(lambda peer: peer.serve_tcp())
    many = 200
    question = ";".join(["*IDN?"] * many).encode("ascii") + b"\n"
    answer = ";".join([IDENTITY] * many).encode("ascii")
    lines = 2000
    with (
        socket.create_connection(address, timeout=20) as greedy,
        socket.create_connection(address, timeout=20) as other,
    ):
        asking = threading.Thread(target=greedy.sendall, args=(question * lines,))
        asking.start()
        for _ in range(50):
            other.sendall(b"*OPC?\n")
            assert read_lines(other, 1) == [b"1"]
        assert set(read_lines(greedy, lines)) == {answer}
        asking.join()


def test_a_rate_no_terminal_has_is_bad_input(switch: SwitchThread) -> None:
    async def serve(peer: SwitchPeer) -> str:
        return peer.serve_pty(baud=12345)

    with pytest.raises(BadInput, match="12345 baud"):
        switch.call(serve)


def test_a_flood_on_the_serial_line_is_answered_in_full(switch: SwitchThread) -> None:
    descriptor = os.open(serve_pty(switch), os.O_RDWR | os.O_NOCTTY)
    lines = 5000
    asking = threading.Thread(target=write_all, args=(descriptor, b"ROUT:GEN?\n" * lines))
    asking.start()
    heard = b""
    while len(heard) < 2 * lines:
        assert select.select([descriptor], [], [], 20)[0]
        heard += os.read(descriptor, 65536)
    asking.join()
    os.close(descriptor)
    assert heard == b"1\n" * lines


def test_a_half_line_dies_with_its_connection(switch: SwitchThread) -> None:
    address = switch.call(lambda peer: peer.serve_tcp())
    with socket.create_connection(address, timeout=20) as sock:
        sock.sendall(b"ROUT:OPEN:ALL")
    with socket.create_connection(address, timeout=20) as sock:
        sock.sendall(b"ROUT:GEN?;:SYST:ERR:COUN?\n")
        assert read_lines(sock, 1) == [b"1;0"]


def test_a_controller_that_has_said_all_is_answered_and_hung_up_on(switch: SwitchThread) -> None:
    address = switch.call(lambda peer: peer.serve_tcp())
    with socket.create_connection(address, timeout=20) as sock:
        sock.sendall(b"ROUT:LOAD (@1!17);:TRIG\nROUT:MAP?\nROUT:OPEN:ALL")
        sock.shutdown(socket.SHUT_WR)
        heard = b""
        while piece := sock.recv(4096):
            heard += piece
        assert heard == b"(@1!17)\n"
    with socket.create_connection(address, timeout=20) as sock:
        sock.sendall(b"ROUT:MAP?\n")
        assert read_lines(sock, 1) == [b"(@1!17)"]


def test_a_power_cut_sets_the_power_on_event_of_the_serial_port(switch: SwitchThread) -> None:
    descriptor = os.open(serve_pty(switch), os.O_RDWR | os.O_NOCTTY)
    os.write(descriptor, b"ROUT:LOAD (@1!2)\n*OPC?\n")
    assert os.read(descriptor, 100) == b"1\n"
    switch.call(lambda peer: peer.power_cycle())
    os.write(descriptor, b"*ESR?;:ROUT:LOAD?;GEN?\n")
    assert os.read(descriptor, 100) == b"128;(@);2\n"
    os.close(descriptor)


def test_a_serial_port_whose_answers_nobody_read_listens_again_after_a_power_cut(switch: SwitchThread) -> None:
    descriptor = os.open(serve_pty(switch), os.O_RDWR | os.O_NOCTTY)
    write_all(descriptor, b";".join([b"*IDN?"] * 9000) + b"\n")
    # The answer has begun, and there is no room for it all.
    assert select.select([descriptor], [], [], 20)[0]
    switch.call(lambda peer: peer.power_cycle())
    termios.tcflush(descriptor, termios.TCIFLUSH)
    os.write(descriptor, b"*OPC?\n")
    heard = b""
    while not heard.endswith(b"1\n"):
        assert select.select([descriptor], [], [], 20)[0]
        heard = (heard + os.read(descriptor, 65536))[-2:]
    os.close(descriptor)


def test_the_same_seed_misbehaves_the_same_way() -> None:
    def replay(seed: int) -> list[bytes]:
        line_faults = LineFaults(stream(seed, "replay"))
        line_faults.install(LineFaultRule(LineFault.GARBLED, match="gen", count=None, probability=0.5))
        line_faults.install(LineFaultRule(LineFault.LOST, count=3, probability=0.3))
        heard = []
        for _ in range(100):
            rule = line_faults.verdict(b"ROUT:GEN?")
            heard.append(
                line_faults.garble(b"12345678\n") if rule and rule.act is LineFault.GARBLED else str(rule).encode()
            )
        return heard

    assert replay(1) == replay(1)
    assert replay(1) != replay(2)


def test_a_rule_strikes_as_often_as_it_says_and_while_it_is_in_force() -> None:
    line_faults = LineFaults(stream(1, "rules"))
    twice = LineFaultRule(LineFault.LOST, match="trig", count=2)
    with line_faults.rule(twice):
        assert line_faults.verdict(b"ROUT:GEN?") is None
        assert [line_faults.verdict(b":TRIG 5") for _ in range(3)] == [twice, twice, None]
    always = LineFaultRule(LineFault.LATE, count=None, delay_s=1)
    never = LineFaultRule(LineFault.LOST, count=None, probability=0)
    with line_faults.rule(never), line_faults.rule(always):
        assert line_faults.verdict(b"*IDN?") is always
    assert line_faults.verdict(b"*IDN?") is None


def test_noise_is_never_mistaken_for_text() -> None:
    line_faults = LineFaults(stream(3, "noise"))
    for length in range(1, 60):
        garbled = line_faults.garble(b"5" * length + b"\n")
        assert len(garbled) == length + 1
        assert garbled.endswith(b"\n")
        assert not garbled.isascii()
        assert not line_faults.noise(length).isascii()
