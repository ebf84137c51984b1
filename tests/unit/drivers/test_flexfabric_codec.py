"""The switch's dialect: what one end writes the other reads, in every spelling, and nothing else."""

from __future__ import annotations

import string
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rackloop.abilities import BoxIdentity, PortState
from rackloop.portmap import PortMap
from rackloop_drivers.fabric.flexfabric.dialect import codec
from rackloop_drivers.fabric.flexfabric.dialect import messages as m
from rackloop_drivers.fabric.flexfabric.dialect.answers import split_fields
from rackloop_drivers.fabric.flexfabric.dialect.parameters import BIGGEST_NUMBER, LONGEST_OUTAGE_MS, MOST_FLAPS
from rackloop_drivers.fabric.flexfabric.dialect.scpi_errors import QueuedError

PORTS = 160

port_lists = st.lists(st.integers(1, PORTS), unique=True).map(tuple)
port_maps = st.lists(st.integers(1, PORTS), unique=True).map(
    lambda ports: PortMap.of(zip(ports[::2], ports[1::2], strict=False))
)
numbers = st.integers(0, BIGGEST_NUMBER)
optional = st.none() | numbers
milliseconds = st.floats(0, LONGEST_OUTAGE_MS, allow_nan=False)
tokens = st.integers(1, BIGGEST_NUMBER)
masks = st.integers(0, 255)

FIELDS: dict[type[m.Request], dict[str, st.SearchStrategy[Any]]] = {
    m.SetEventEnable: {"mask": masks},
    m.SetServiceEnable: {"mask": masks},
    m.RequestLock: {"token": tokens},
    m.ReleaseLock: {"token": tokens},
    m.LoadPartial: {"pairs": port_maps},
    m.LoadFull: {"pairs": port_maps},
    m.Trigger: {"generation": optional},
    m.LivePairs: {"ports": st.none() | port_lists},
    m.States: {"ports": port_lists},
    m.OpenPorts: {"ports": port_lists, "generation": optional},
    m.OpenAll: {"generation": optional},
    m.DropPhy: {"ports": port_lists, "down_ms": milliseconds, "request_id": optional},
    m.FlapPhy: {
        "ports": port_lists,
        "down_ms": milliseconds,
        "up_ms": milliseconds,
        "count": st.integers(1, MOST_FLAPS),
        "request_id": optional,
    },
    m.DropCounts: {"ports": port_lists},
}
EVERY_KIND = tuple(entry.request for entry in codec._TABLE)
requests = st.sampled_from(EVERY_KIND).flatmap(lambda kind: st.builds(kind, **FIELDS.get(kind, {})))

error_texts = st.text(string.ascii_letters + string.digits + " ;,!?", max_size=60)
ANSWERS: dict[type[m.Request], st.SearchStrategy[Any]] = {
    m.Identify: st.builds(BoxIdentity, *[st.text(string.ascii_letters + string.digits + "-.", min_size=1)] * 4),
    m.NextError: st.builds(QueuedError, st.integers(-400, 0), error_texts),
    m.Version: st.just("1999.0"),
    m.StagedMap: port_maps,
    m.LivePairs: port_maps,
    m.BootMap: port_maps,
    m.States: st.lists(st.sampled_from(PortState)).map(tuple),
    m.DropCounts: st.lists(numbers).map(tuple),
}
QUERIES = tuple(kind for kind in EVERY_KIND if issubclass(kind, m.Query))


def understood(line: bytes) -> list[m.Request]:
    units = codec.parse_line(line, PORTS)
    assert all(unit.refusal is None for unit in units), units
    return [unit.request for unit in units if unit.request is not None]


def refusal(line: str) -> int:
    (unit,) = codec.parse_line(line.encode("ascii"), PORTS)
    assert unit.refusal is not None, line
    return unit.refusal.number


@given(st.lists(requests, max_size=6))
def test_the_switch_reads_every_line_the_controller_writes(sent: list[m.Request]) -> None:
    assert understood(codec.format_line(tuple(sent)).text.removesuffix(b"\n")) == sent


@given(st.sampled_from(QUERIES).flatmap(lambda kind: st.tuples(st.just(kind), ANSWERS.get(kind, numbers))))
def test_the_controller_reads_every_answer_the_switch_writes(exchange: tuple[type[m.Query[Any]], Any]) -> None:
    kind, value = exchange
    query = kind((1,)) if kind in {m.States, m.DropCounts} else kind()
    assert codec.parse_answer(query, codec.format_answer(query, value)) == value


