"""The driver against a switch that misbehaves: exactly once, or one clear error."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, suppress
from pathlib import Path

import pytest

from rackloop.abilities import BoxIdentity, LiveMap
from rackloop.clock import Deadline, VirtualClock
from rackloop.errors import (
    BadInput,
    DeadlineExceeded,
    FabricError,
    LockedOut,
    NotConnected,
    ProtocolError,
    StaleGeneration,
)
from rackloop.portmap import Full, Open, Partial, PortMap
from rackloop.seed import stream
from rackloop_drivers.fabric.flexfabric import (
    Exchange,
    FlexFabric,
    FlexFabricPhy,
    FlexFabricSession,
    LineFault,
    LineFaultRule,
    LineFaults,
    SwitchPeer,
    SwitchThread,
    open_flexfabric,
)
from rackloop_drivers.fabric.flexfabric._session import HISTORY_LENGTH
from tests.deadlines import CLOCK, soon
from tests.switch_in_memory import switch_in_memory, tcp
from tests.switch_wires import rewritten

BEFORE = PortMap.of([(1, 17), (2, 18), (3, 19)])
CHANGE = Partial(PortMap.of([(1, 18)]))
AFTER = PortMap.of([(1, 18), (3, 19)])


def switch(boot_map: PortMap = BEFORE) -> AbstractContextManager[SwitchThread]:
    return switch_in_memory(boot_map, line_faults=LineFaults(stream(7, "switch")))


def serial(thread: SwitchThread, baud: int = 115200) -> str:
    async def serve(peer: SwitchPeer) -> str:
        return peer.serve_pty(baud=baud, is_paced=False)

    return thread.call(serve)


def connect(url: str, token: int | None = None, answer_within_s: float = 0.1) -> FlexFabricSession:
    return open_flexfabric(url, CLOCK, soon(), token, answer_within_s=answer_within_s)


def install(thread: SwitchThread, *rules: LineFaultRule) -> None:
    async def put(peer: SwitchPeer) -> None:
        for rule in rules:
            peer.line_faults.install(rule)

    thread.call(put)


WIRES: dict[str, Callable[[SwitchThread], str]] = {"tcp": tcp, "serial": serial}
ANSWER_TROUBLE = (
    LineFaultRule(LineFault.UNHEARD),
    LineFaultRule(LineFault.LOST),
    LineFaultRule(LineFault.GARBLED),
    LineFaultRule(LineFault.DOUBLED),
    LineFaultRule(LineFault.LATE, delay_s=0.3),
)


@pytest.fixture(params=sorted(WIRES))
def bench(request: pytest.FixtureRequest) -> Iterator[tuple[SwitchThread, FlexFabricSession]]:
    with switch() as thread:
        session = connect(WIRES[request.param](thread))
        yield thread, session
        session.close()


@pytest.mark.parametrize("trouble", ANSWER_TROUBLE, ids=lambda rule: rule.act.value)
@pytest.mark.parametrize("line", [":TRIG", ":ROUT:LOAD", ":ROUT:GEN?", ":ROUT:MAP? (@"])
def test_a_change_is_made_exactly_once(
    bench: tuple[SwitchThread, FlexFabricSession], trouble: LineFaultRule, line: str
) -> None:
    thread, session = bench
    fabric = FlexFabric(session)
    install(thread, LineFaultRule(trouble.act, match=line, delay_s=trouble.delay_s))
    applied = fabric.apply(CHANGE, soon())
    assert applied.generation == 2
    assert fabric.live_map(soon()) == LiveMap(2, AFTER)
    assert applied.commanded_ns < applied.acknowledged_ns


@pytest.mark.parametrize("trouble", ANSWER_TROUBLE, ids=lambda rule: rule.act.value)
def test_ports_are_opened_exactly_once(bench: tuple[SwitchThread, FlexFabricSession], trouble: LineFaultRule) -> None:
    thread, session = bench
    install(thread, LineFaultRule(trouble.act, match="ROUT:OPEN", delay_s=trouble.delay_s))
    assert FlexFabric(session).apply(Open(frozenset({1, 2})), soon()).generation == 2
    assert FlexFabric(session).live_map(soon()) == LiveMap(2, PortMap.of([(3, 19)]))


@pytest.mark.parametrize("trouble", ANSWER_TROUBLE, ids=lambda rule: rule.act.value)
def test_a_signal_is_dropped_exactly_once(
    bench: tuple[SwitchThread, FlexFabricSession], trouble: LineFaultRule
) -> None:
    thread, session = bench
    phy = FlexFabricPhy(session)
    install(thread, LineFaultRule(trouble.act, match="PHY:DROP", delay_s=trouble.delay_s))
    phy.drop([1], 0.001, soon(), request_id=77)
    assert phy.drop_counts([1, 2], soon()) == {1: 1, 2: 0}


def test_doubled_answers_are_never_taken_for_the_next(bench: tuple[SwitchThread, FlexFabricSession]) -> None:
    thread, session = bench
    install(thread, LineFaultRule(LineFault.DOUBLED, count=None))
    fabric = FlexFabric(session)
    for generation in range(2, 30):
        assert fabric.apply(CHANGE, soon()).generation == generation
        assert fabric.generation(soon()) == generation
        assert fabric.port_count(soon()) == 160


def test_two_troubles_in_a_row_are_overcome(bench: tuple[SwitchThread, FlexFabricSession]) -> None:
    thread, session = bench
    install(
        thread,
        LineFaultRule(LineFault.UNHEARD, match=":TRIG"),
        LineFaultRule(LineFault.GARBLED, match="*IDN?"),
        LineFaultRule(LineFault.LOST, match=":TRIG"),
    )
    assert FlexFabric(session).apply(CHANGE, soon()).generation == 2
    assert FlexFabric(session).live_map(soon()) == LiveMap(2, AFTER)


@pytest.mark.parametrize("act", [LineFault.POWER_LOSS_BEFORE, LineFault.POWER_LOSS_AFTER])
def test_power_loss_around_the_trigger_is_one_clear_error(
    bench: tuple[SwitchThread, FlexFabricSession], act: LineFault
) -> None:
    thread, session = bench
    fabric = FlexFabric(session)
    install(thread, LineFaultRule(act, match=":TRIG"))
    with pytest.raises(FabricError, match="lost power or another controller") as caught:
        fabric.apply(CHANGE, soon())
    assert session.url in str(caught.value)
    assert fabric.live_map(soon()).pairs == BEFORE


def test_a_change_takes_two_exchanges_and_says_when_its_trigger_was_written(
    bench: tuple[SwitchThread, FlexFabricSession],
) -> None:
    _, session = bench
    fabric = FlexFabric(session)
    before = len(session.history)
    applied = fabric.apply(CHANGE, soon())
    staged, triggered = session.history[before:]
    assert ":ROUT:LOAD" in staged.sent
    assert ":TRIG 1" in triggered.sent
    assert applied.written_ns is not None
    assert applied.commanded_ns == triggered.t_ns <= applied.written_ns <= applied.acknowledged_ns


def test_power_loss_in_the_middle_of_a_load_triggers_nothing(bench: tuple[SwitchThread, FlexFabricSession]) -> None:
    thread, session = bench
    fabric = FlexFabric(session)
    install(thread, LineFaultRule(LineFault.POWER_LOSS_BEFORE, match=":ROUT:LOAD"))
    with pytest.raises(StaleGeneration):
        fabric.apply(CHANGE, soon(), on=LiveMap(1, BEFORE))
    assert fabric.live_map(soon()) == LiveMap(2, BEFORE)
    assert fabric.apply(CHANGE, soon()).generation == 3


def test_a_power_cut_that_boots_into_the_intended_map_counts_as_done() -> None:
    with switch() as thread:
        fabric = FlexFabric(connect(tcp(thread)))
        fabric.apply(CHANGE, soon())
        install(thread, LineFaultRule(LineFault.POWER_LOSS_BEFORE, match=":TRIG"))
        assert fabric.apply(Full(BEFORE), soon()).generation == 3
        assert fabric.live_map(soon()) == LiveMap(3, BEFORE)
        fabric.close()


def test_a_token_is_presented_again_after_power_loss(bench: tuple[SwitchThread, FlexFabricSession]) -> None:
    thread, session = bench
    fabric = FlexFabric(session)
    fabric.take_lock(5, soon())
    install(thread, LineFaultRule(LineFault.POWER_LOSS_BEFORE, match=":ROUT:MAP?"))
    fabric.live_map(soon())

    async def holder(peer: SwitchPeer) -> int:
        return peer.core.lock.holder

    assert thread.call(holder) == 5
    fabric.apply(CHANGE, soon())


def test_a_controller_that_was_replaced_while_away_is_told(bench: tuple[SwitchThread, FlexFabricSession]) -> None:
    thread, session = bench
    fabric = FlexFabric(session)
    fabric.take_lock(5, soon())
    other = FlexFabric(connect(tcp(thread), token=6))
    install(thread, LineFaultRule(LineFault.LOST, match=":ROUT:LOAD"))
    with pytest.raises(LockedOut, match="lease the rack again"):
        fabric.apply(CHANGE, soon())
    assert other.live_map(soon()) == LiveMap(1, BEFORE)
    other.close()


class TickingClock(VirtualClock):
    """A clock on which a look takes ten seconds, so that the wire, which waits in real time, is never too late."""

    def now_ns(self) -> int:
        """The virtual time, ten seconds later than when it was last asked for."""
        self.advance(10)
        return super().now_ns()


def test_a_switch_that_is_off_is_said_to_be_whenever_the_time_is_up() -> None:
    clock = TickingClock()
    with switch() as thread:
        fabric = FlexFabric(open_flexfabric(tcp(thread), clock, Deadline.after(clock, 10_000), answer_within_s=10))
        thread.call(lambda peer: peer.power_off())
        told = set()
        for looks in range(1, 120):
            tried = len(fabric.session.history)
            with pytest.raises((NotConnected, DeadlineExceeded)) as raised:
                fabric.live_map(Deadline.after(clock, looks * 10))
            # Before the first attempt there is nothing to tell but that there was no time for one.
            told.add((raised.type, len(fabric.session.history) > tried))
        fabric.close()
    assert (NotConnected, True) in told
    assert (DeadlineExceeded, True) not in told


def test_a_switch_that_is_off_is_awaited_until_the_deadline() -> None:
    with switch() as thread:
        fabric = FlexFabric(connect(tcp(thread)))
        thread.call(lambda peer: peer.power_off())
        with pytest.raises(NotConnected, match="check that it has power"):
            fabric.live_map(soon(0.3))
        thread.call(lambda peer: peer.power_on())
        assert fabric.live_map(soon()) == LiveMap(2, BEFORE)
        fabric.close()


def test_a_serial_switch_that_is_off_is_silent() -> None:
    with switch() as thread:
        fabric = FlexFabric(connect(serial(thread)))
        thread.call(lambda peer: peer.power_off())
        with pytest.raises(DeadlineExceeded, match="115200 baud"):
            fabric.live_map(soon(0.3))
        thread.call(lambda peer: peer.power_on())
        assert fabric.live_map(soon()) == LiveMap(2, BEFORE)
        fabric.close()


def test_a_stuck_port_is_named() -> None:
    with switch() as thread:
        fabric = FlexFabric(connect(tcp(thread)))
        install(thread, LineFaultRule(LineFault.STUCK_PORT, match=":TRIG", port=2))
        with pytest.raises(FabricError, match=r"ports \[1, 2, 18\] did not follow"):
            fabric.apply(CHANGE, soon())
        thread.call(lambda peer: peer.stick(2, stuck=False))
        fabric.apply(CHANGE, soon())
        assert fabric.live_map(soon()).pairs == AFTER
        fabric.close()


def test_nobody_there_is_said_at_once(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        for url in (f"tcp://127.0.0.1:{port}", f"socket://127.0.0.1:{port}", f"rfc2217://127.0.0.1:{port}"):
            with pytest.raises(NotConnected, match="no switch there") as caught:
                connect(url)
            assert url in str(caught.value)
    with pytest.raises(NotConnected, match="no switch there"):
        connect(str(tmp_path / "ttyUSB0"))


@pytest.mark.parametrize("url", ["tcp://host", "tcp://:5025", "tcp://host:port", "tcp://h:99999", "gopher://host:1"])
def test_an_address_that_is_none_is_bad_input(url: str) -> None:
    with pytest.raises(BadInput, match="tcp://"):
        connect(url)


def test_a_silent_box_is_a_deadline_exceeded() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with pytest.raises(DeadlineExceeded, match="did not answer in time"):
            connect(f"tcp://127.0.0.1:{port}", answer_within_s=0.02)


def test_a_switch_that_only_garbles_is_a_protocol_error(bench: tuple[SwitchThread, FlexFabricSession]) -> None:
    thread, session = bench
    install(thread, LineFaultRule(LineFault.GARBLED, count=None))
    with pytest.raises(ProtocolError, match="expected an answer, found"):
        FlexFabric(session).live_map(soon())


def test_another_baud_rate_is_noise_and_says_so() -> None:
    with switch() as thread, pytest.raises(ProtocolError, match="115200 baud, 8N1, at both ends"):
        connect(serial(thread, baud=9600))


def test_the_right_baud_rate_is_none() -> None:
    with switch() as thread:
        session = open_flexfabric(serial(thread, baud=9600), CLOCK, soon(), baud=9600)
        assert FlexFabric(session).port_count(soon()) == 160
        session.close()


def test_another_box_at_the_address_is_told_apart() -> None:
    with switch() as thread:

        async def disguise(peer: SwitchPeer) -> None:
            peer.core.identity = BoxIdentity("Acme", "PowerMeter", "1", "2")

        thread.call(disguise)
        with pytest.raises(ProtocolError, match="expected a FlexFabric switch, found Acme PowerMeter"):
            connect(tcp(thread))


def test_a_lower_token_is_locked_out_at_the_door() -> None:
    with switch() as thread:
        url = tcp(thread)
        connect(url, token=9).close()
        with pytest.raises(LockedOut, match="token 8 was refused: it is lower than 9") as caught:
            connect(url, token=8)
        assert caught.value.code == -203
        assert url in str(caught.value)


def test_a_refusal_names_endpoint_command_and_reason() -> None:
    with switch() as thread:
        url = tcp(thread)
        fabric = FlexFabric(connect(url))
        with pytest.raises(FabricError, match=r"port 161 is not in 1\.\.160") as caught:
            fabric.port_states([161], soon())
        assert caught.value.code == -222
        assert url in str(caught.value)
        assert "ROUT:STAT? (@161)" in str(caught.value)
        fabric.close()


@pytest.mark.parametrize("seconds", [-1.0, float("nan"), float("inf")])
def test_an_impossible_time_is_bad_input(seconds: float) -> None:
    with switch() as thread:
        session = connect(tcp(thread))
        with pytest.raises(BadInput, match="from 0 s to an hour"):
            FlexFabricPhy(session).drop([1], seconds, soon(), request_id=1)
        session.close()


def test_exchanges_are_kept_and_shown() -> None:
    shown: list[Exchange] = []
    with switch() as thread:
        session = open_flexfabric(tcp(thread), CLOCK, soon(), on_exchange=shown.append)
        for _ in range(HISTORY_LENGTH + 10):
            FlexFabric(session).generation(soon())
        session.close()
    assert len(session.history) == HISTORY_LENGTH
    assert session.history == shown[-HISTORY_LENGTH:]
    assert [exchange.t_ns for exchange in shown] == sorted(exchange.t_ns for exchange in shown)
    assert shown[-1].sent.endswith(":ROUT:GEN?\n")
    assert shown[-1].received.endswith(";1\n")


def test_threads_may_share_a_session(bench: tuple[SwitchThread, FlexFabricSession]) -> None:
    _, session = bench
    failures: list[Exception] = []

    def work(number: int) -> None:
        try:
            for _ in range(10):
                FlexFabric(session).apply(Partial(PortMap.of([(number, number + 50)])), soon())
        except Exception as error:  # noqa: BLE001 - handed to the test's own thread
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(20, 24)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert FlexFabric(session).generation(soon()) == 41


@pytest.mark.parametrize(
    ("old", "new"),
    [(b";(@1!18);", b";(@1!16);"), (str(CHANGE.pairs.crc32()).encode("ascii"), b"1")],
    ids=["pairs", "crc"],
)
def test_what_reads_back_otherwise_is_never_triggered(old: bytes, new: bytes) -> None:
    with switch() as thread, rewritten(tcp(thread), old, new) as url:
        fabric = FlexFabric(connect(url, answer_within_s=5))
        with pytest.raises(FabricError, match="nothing was triggered"):
            fabric.apply(CHANGE, soon())
        assert fabric.live_map(soon()) == LiveMap(1, BEFORE)
        fabric.close()


def test_a_box_that_never_stops_talking_cannot_outlast_the_deadline() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def babble() -> None:
            near, _ = server.accept()
            with near, suppress(OSError):
                while True:
                    near.sendall(b"\xff" * 4096)

        babbling = threading.Thread(target=babble)
        babbling.start()
        with pytest.raises(ProtocolError, match="expected an answer, found"):
            open_flexfabric(f"tcp://127.0.0.1:{server.getsockname()[1]}", CLOCK, soon(0.3))
        babbling.join()
