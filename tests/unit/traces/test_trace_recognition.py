"""The format of a trace is told from its lines, and what speaks against it is said."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import pytest
import zstandard

from rackloop.errors import BadInput
from rackloop_traces import FORMATS, Clock, open_trace

REAL_TRACE = Path(__file__).parents[4] / "shared" / "data" / "cloudphysics_vm.csv.gz"
SPC = "0,247468056,4096,r,0.5\n"
MSR = "128166372003061629,usr,1,Read,126703644672,4096,41286\n"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "trace"


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (SPC, "spc"),
        (MSR, "msr"),
        ("fio version 2 iolog\na add\na open\na read 0 512\n", "iolog2"),
        ("fio version 3 iolog\n0 a add\n0 a open\n0 a read 0 512\n", "iolog3"),
        ("\ufeffVERSION, time,op,size,lbn\n1,0.5,28,512,1\n", "cloudphysics"),
        ("Timestamp,Response,IOType,LUN,Offset,Size\n1456156800.1,0.1,R,4,0,4096\n", "systor17"),
    ],
)
def test_a_format_is_recognised_whatever_the_file_is_called(path: Path, text: str, name: str) -> None:
    for encode in (lambda data: data, gzip.compress, zstandard.compress):
        path.write_bytes(encode(text.encode()))
        trace = open_trace(path)
        assert (trace.format.name, trace.doubts) == (name, ())


def test_lines_may_end_as_on_windows(path: Path) -> None:
    path.write_bytes(SPC.encode().replace(b"\n", b"\r\n") * 3)
    trace = open_trace(path)
    assert sum(frame.height for frame in trace.batches()) == 3
    assert trace.malformed.count == 0


def cloudphysics(times: list[str]) -> str:
    return "version,time,op,size,lbn\n" + "".join(f"1,{time},28,4096,8\n" for time in times)


@pytest.mark.skipif(not REAL_TRACE.exists(), reason=f"{REAL_TRACE.name} is not beside the checkout")
def test_two_hours_of_a_virtual_machine_are_read_as_such() -> None:
    trace = open_trace(REAL_TRACE)
    frames = list(trace.batches())
    assert (trace.format.name, trace.requests, trace.malformed.count, trace.out_of_order) == (
        "cloudphysics",
        113872,
        0,
        0,
    )
    assert frames[-1]["t_ns"][-1] == 2 * 3600 * 10**9
    assert [doubt for doubt in trace.doubts if "taken for whole seconds" in doubt] == list(trace.doubts)


@pytest.mark.parametrize(
    ("times", "name", "last_ns", "doubt"),
    [
        (["5633898", "5633898", "5633899"], "cloudphysics", 10**9, "taken for whole seconds"),
        (["5633898", "5633998", "5634898"], "cloudphysics-us", 10**6, "taken for microseconds"),
        (["5633898.5", "5633898.75"], "cloudphysics", 250_000_000, None),
        (["5633898000046", "5633898000047"], "cloudphysics-us", 1000, None),
        (["7", "7"], "cloudphysics", 0, "no unit"),
    ],
)
def test_the_unit_of_cloudphysics_is_told_by_the_rate(
    path: Path, times: list[str], name: str, last_ns: int, doubt: str | None
) -> None:
    path.write_text(cloudphysics(times))
    trace = open_trace(path)
    assert trace.format.name == name
    assert len(trace.doubts) == (doubt is not None)
    assert all(str(doubt) in said for said in trace.doubts)
    assert next(trace.batches())["t_ns"][-1] == last_ns
    assert open_trace(path, name).doubts == ()


def test_two_traces_joined_are_doubted(path: Path) -> None:
    path.write_text(SPC * 5 + MSR)
    trace = open_trace(path)
    assert trace.doubts == ("1 of the first 6 lines are MSR Cambridge: it may be several traces joined",)
    assert sum(frame.height for frame in trace.batches()) == 5
    assert trace.malformed.first[0].reason == "this is a line of MSR Cambridge"


def test_a_time_of_day_in_another_unit_is_doubted(path: Path) -> None:
    path.write_text("3,R,0,4096,1577808000\n")  # seconds, where Alibaba's are microseconds
    assert "of the year 1970" in open_trace(path).doubts[0]


def test_a_last_line_without_an_end_is_read_and_doubted(path: Path) -> None:
    path.write_text(SPC + SPC.rstrip())
    trace = open_trace(path)
    assert sum(frame.height for frame in trace.batches()) == 2
    assert trace.doubts == ("the last line has no line end: it may be cut short",)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"", "is empty"),
        (b"\n\n\n", "is empty"),
        (gzip.compress(b""), "is empty"),
        (b"version,time,op,size,lbn\n", "no request in its first lines that is CloudPhysics"),
        (b"hello\nworld\n", "in no format that is known: its first line is 'hello'; say which it is in"),
        (b"hello\nworld\n" + SPC.encode(), "its first line is 'hello', 1 of the first 3 are SPC trace file"),
        (b"\x7fELF\0\0\0\x01", "is a binary file"),
        (gzip.compress(SPC.encode() * 100)[:-20], "is cut short"),
        (zstandard.compress(SPC.encode() * 100)[:-20], "is cut short"),
        (b"\x1f\x8b\x08garbage that is not deflated", "is damaged"),
        (zstandard.compress(SPC.encode())[:4] + b"\xff" * 40, "is damaged"),
    ],
    ids=[
        "empty",
        "blank",
        "empty gzip",
        "only a header",
        "prose",
        "mostly prose",
        "binary",
        "gzip cut",
        "zstd cut",
        "gzip damaged",
        "zstd damaged",
    ],
)
def test_what_is_no_trace_is_refused(path: Path, text: bytes, said: str) -> None:
    path.write_bytes(text)
    with pytest.raises(BadInput, match=said):
        for _ in open_trace(path).batches():
            pass


def test_a_file_that_is_not_there_and_a_directory_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no such trace"):
        open_trace(tmp_path / "absent")
    with pytest.raises(BadInput, match="is a directory"):
        open_trace(tmp_path)
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(BadInput, match="is no regular file"):
        open_trace(tmp_path / "fifo")


def test_a_name_of_a_format_that_is_nearly_right_is_guessed(path: Path) -> None:
    path.write_text(SPC)
    with pytest.raises(BadInput, match="did you mean 'alibaba'"):
        open_trace(path, "ali-baba")
    assert open_trace(path, "spc").origin.clock is Clock.START


def test_a_trace_of_another_format_than_said_has_no_request(path: Path) -> None:
    path.write_text(SPC)
    with pytest.raises(
        BadInput, match="no request in its first lines that is MSR Cambridge: line 1: this is a line of SPC"
    ):
        open_trace(path, "msr")


def test_formats_have_titles_and_fields() -> None:
    for name, form in FORMATS.items():
        assert form.name == name
        assert form.title
        assert len({field.name for field in form.fields}) == len(form.fields)
