"""What the switch does with a line: sessions, staging, the lock, ids, and whatever bytes a client may send."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rackloop.abilities import LiveMap
from rackloop.clock import VirtualClock
from rackloop.errors import NotConnected
from rackloop.portmap import PortMap
from rackloop_drivers.fabric.flexfabric import MemoryMatrix
from rackloop_drivers.fabric.flexfabric.peer.control_lock import ControlLock
from rackloop_drivers.fabric.flexfabric.peer.engine import REMEMBERED_IDS, SwitchCore, SwitchSession
from rackloop_drivers.fabric.flexfabric.peer.line_reader import LONGEST_LINE, LineReader
from tests.unit.drivers.switch_wire import Wire

IDENTITY = "Rackloop,FlexFabric-160,FF000001,1.0"


class Bench:
    """A switch in memory, asked line by line."""

    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.kept: list[int] = []
        self.matrix = MemoryMatrix(self.clock)
        self.core = SwitchCore(self.matrix, ControlLock(), keep_token=self.kept.append)
        self.first = SwitchSession(self.core)

    def session(self) -> SwitchSession:
        return SwitchSession(self.core)

    def ask(self, line: str, session: SwitchSession | None = None) -> str:
        coroutine = (session or self.first).execute(line.encode("ascii"))
        with pytest.raises(StopIteration) as done:
            coroutine.send(None)
        answer: bytes = done.value.value
        assert answer == b"" or answer.endswith(b"\n")
        return answer.decode("ascii").rstrip("\n")

    def error(self, session: SwitchSession | None = None) -> int:
        return int(self.ask("SYST:ERR?", session).split(",")[0])


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_common_commands_answer_as_ieee_488_2_says(bench: Bench) -> None:
    assert bench.ask("*IDN?") == IDENTITY
    assert bench.ask("*OPC?;*TST?;SYST:VERS?;PORT?") == "1;0;1999.0;160"
    assert bench.ask("*ESR?") == "0"
    assert bench.ask("*OPC;*WAI;*ESR?") == "1"
    assert bench.ask("*ESE 36;*SRE 255;*ESE?;*SRE?") == "36;191"
    assert bench.ask("NONSENSE;*ESR?;*STB?") == "32;84"
    assert bench.ask("SYST:ERR:COUN?;:SYST:ERR?;ERR?") == '1;-113,"Undefined header;NONSENSE";0,"No error"'
    assert bench.ask("NONSENSE;*CLS;*STB?") == "100"
    assert bench.ask("*CLS;*STB?;*ESR?;*ESE?") == "0;0;36"


def test_a_map_is_staged_read_back_and_triggered(bench: Bench) -> None:
    staged = PortMap.of([(1, 17), (2, 18)])
    assert bench.ask("ROUT:LOAD (@18!2,1!17);LOAD?;LOAD:CRC?") == f"(@1!17,2!18);{staged.crc32()}"
    assert bench.ask("ROUT:MAP?;GEN?") == "(@);1"
    assert bench.ask("TRIG 1;:ROUT:MAP?;GEN?;LOAD?") == "(@1!17,2!18);2;(@)"
    assert bench.ask("ROUT:LOAD (@17!3);:TRIG;:ROUT:MAP?;MAP? (@3);MAP? (@1)") == "(@2!18,3!17);(@3!17);(@)"
    assert bench.ask("ROUT:LOAD:FULL (@);:TRIG;:ROUT:MAP?;GEN?") == "(@);4"
    assert bench.error() == 0


def test_crc_is_the_ieee_802_3_one_of_the_canonical_list(bench: Bench) -> None:
    assert bench.ask("ROUT:LOAD:CRC?") == "0"
    assert bench.ask("ROUT:LOAD (@2!1);LOAD:CRC?") == "2661290710"


def test_a_stale_trigger_changes_nothing_and_keeps_what_is_staged(bench: Bench) -> None:
    bench.ask("ROUT:LOAD (@1!17);:TRIG 7")
    assert bench.error() == -221
    assert bench.ask("ROUT:GEN?;LOAD?;MAP?") == "1;(@1!17);(@)"
    bench.ask("TRIG 1")
    assert bench.ask("ROUT:GEN?;MAP?") == "2;(@1!17)"


def test_a_trigger_with_nothing_staged_is_ignored(bench: Bench) -> None:
    bench.ask("ROUT:LOAD (@1!17);LOAD:CLE;:TRIG")
    assert bench.error() == -211
    bench.ask("TRIG 9")
    assert bench.error() == -221
    assert bench.ask("ROUT:GEN?") == "1"


def test_a_refused_load_stops_its_trigger_and_keeps_the_queries(bench: Bench) -> None:
    bench.ask("ROUT:LOAD (@1!17)")
    assert bench.ask("ROUT:LOAD (@2!18,2!19);:TRIG;:ROUT:GEN?;LOAD?") == "1;(@1!17)"
    assert bench.error() == -224
    assert bench.error() == 0


def test_ports_are_opened_some_or_all_or_only_at_a_generation(bench: Bench) -> None:
    bench.ask("ROUT:LOAD (@1!17,2!18,3!19);:TRIG")
    assert bench.ask("ROUT:OPEN (@17),2;MAP?;GEN?") == "(@2!18,3!19);3"
    bench.ask("ROUT:OPEN (@2),2;OPEN:ALL 2")
    assert bench.error() == -221
    assert bench.ask("ROUT:OPEN:ALL 3;:ROUT:MAP?;GEN?") == "(@);4"
    assert bench.ask("ROUT:LOAD (@1!2);:TRIG;*RST;:ROUT:MAP?;GEN?") == "(@);6"


def test_staging_and_errors_belong_to_a_connection(bench: Bench) -> None:
    other = bench.session()
    bench.ask("ROUT:LOAD (@1!17);NONSENSE")
    assert bench.ask("ROUT:LOAD?;:SYST:ERR:COUN?", other) == "(@);0"
    assert bench.ask("ROUT:LOAD?;:SYST:ERR:COUN?") == "(@1!17);1"


@pytest.mark.parametrize(
    "command",
    ["*RST", "TRIG", "ROUT:OPEN (@1)", "ROUT:OPEN:ALL", "PHY:DROP (@1),1", "PHY:FLAP (@1),1,1,1", "CONF:SAVE"],
)
def test_every_changing_command_is_protected(bench: Bench, command: str) -> None:
    stranger = bench.session()
    bench.ask("ROUT:LOAD (@1!17);:TRIG;:SYST:LOCK:REQ 5")
    before = bench.ask("ROUT:GEN?;MAP?;:CONF:BOOT?;:PHY:COUN? (@1)")
    bench.ask(f"ROUT:LOAD (@3!4);:{command}".replace(":*", "*"), stranger)
    assert bench.error(stranger) == -203
    assert bench.ask("ROUT:GEN?;MAP?;:CONF:BOOT?;:PHY:COUN? (@1)") == before
    bench.ask(f"ROUT:LOAD (@3!4);:{command}".replace(":*", "*"))
    assert bench.error() == 0


def test_the_lock_goes_by_token_and_outlives_its_connection(bench: Bench) -> None:
    other = bench.session()
    bench.ask("SYST:LOCK:REQ 5")
    assert bench.ask("SYST:LOCK?", other) == "5"
    bench.ask("SYST:LOCK:REQ 4", other)
    assert bench.error(other) == -203
    bench.ask("SYST:LOCK:REQ 5", other)
    bench.ask("*RST", other)
    assert bench.error(other) == 0
    bench.ask("SYST:LOCK:REQ 6", other)
    bench.ask("*RST")
    assert bench.error() == -203
    bench.ask("SYST:LOCK:REL 5")
    assert bench.error() == -203
    bench.ask("SYST:LOCK:REL 6", other)
    assert bench.ask("SYST:LOCK?") == "0"
    bench.ask("*RST")
    assert bench.error() == 0
    assert bench.kept == [5, 6]


def test_a_repeated_id_does_nothing_until_it_is_forgotten(bench: Bench) -> None:
    bench.ask("ROUT:LOAD (@1!17);:TRIG")
    bench.ask("PHY:DROP (@1),1,7;DROP (@1),1,7;FLAP (@1),1,1,9,7")
    assert bench.ask("PHY:COUN? (@1,17,2)") == "1,1,0"
    bench.ask("PHY:DROP (@1),1;DROP (@1),1")
    assert bench.ask("PHY:COUN? (@1)") == "3"
    for request_id in range(100, 100 + REMEMBERED_IDS - 1):
        bench.ask(f"PHY:DROP (@2),1,{request_id}")
    bench.ask("PHY:DROP (@1),1,7")
    assert bench.ask("PHY:COUN? (@1)") == "3"
    bench.ask("PHY:DROP (@2),1,999")
    bench.ask("PHY:DROP (@1),1,7")
    assert bench.ask("PHY:COUN? (@1)") == "4"


def test_states_follow_a_drop_and_its_training(bench: Bench) -> None:
    bench.ask("ROUT:LOAD (@1!17);:TRIG")
    assert bench.ask("ROUT:STAT? (@1,17,2)") == "TRAIN,TRAIN,DOWN"
    bench.clock.advance(0.001)
    assert bench.ask("ROUT:STAT? (@1,17,2)") == "UP,UP,DOWN"
    bench.ask("PHY:FLAP (@17),10,20,2")
    seen = []
    for _ in range(7):
        seen.append(bench.ask("ROUT:STAT? (@1);:PHY:COUN? (@1)"))
        bench.clock.advance(0.0101)
    assert seen == ["DOWN;1", "TRAIN;1", "UP;1", "DOWN;2", "TRAIN;2", "UP;2", "UP;2"]


def test_the_boot_map_is_the_live_map_when_it_was_saved(bench: Bench) -> None:
    assert bench.ask("ROUT:LOAD (@1!17);:TRIG;:CONF:SAVE;BOOT?;:ROUT:OPEN:ALL;:CONF:BOOT?") == "(@1!17);(@1!17)"


def test_a_matrix_that_fails_is_a_hardware_error(bench: Bench) -> None:
    class Gone(MemoryMatrix):
        async def get_map(self) -> LiveMap:
            raise NotConnected("the matrix is gone")

    bench.core.matrix = Gone(bench.clock)
    assert bench.ask("ROUT:GEN?;:SYST:ERR?") == '-240,"Hardware error;the matrix is gone"'
    assert bench.ask("*IDN?") == IDENTITY


def test_queries_between_two_commands_of_a_line_are_about_one_moment(bench: Bench) -> None:
    class Counted(MemoryMatrix):
        looks = 0

        async def get_map(self) -> LiveMap:
            self.looks += 1
            return await super().get_map()

    bench.core.matrix = matrix = Counted(bench.clock)
    assert bench.ask("ROUT:GEN?;:ROUT:MAP?;:ROUT:GEN?") == "1;(@);1"
    assert matrix.looks == 1
    assert bench.ask("ROUT:GEN?;:ROUT:LOAD (@1!17);:TRIG;:ROUT:GEN?;:ROUT:MAP?") == "1;2;(@1!17)"
    # A change itself tells what came of it.
    assert matrix.looks == 2
    assert bench.ask("ROUT:GEN?;:ROUT:OPEN (@1);:ROUT:GEN?;:ROUT:MAP?") == "2;3;(@)"
    assert matrix.looks == 3


def test_the_session_in_the_reference_is_true(bench: Bench) -> None:
    page = Path(__file__).parents[3] / "docs" / "reference" / "switch-protocol.md"
    lines = [line for line in page.read_text("utf-8").splitlines() if line.startswith(("> ", "< "))]
    assert lines
    for sent, answered in zip(lines[::2], lines[1::2], strict=True):
        assert (sent[0], answered[0]) == (">", "<")
        assert bench.ask(sent[2:]) == answered[2:]


@pytest.fixture(scope="module")
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    loop = asyncio.new_event_loop()
    yield loop
    loop.close()


HOSTILE = st.one_of(
    st.binary(max_size=200),
    st.sampled_from(
        [
            b"ROUT:LOAD (@" + b"(" * 5000,
            b"ROUT:LOAD (@1!2" + b")" * 5000,
            b"ROUT:OPEN (@1:" + b"9" * 60_000 + b")\n",
            b"TRIG " + b"9" * 5000 + b"\n",
            b"TRIG 1e999999999\n",
            b"\x00" * 500 + b"\n",
            b"*IDN?\x00\n",
            b";" * 5000 + b"\n",
            b":" * 5000 + b"\n",
            b"x" * (LONGEST_LINE + 1),
            b"\r\n\r\n\n\r",
            b'"' * 300 + b"\n",
            b"*RST;*CLS;ROUT:OPEN:ALL;:PHY:FLAP (@1:160),3600000,3600000,1000000\n",
        ]
    ),
)


@given(st.lists(HOSTILE, max_size=8))
def test_whatever_comes_the_switch_still_says_who_it_is(loop: asyncio.AbstractEventLoop, pieces: list[bytes]) -> None:
    wire = Wire(loop)
    for piece in pieces:
        wire.connection.feed(piece)
    assert wire.ask(b"\n*IDN?\n").endswith(IDENTITY.encode("ascii") + b"\n")


@given(st.lists(st.integers(1, 7), min_size=1, max_size=20))
def test_a_line_may_come_in_pieces(loop: asyncio.AbstractEventLoop, sizes: list[int]) -> None:
    line = b"rout:load (@1!17);load?\r\n"
    wire = Wire(loop)
    for size in sizes:
        wire.connection.feed(line[:size])
        line = line[size:]
    wire.connection.feed(line)
    assert wire.heard == b"(@1!17)\n"


def test_a_line_over_64_kib_is_an_overrun_and_the_next_one_works(loop: asyncio.AbstractEventLoop) -> None:
    wire = Wire(loop)
    for _ in range(65):
        wire.connection.feed(b"*IDN?;" * 170 + b"*CLS")
    assert wire.ask(b"*IDN?\nSYST:ERR?;ERR:COUN?\n") == b'-363,"Input buffer overrun";0\n'
    longest = b"*IDN?".ljust(LONGEST_LINE)
    assert wire.ask(longest + b"\n") == IDENTITY.encode("ascii") + b"\n"
    assert wire.ask(longest + b" \nSYST:ERR?\n").startswith(b"-363")


@given(st.binary(max_size=300), st.data())
def test_lines_do_not_depend_on_how_bytes_arrive(data: bytes, draw: st.DataObject) -> None:
    whole = LineReader().feed(data)
    reader = LineReader()
    cut = draw.draw(st.integers(0, len(data)))
    assert reader.feed(data[:cut]) + reader.feed(data[cut:]) == whole


def test_several_lines_at_once_are_answered_in_order(loop: asyncio.AbstractEventLoop) -> None:
    assert Wire(loop).ask(b"ROUT:GEN?\n\nSYST:PORT?\r\n*OPC?\n") == b"1\n160\n1\n"