@pytest.mark.parametrize(("query", "one"), [(m.States((1, 2)), "UP"), (m.DropCounts((1, 2)), "7")])
def test_an_answer_that_has_not_a_value_for_each_port_is_none(query: m.Query[Any], one: str) -> None:
    (read,) = codec.format_line((query,)).readers
    assert len(read(f"{one},{one}")) == 2
    for text in ("", one, f"{one},{one},{one}"):
        with pytest.raises(ValueError, match="values, for 2 ports"):
            read(text)


@given(st.sampled_from(QUERIES), st.text(max_size=40))
def test_no_answer_does_more_than_be_no_answer(kind: type[m.Query[Any]], text: str) -> None:
    query = kind((1,)) if kind in {m.States, m.DropCounts} else kind()
    try:
        value = codec.parse_answer(query, text)
    except ValueError:
        return
    assert codec.parse_answer(query, codec.format_answer(query, value)) == value


@given(st.binary(max_size=400))
def test_any_line_is_understood_or_refused(line: bytes) -> None:
    for unit in codec.parse_line(line, PORTS):
        assert (unit.request is None) != (unit.refusal is None)


@given(st.text(string.printable.replace(";", ""), max_size=60), st.sampled_from(codec._TABLE))
def test_any_parameters_are_understood_or_refused(text: str, entry: Any) -> None:
    header = min(codec._spellings(entry.pattern), key=len)
    for unit in codec.parse_line(f"{header} {text}".encode("ascii"), PORTS):
        assert (unit.request is None) != (unit.refusal is None)


def test_every_request_has_one_entry_in_the_table() -> None:
    kinds = [entry.request for entry in codec._TABLE]
    assert len(set(kinds)) == len(kinds)
    defined = {kind for kind in vars(m).values() if isinstance(kind, type) and issubclass(kind, m.Request)}
    assert defined - {m.Request, m.Query, m.Acting} == set(kinds)


def test_no_header_means_two_things() -> None:
    spellings = [spelling for entry in codec._TABLE for spelling in codec._spellings(entry.pattern)]
    assert len(set(spellings)) == len(spellings)
    paths = {spelling[: spelling.rfind(":") + 1] for spelling in spellings} - {""}
    beside_and_from_the_root = {
        spelling
        for path in paths
        for spelling in spellings
        if path + spelling in spellings and not spelling.startswith("*")
    }
    assert not beside_and_from_the_root


@pytest.mark.parametrize(
    "text",
    [
        "ROUTe:GENeration?",
        "rout:gen?",
        ":ROUT:GENERATION?",
        "  route:gen?  ",
        "Route:Gen?\r",
    ],
)
def test_long_and_short_forms_in_any_case_mean_the_same(text: str) -> None:
    assert understood(text.encode("ascii")) == [m.Generation()]


@pytest.mark.parametrize("text", ["ROU:GEN?", "ROUTE:GENE?", "ROUT:GEN", "*IDN", "SYST:ERR", "GEN?", "::ROUT:GEN?"])
def test_what_is_neither_long_nor_short_is_not_understood(text: str) -> None:
    (unit,) = codec.parse_line(text.encode("ascii"), PORTS)
    assert unit.refusal is not None
    assert unit.refusal.number in {-113, -100}


@pytest.mark.parametrize("text", ["SYST:ERR?", "SYST:ERR:NEXT?", "system:error:next?"])
def test_an_optional_node_may_be_left_out(text: str) -> None:
    assert understood(text.encode("ascii")) == [m.NextError()]
    assert understood(b"TRIG 5;TRIG:ROUT 5") == [m.Trigger(5), m.Trigger(5)]


def test_a_header_after_a_semicolon_is_looked_up_beside_the_one_before() -> None:
    line = b"ROUT:LOAD (@1!2);LOAD?;LOAD:CRC?;CLE;*OPC?;CRC?;:SYST:ERR?;LOCK?;ROUT:GEN?;MAP?"
    assert understood(line) == [
        m.LoadPartial(PortMap.of([(1, 2)])),
        m.StagedMap(),
        m.StagedCrc(),
        m.ClearStaged(),
        m.AwaitCompletion(),
        m.StagedCrc(),
        m.NextError(),
        m.LockHolder(),
        m.Generation(),
        m.LivePairs(),
    ]


def test_a_request_that_was_read_in_another_line_is_not_read_again() -> None:
    first, second = (codec.parse_line(b"*ESE %d;:ROUT:LOAD (@1!101);:TRIG %d" % (tag, tag), 160) for tag in (8, 9))
    assert first[1] is second[1]
    assert [unit.request for unit in second] == [
        m.SetEventEnable(9),
        m.LoadPartial(PortMap.of([(1, 101)])),
        m.Trigger(9),
    ]


