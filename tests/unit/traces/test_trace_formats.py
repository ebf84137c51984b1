"""Every format reads what its publisher describes, and gives back what it keeps."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import polars
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rackloop.errors import BadInput
from rackloop_traces import FORMATS, Clock, Format, Op, Origin, Trace, columns, open_trace, write_trace

WRITTEN = [form for form in FORMATS.values() if form.write is not None]
UNIX = Origin(1_577_808_000_123_456_789, Clock.UNIX)
#: Two lines of each format, the second two seconds after the first, and the request they hold.
LINES = {
    "alibaba": ("3,R,126703644672,4096,1577808000000046", "3,W,8192,512,1577808002000046"),
    "blktrace": ("8:16 1.000000046 RA 247468056 4096", "8:16 3.000000046 WS 16 512"),
    "cloudphysics": ("1,100.5,28,4096,247468056", "1,102.5,2a,512,16"),
    "cloudphysics-us": ("1,5633898000046,88,4096,247468056", "1,5633900000046,8A,512,16"),
    "iolog2": ("sda read 126703644672 4096", "sda wait 2000 0\nsda write 8192 512"),
    "iolog3": ("46 sda read 126703644672 4096", "2000046 sda write 8192 512"),
    "msr": ("128166372003061629,usr,1,Read,126703644672,4096,41286", "128166372023061629,usr,1,Write,8192,512,0"),
    "spc": ("0,247468056,4096,r,0.026214", "0,16,512,W,2.026214,extra,fields"),
    "systor17": ("1456156800.000000001,0.000123,R,4,126703644672,4096", "1456156802.000000001,,W,4,8192,512"),
    "tencent": ("1538323200,247468056,8,0,1063", "1538323202,16,1,1,1063"),
}
VOLUMES = {"blktrace": "8:16", "iolog2": "sda", "iolog3": "sda", "msr": "usr.1", "alibaba": "3", "systor17": "4"}


def rows(trace: Trace) -> list[tuple[object, ...]]:
    return polars.concat(list(trace.batches())).rows()


@pytest.mark.parametrize("name", FORMATS)
def test_a_line_as_published_is_read(name: str, tmp_path: Path) -> None:
    path = tmp_path / "trace"
    path.write_text("\n".join(LINES[name]) + "\n")
    trace = open_trace(path, name)
    assert [row[:4] for row in rows(trace)] == [
        (0, Op.READ, 126703644672, 4096),
        (2_000_000_000, Op.WRITE, 8192, 512),
    ]
    volume = VOLUMES.get(name, {"tencent": "1063"}.get(name, "0"))
    assert trace.volumes == {volume: 2}
    assert trace.malformed.count == 0
    assert open_trace(path).format.name == name or name.startswith("iolog")


def test_every_format_has_its_lines_here() -> None:
    assert LINES.keys() == FORMATS.keys()


def test_response_times_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "trace"
    for name, expected in (("msr", [4_128_600, 0]), ("systor17", [123_000, None])):
        path.write_text("\n".join(LINES[name]) + "\n")
        assert [row[5] for row in rows(open_trace(path))] == expected


@pytest.mark.parametrize(
    ("name", "moment"),
    [
        ("msr", datetime(2007, 2, 22, 17, 0, tzinfo=UTC)),
        ("alibaba", datetime(2019, 12, 31, 16, 0, tzinfo=UTC)),
        ("systor17", datetime(2016, 2, 22, 16, 0, tzinfo=UTC)),
        ("tencent", datetime(2018, 9, 30, 16, 0, tzinfo=UTC)),
    ],
)
def test_the_origin_is_a_time_of_day_where_stamps_are(name: str, moment: datetime, tmp_path: Path) -> None:
    path = tmp_path / "trace"
    path.write_text("\n".join(LINES[name]) + "\n")
    origin = open_trace(path, name).origin
    assert origin.clock is Clock.UNIX
    assert abs(origin.ns / 1e9 - moment.timestamp()) < 1


def test_directives_of_fio_hold_no_request(tmp_path: Path) -> None:
    path = tmp_path / "trace"
    path.write_text("fio version 3 iolog\n1 sda add\n1 sda open\n5 sda trim 0 4096\n6 sda datasync 0 0\n7 sda close\n")
    trace = open_trace(path)
    assert [row[:2] for row in rows(trace)] == [(0, Op.TRIM), (1000, Op.FLUSH)]
    assert (trace.malformed.directives, trace.malformed.count, trace.malformed.total_lines) == (4, 0, 6)


def test_a_wait_of_fio_is_until_a_moment_and_never_goes_back(tmp_path: Path) -> None:
    path = tmp_path / "trace"
    path.write_text("fio version 2 iolog\na add\na open\na wait 10 0\na read 0 512\na wait 4 0\na read 0 512\n")
    assert [row[0] for row in rows(open_trace(path))] == [0, 0]


def kept(form: Format) -> st.SearchStrategy[polars.DataFrame]:
    """Frames of what ``form`` keeps all of."""
    ops = [Op.READ, Op.WRITE]
    if not any(loss.left_out and "reads" in loss.what for loss in form.losses):
        ops.append(Op.FLUSH)
    if form.name.startswith("iolog"):
        ops.append(Op.TRIM)
    volumes = ["0"] if not form.keeps_volume else ["0", "7", "1063"] if form.numbers_volumes else ["usr.1", "web.0"]
    ticks = st.integers(0, 10**6)
    row = st.tuples(
        ticks,
        st.sampled_from(ops),
        st.integers(0, 2**40).map(lambda sector: sector * 512),
        st.integers(1, 2**20).map(lambda sectors: sectors * 512),
        st.sampled_from(volumes),
        st.integers(0, 10**7).map(lambda ticks: ticks * 100) if form.keeps_response else st.none(),
    )

    def framed(found: list[tuple[int, Op, int, int, str, int | None]]) -> polars.DataFrame:
        found = sorted(found, key=lambda row: row[0])
        first = found[0][0]
        return polars.DataFrame(
            [((t - first) * form.tick_ns, *rest) for t, *rest in found], schema=columns(), orient="row"
        )

    return st.lists(row, min_size=1, max_size=30).map(framed)


@pytest.mark.parametrize("suffix", ["", ".gz", ".zst"])
@pytest.mark.parametrize("form", WRITTEN, ids=str)
@settings(max_examples=30)
@given(data=st.data())
def test_what_a_format_keeps_comes_back(
    form: Format, suffix: str, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("trace") / f"trace{suffix}"
    tick_ns = form.tick_ns
    origin = (
        Origin(UNIX.ns // tick_ns * tick_ns, Clock.UNIX) if form.clock is Clock.UNIX else Origin(5 * 10**12, form.clock)
    )
    frame = data.draw(kept(form))
    written = write_trace([frame], path, form.name, origin=origin)
    assert (written.requests, written.left_out, written.changed, written.notes) == (frame.height, {}, {}, ())
    trace = open_trace(path, form.name)
    assert rows(trace) == frame.rows()
    assert trace.malformed.count == 0
    if form.starts_at is None:
        assert trace.origin == origin


def one(**change: object) -> polars.DataFrame:
    """One request: 4 KiB read at 0."""
    row = {"t_ns": 0, "op": 0, "offset_bytes": 0, "size_bytes": 4096, "volume": "0", "response_ns": None} | change
    return polars.DataFrame([row], schema=columns(), orient="row")


@pytest.mark.parametrize(
    ("name", "frame", "left_out", "changed"),
    [
        ("msr", one(op=Op.TRIM, response_ns=0), 1, 0),
        ("msr", one(), 0, 1),
        ("cloudphysics", one(op=Op.TRIM), 1, 0),
        ("cloudphysics", one(op=Op.FLUSH), 0, 0),
        ("tencent", one(offset_bytes=100), 0, 1),
        ("tencent", one(size_bytes=100), 0, 1),
        ("spc", one(offset_bytes=100), 0, 1),
        ("alibaba", one(t_ns=1), 0, 1),
        ("alibaba", one(op=Op.FLUSH, size_bytes=0), 1, 0),
        ("iolog3", one(size_bytes=2**32), 1, 0),
        ("iolog3", one(size_bytes=2**32 - 1), 0, 0),
        ("iolog2", one(t_ns=999_999), 0, 1),
    ],
)
def test_what_a_format_cannot_say_is_counted(
    name: str, frame: polars.DataFrame, left_out: int, changed: int, tmp_path: Path
) -> None:
    written = write_trace([one(response_ns=0) if name == "msr" else one(), frame], tmp_path / "trace", name)
    assert (sum(written.left_out.values()), sum(written.changed.values())) == (left_out, changed)
    assert written.requests == 2 - left_out


def test_a_request_beside_sectors_is_widened_to_them(tmp_path: Path) -> None:
    path = tmp_path / "trace"
    write_trace([one(offset_bytes=1000, size_bytes=100)], path, "tencent")
    assert rows(open_trace(path, "tencent"))[0][2:4] == (512, 1024)


def test_names_are_numbered_where_a_format_has_numbers(tmp_path: Path) -> None:
    path = tmp_path / "trace"
    frames = [one(volume="usr.1"), one(volume="7"), one(volume="usr.1")]
    written = write_trace(frames, path, "alibaba")
    assert written.renamed == {"usr.1": "0", "7": "1"}
    assert [row[4] for row in rows(open_trace(path, "alibaba"))] == ["0", "1", "0"]


def test_a_name_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="volume 'my disk' cannot be written as fio iolog version 3"):
        write_trace([one(volume="my disk")], tmp_path / "trace", "iolog3")
    assert not list(tmp_path.iterdir())


def test_a_log_of_fio_is_refused_requests_out_of_order(tmp_path: Path) -> None:
    for frames in ([one(t_ns=5), one(t_ns=4)], [polars.concat([one(t_ns=5), one(t_ns=4)])]):
        with pytest.raises(BadInput, match="in the order of their time"):
            write_trace(frames, tmp_path / "trace", "iolog3")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("stamp", [0, 498726006288635087])
def test_a_time_beyond_the_numbers_of_a_format_is_refused(stamp: int, tmp_path: Path) -> None:
    trace = tmp_path / "trace.msr.csv"
    trace.write_text(f"{stamp},usr,1,Read,0,4096,0\n")
    opened = open_trace(trace, "msr")
    with pytest.raises(BadInput, match="begins at a time that SYSTOR '17 cannot say"):
        write_trace(opened.batches(), tmp_path / "out", "systor17", origin=opened.origin)
    assert [path.name for path in tmp_path.iterdir()] == [trace.name]


def test_a_time_before_the_clocks_zero_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="before the zero of Alibaba"):
        write_trace([one(t_ns=-1000)], tmp_path / "trace", "alibaba")


@pytest.mark.parametrize(("name", "first"), [("spc", "0,0,4096,R,0.000000000"), ("iolog3", "1 0 read 0 4096")])
def test_a_trace_starts_with_its_earliest_request(name: str, first: str, tmp_path: Path) -> None:
    path = tmp_path / "trace"
    write_trace([one(t_ns=-2000), one(t_ns=0)], path, name, origin=UNIX)
    assert path.read_text().splitlines()[-2] == first
    assert [row[0] for row in rows(open_trace(path, name))] == [0, 2000]


@pytest.mark.parametrize("form", WRITTEN, ids=str)
def test_a_time_of_day_can_be_written_in_every_format(form: Format, tmp_path: Path) -> None:
    path = tmp_path / "trace"
    write_trace([one(), one(t_ns=form.tick_ns * 3)], path, form.name, origin=UNIX)
    assert [row[0] for row in rows(open_trace(path, form.name))] == [0, form.tick_ns * 3]


def test_nothing_to_write_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no request to write as MSR"):
        write_trace([], tmp_path / "trace", "msr")
    assert not list(tmp_path.iterdir())


def test_responses_and_volumes_that_are_lost_are_said(tmp_path: Path) -> None:
    frames = [one(response_ns=5, volume="a"), one(volume="b")]
    assert write_trace(frames, tmp_path / "trace", "cloudphysics").notes == (
        "response times are not kept",
        "volumes are not kept: the requests of 2 are all of one",
    )
