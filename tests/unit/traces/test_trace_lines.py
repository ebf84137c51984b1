"""Every line of a trace is a request, a part of its format, or counted as malformed with its number."""

from __future__ import annotations

from pathlib import Path

import polars
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rackloop.errors import BadInput
from rackloop_traces import FORMATS, Trace, columns, open_trace
from rackloop_traces._order import REORDERED_REQUESTS
from rackloop_traces._source import BLOCK_BYTES

GOOD = {
    "alibaba": "3,R,126703644672,4096,1577808000000046",
    "cloudphysics": "1,100.5,28,4096,247468056",
    "cloudphysics-us": "1,5633898000046,88,4096,247468056",
    "iolog2": "sda read 126703644672 4096",
    "iolog3": "46 sda read 126703644672 4096",
    "msr": "128166372003061629,usr,1,Read,126703644672,4096,41286",
    "spc": "0,247468056,4096,r,0.026214",
    "systor17": "1456156800.000000001,0.000123,R,4,126703644672,4096",
    "tencent": "1538323200,247468056,8,0,1063",
    "blktrace": "8:16 1.000000046 RA 247468056 4096",
}
SPC = GOOD["spc"]


def write(folder: Path, lines: list[str]) -> Path:
    path = folder / "trace"
    path.write_bytes("".join(f"{line}\n" for line in lines).encode("utf-8", "surrogateescape"))
    return path


def pass_over(trace: Trace) -> int:
    """The number of requests that one pass gives."""
    return sum(frame.height for frame in trace.batches())


@pytest.mark.parametrize(
    ("name", "line", "reason"),
    [
        ("spc", "0,247468056,4096,r", "5 fields expected, 4 found"),
        ("alibaba", f"{GOOD['alibaba']},9", "5 fields expected, 6 found"),
        ("spc", "0,lba,4096,r,0.5", "LBA 'lba' is not a whole number"),
        ("spc", "0,-8,4096,r,0.5", "LBA is negative"),
        ("spc", "0,-0,4096,r,0.5", "LBA is negative"),
        ("spc", "-0,8,4096,r,0.5", "ASU is negative"),
        ("spc", "0,8,4096,r,-0.5", "Timestamp is negative"),
        ("spc", "0,8,4096,x,0.5", "unknown Opcode 'x'; known: R, W, r, w"),
        ("spc", "0,8,0,r,0.5", "the size is 0"),
        ("spc", "0,8,-512,r,0.5", "Size is negative"),
        ("spc", "0,8,,r,0.5", "Size is missing"),
        ("spc", "0,99999999999999999,512,r,0.5", "LBA 99999999999999999 is not a whole number of a size that can be"),
        ("spc", "0,8,512,r,1e3", "Timestamp '1e3' is not a number of seconds"),
        ("spc", "0,8,+512,r,0.5", "Size '+512' is not a whole number"),
        ("spc", "0, 8,512,r,0.5", "LBA ' 8' is not a whole number"),
        ("spc", "", "the line is empty"),
        ("spc", GOOD["msr"], "this is a line of MSR Cambridge"),
        ("spc", "0,٣,512,r,0.5", "LBA '٣' is not a whole number"),
        ("spc", "0,8,512,r,\udcff", "Timestamp '\ufffd' is not a number of seconds"),
        ("cloudphysics", "1,100.5,7f,512,8", "unknown op '7f'; known: "),
        ("cloudphysics", "1,100.5,28,0,8", "the size is 0"),
        ("msr", "1,usr,1,Read,8,512,1", "centuries from the first time"),
        ("iolog3", "46 sda read 0", "5 fields expected, 4 found"),
        ("iolog3", "46 sda discard 0 512", "unknown action 'discard'"),
    ],
)
def test_a_malformed_line_is_told_by_number_and_reason(name: str, line: str, reason: str, tmp_path: Path) -> None:
    trace = open_trace(write(tmp_path, [GOOD[name], line, GOOD[name]]), name)
    assert pass_over(trace) == 2
    assert (trace.malformed.count, trace.malformed.total_lines) == (1, 3)
    (told,) = trace.malformed.first
    assert told.number == 2
    assert told.reason.startswith(reason)


def test_a_synchronized_cache_has_no_size(tmp_path: Path) -> None:
    assert pass_over(open_trace(write(tmp_path, [GOOD["cloudphysics"], "1,100.5,35,0,0"]))) == 2


def test_malformed_lines_of_both_kinds_are_told_in_their_order(tmp_path: Path) -> None:
    lines = [SPC, "0,8,0,r,0.5", "x", SPC, "0,8,0,r,0.5", "y"] * 10
    trace = open_trace(write(tmp_path, lines))
    assert pass_over(trace) == 20
    assert trace.malformed.count == 40
    assert [line.number for line in trace.malformed.first] == [
        number for number, line in enumerate(lines, 1) if line != SPC
    ][:20]