def test_empty_commands_are_no_commands() -> None:
    assert understood(b" ; ;*CLS;; ") == [m.ClearStatus()]
    assert not codec.parse_line(b"", PORTS)


def test_channel_lists_may_hold_ranges_either_way_and_spaces() -> None:
    assert understood(b"ROUT:STAT? ( @ 1, 2 ,5:9,12:10 )") == [m.States((1, 2, 5, 6, 7, 8, 9, 12, 11, 10))]
    assert understood(b"ROUT:LOAD (@ 2 ! 18 , 1!17)") == [m.LoadPartial(PortMap.of([(1, 17), (2, 18)]))]


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("ROUT:LOAD", -109),
        ("ROUT:OPEN (@1),", -109),
        ("PHY:DROP (@1)", -109),
        ("PHY:FLAP (@1),1,1", -109),
        ("SYST:LOCK:REQ", -109),
        ("*ESE", -109),
        ("*RST 1", -108),
        ("ROUT:GEN? 1", -108),
        ("TRIG 1,2", -108),
        ("ROUT:NONE?", -113),
        ("NONSENSE", -113),
        ("ROUT:LOAD 1!2", -100),
        ("ROUT:LOAD (@1!2", -100),
        ("ROUT:LOAD (@(1!2))", -100),
        ("ROUT:LOAD (@1)", -100),
        ("ROUT:LOAD (@1!2!3)", -100),
        ("ROUT:LOAD (@1!2,)", -100),
        ("ROUT:OPEN (@1!2)", -100),
        ("ROUT:OPEN ))((", -100),
        ("TRIG x", -100),
        ("TRIG 1.5", -100),
        ("TRIG 0x10", -100),
        ("PHY:DROP (@1),nan", -100),
        ("PHY:DROP (@1),inf", -100),
        ("ROUT LOAD", -113),
        ("12:34", -100),
        ("\x00*IDN?", -100),
        ("ROUT:LOAD (@1!161)", -222),
        ("ROUT:LOAD (@0!1)", -222),
        ("ROUT:LOAD (@-1!1)", -222),
        ("ROUT:OPEN (@1:161)", -222),
        ("ROUT:OPEN (@1:99999999999999999999999999)", -222),
        ("TRIG -1", -222),
        ("TRIG 9223372036854775808", -222),
        ("TRIG " + "9" * 10_000, -222),
        ("PHY:DROP (@1),-1", -222),
        ("PHY:DROP (@1),3600001", -222),
        ("PHY:DROP (@1),1e999", -222),
        ("PHY:FLAP (@1),1,1,0", -222),
        ("PHY:FLAP (@1),1,1,1000001", -222),
        ("SYST:LOCK:REQ 0", -222),
        ("*ESE 256", -222),
        ("ROUT:LOAD (@1!2,2!3)", -224),
        ("ROUT:LOAD (@1!1)", -224),
        ("ROUT:OPEN (@1,2,1)", -224),
        ("ROUT:STAT? (@1:5,3)", -224),
        ("ROUT:STAT? (@" + ",".join(["1:160"] * 5000) + ")", -224),
    ],
)
def test_what_is_wrong_has_its_standard_number(text: str, number: int) -> None:
    assert refusal(text) == number


def test_leading_zeros_and_a_plus_are_numbers() -> None:
    assert understood(b"TRIG +" + b"0" * 30 + b"7") == [m.Trigger(7)]


def test_bytes_that_are_not_ascii_are_one_refusal() -> None:
    (unit,) = codec.parse_line(b"*IDN?;\xff\xfe", PORTS)
    assert unit.refusal is not None
    assert unit.refusal.number == -100


def test_fields_are_parted_outside_quotes_only() -> None:
    assert split_fields('7;-222,"Data out of range;port 161";(@1!2)') == [
        "7",
        '-222,"Data out of range;port 161"',
        "(@1!2)",
    ]
    assert split_fields("7;;5") == ["7", "", "5"]


def test_a_request_is_written_in_its_shortest_form() -> None:
    assert codec.format_request(m.Generation()) == ":ROUT:GEN?"
    assert codec.format_request(m.Trigger()) == ":TRIG"
    assert codec.format_request(m.DropPhy((1, 2, 3, 7), 1.5, 9)) == ":PHY:DROP (@1:3,7),1.5,9"
    assert codec.format_request(m.DropPhy((1,), 2.0)) == ":PHY:DROP (@1),2"