def test_numbers_count_on_over_blocks(tmp_path: Path) -> None:
    lines = [SPC] * (BLOCK_BYTES // len(SPC) * 2)
    wrong = [5, len(lines) // 2, len(lines) - 1]
    for number in wrong:
        lines[number - 1] = "wrong"
    trace = open_trace(write(tmp_path, lines))
    assert pass_over(trace) == len(lines) - 3
    assert [line.number for line in trace.malformed.first] == wrong


def test_too_many_malformed_lines_end_it(tmp_path: Path) -> None:
    path = write(tmp_path, [SPC] * 10 + ["x"] * 3)
    assert pass_over(open_trace(path, max_malformed=3)) == 10
    trace = open_trace(path, max_malformed=2)
    with pytest.raises(BadInput, match=r"has 3 malformed lines .*more than the 2 allowed: line 11: ") as refused:
        pass_over(trace)
    assert "line 13" in str(refused.value)


def test_a_line_without_end_is_no_trace(tmp_path: Path) -> None:
    path = tmp_path / "trace"
    path.write_text(f"{SPC}\n" * 2000 + "x" * (BLOCK_BYTES + (2 << 20)))
    with pytest.raises(BadInput, match="a line of more than 1 MiB"):
        pass_over(open_trace(path))


def test_a_second_pass_counts_anew(tmp_path: Path) -> None:
    trace = open_trace(write(tmp_path, [SPC, "x", SPC]))
    for _ in range(2):
        assert pass_over(trace) == 2
        assert (trace.malformed.count, trace.requests, trace.volumes) == (1, 2, {"0": 2})


def test_one_volume_is_picked_by_name(tmp_path: Path) -> None:
    path = write(tmp_path, ["1,8,512,r,0.5", "2,8,512,r,1.5", "1,8,512,w,2.5"])
    trace = open_trace(path, volume="2")
    (frame,) = trace.batches()
    assert frame["t_ns"].to_list() == [10**9]  # from the first request of all volumes
    assert trace.volumes == {"1": 2, "2": 1}
    with pytest.raises(BadInput, match="no request of volume '11': did you mean '1'"):
        pass_over(open_trace(path, volume="11"))


def stamped(stamps: list[int]) -> list[str]:
    return [f"0,8,512,r,{stamp}" for stamp in stamps]


def test_requests_out_of_order_are_counted_and_put_in_order(tmp_path: Path) -> None:
    trace = open_trace(write(tmp_path, stamped([5, 7, 4, 6, 7, 9])))
    assert polars.concat(list(trace.batches()))["t_ns"].to_list() == [second * 10**9 for second in (0, 2, -1, 1, 2, 4)]
    assert trace.out_of_order == 2
    ordered = polars.concat(list(trace.batches(in_order=True)))
    assert ordered["t_ns"].to_list() == [second * 10**9 for second in (-1, 0, 1, 2, 2, 4)]
    assert ordered.columns == list(columns())


def test_a_request_too_far_from_its_place_is_named(tmp_path: Path) -> None:
    far = [*range(1, 4 * REORDERED_REQUESTS), 0, 4 * REORDERED_REQUESTS]
    trace = open_trace(write(tmp_path, stamped(far)))
    with pytest.raises(BadInput, match=f"line {4 * REORDERED_REQUESTS} is earlier"):
        list(trace.batches(in_order=True))
    near = [*range(1, REORDERED_REQUESTS), 0]
    trace = open_trace(write(tmp_path, stamped(near)))
    assert polars.concat(list(trace.batches(in_order=True)))["t_ns"].is_sorted()


PIECE = st.sampled_from(
    [
        *("0", "7", "-1", "+5", " 5", "1.", ".5", "1.5", "1e3", "R", "read", "add", " ", ",", ".", "\t", "é", "٣"),
        "9" * 20,
        "1" * 18,
    ]
)
GARBAGE = st.one_of(
    st.text(st.characters(codec="utf-8", exclude_characters="\0\n\r"), max_size=60),
    st.lists(PIECE, max_size=12).map("".join),
    st.lists(PIECE, min_size=4, max_size=7).map(",".join),
    st.lists(PIECE, min_size=4, max_size=5).map(" ".join),
)


def nearly(name: str) -> st.SearchStrategy[str]:
    """A good line with one field exchanged, or no line at all."""
    separator = FORMATS[name].separator
    fields = GOOD[name].split(separator)
    exchanged = st.tuples(st.integers(0, len(fields) - 1), PIECE).map(
        lambda change: separator.join(change[1] if nth == change[0] else text for nth, text in enumerate(fields))
    )
    return exchanged | GARBAGE


@pytest.mark.parametrize("name", FORMATS)
@settings(max_examples=60)
@given(data=st.data())
def test_every_line_is_a_request_or_counted(
    name: str, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    odd = data.draw(st.lists(nearly(name), min_size=1, max_size=20))
    lines = data.draw(st.permutations([*odd, *[GOOD[name]] * 3]))
    trace = open_trace(write(tmp_path_factory.mktemp("trace"), [GOOD[name], *lines]), name)
    requests = pass_over(trace)
    malformed = trace.malformed
    assert requests >= 4
    assert requests + malformed.count + malformed.directives == malformed.total_lines == len(lines) + 1


@pytest.mark.parametrize("name", FORMATS)
@settings(max_examples=60)
@given(data=st.data())
def test_what_a_line_is_does_not_depend_on_its_neighbours(
    name: str, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    line = data.draw(nearly(name))
    found = []
    for neighbours in ([GOOD[name]], [GOOD[name], "certainly not a request"]):
        trace = open_trace(write(tmp_path_factory.mktemp("trace"), [*neighbours, line]), name)
        found.append(pass_over(trace))
    assert found[0] == found[1]
