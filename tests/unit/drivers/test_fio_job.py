"""Typed fio jobs and the job files they make."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import exp
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rackloop.abilities import BlockUsage, Claim
from rackloop.errors import BadInput, GuardRefused
from rackloop_drivers.workload import (
    Arrivals,
    BlockShare,
    Bursts,
    FioJob,
    FioRun,
    ReadWrite,
    SteadyMetric,
    UntilSteady,
)

MIB = 1 << 20


@dataclass(frozen=True)
class Device:
    """A BlockDevice that nobody opens."""

    options: tuple[tuple[str, str], ...] = (("ioengine", "nbd"), ("uri", "nbd+unix:///srv1.p0?socket=/run/nbd.sock"))
    size_bytes: int = 64 * MIB

    def fio_options(self) -> dict[str, str]:
        return dict(self.options)

    def probe_target(self) -> str:
        return "nbd+unix:///srv1.p0?socket=/run/nbd.sock"

    def usage(self) -> BlockUsage:
        return BlockUsage()

    def claim_exclusive(self) -> Claim | None:
        return None


READS = FioJob(name="reads", device=Device(), rw=ReadWrite.RANDREAD)
MIX = (BlockShare(4096, 90), BlockShare(MIB, 10))

JOB_FILE = """\
[global]
thread=1
group_reporting=1
new_group=1
allow_file_create=0
continue_on_error=all
ignore_error=5:84:61:121:67:110,5:84:61:121:67:110,5:84:61:121:67:110
disable_slat=1
disable_lat=1

[reads]
ioengine=nbd
uri=nbd+unix:///srv1.p0?socket=/run/nbd.sock
rw=randread
bs=4096
iodepth=1
numjobs=1
offset=0
size=67108864
direct=1
randseed=7

[steady]
ioengine=nbd
uri=nbd+unix:///srv1.p0?socket=/run/nbd.sock
rw=read
bs=65536
iodepth=16
numjobs=4
offset=1048576
size=2097152
direct=0
randseed=8
time_based=1
runtime=1500ms
rate=1000000
rate_iops=50
verify=crc32c
verify_fatal=0
verify_state_save=0
"""


def test_the_job_file_says_everything_and_always_the_same() -> None:
    steady = FioJob(
        name="steady",
        device=Device(),
        rw=ReadWrite.READ,
        block_size_bytes=65536,
        iodepth=16,
        numjobs=4,
        runtime_s=1.5,
        size_bytes=2 * MIB,
        offset_bytes=MIB,
        rate_bytes_per_s=1_000_000,
        rate_iops=50,
        verify="crc32c",
        direct=False,
        seed=8,
    )
    run = FioRun(jobs=(replace(READS, seed=7), steady), seed=1)
    assert run.job_file("fio-1") == JOB_FILE
    assert run.log_names("fio-1") == {}


def test_a_job_that_only_reads_has_no_backlog_to_verify() -> None:
    with pytest.raises(BadInput, match="verify_backlog is for jobs that write and verify"):
        replace(READS, verify="crc32c", verify_backlog=64)
    with pytest.raises(BadInput, match="verify_backlog is 0, must be at least 1"):
        replace(READS, verify_backlog=0)


def test_a_job_of_so_many_bytes_of_independent_draws() -> None:
    options = replace(READS, io_bytes=128 * MIB, random_map=False).options(run_seed=1)
    assert (options["io_size"], options["norandommap"]) == (str(128 * MIB), "1")
    assert not {"time_based", "runtime"} & options.keys()


@pytest.mark.parametrize("rate_iops", [999, 6_700, 13_000, 19_000, 20_000])
def test_a_rate_at_random_is_one_that_fio_keeps(rate_iops: int) -> None:
    options = replace(READS, rate_iops=rate_iops, arrivals=Arrivals.POISSON).options(run_seed=1)
    # fio draws from an exponential distribution whose mean is in whole microseconds, and rounds down to them.
    mean_gap_us = 1_000_000 // int(options["rate_iops"])
    kept_us = sum(exp(-gap_us / mean_gap_us) for gap_us in range(1, 50 * mean_gap_us))
    assert 1e6 / kept_us == pytest.approx(rate_iops, rel=0.01)


def test_an_open_loop_has_a_rate_and_arrivals_at_random() -> None:
    options = replace(READS, rate_iops=500, arrivals=Arrivals.POISSON, iodepth=64).options(run_seed=1)
    assert (options["rate_iops"], options["rate_process"], options["iodepth"]) == ("500", "poisson", "64")
    assert "rate_process" not in replace(READS, rate_iops=500).options(run_seed=1), "even distances are fio's own way"


def test_bursts_have_pauses() -> None:
    options = replace(READS, bursts=Bursts(on_s=0.2, off_s=1.5)).options(run_seed=1)
    assert (options["thinktime_iotime"], options["thinktime"]) == ("200000us", "1500000us")


def test_what_is_measured_begins_with_a_burst_that_is_no_longer_than_the_others() -> None:
    bursting = replace(READS, runtime_s=1, bursts=Bursts(on_s=0.2, off_s=1.5))
    steady = replace(READS, name="steady", runtime_s=1)
    assert FioRun(jobs=(bursting, steady), seed=1).sections("log")["global"]["ramp_time"] == "1500ms"
    assert FioRun(jobs=(bursting,), seed=1, lead_s=2).sections("log")["global"]["ramp_time"] == "2000ms"
    assert "ramp_time" not in FioRun(jobs=(steady,), seed=1).sections("log")["global"]
    with pytest.raises(BadInput, match="beside bursts every job needs runtime_s, and whole has none"):
        FioRun(jobs=(bursting, replace(READS, name="whole")), seed=1)


@pytest.mark.parametrize("bursts", [{"on_s": 0, "off_s": 1}, {"on_s": 1, "off_s": 0}, {"on_s": 1, "off_s": 5000}])
def test_bursts_without_io_or_pauses_are_refused(bursts: dict[str, float]) -> None:
    with pytest.raises(BadInput, match=r"both are 0\.001 to 4000 s"):
        Bursts(**bursts)


def test_a_mix_of_sizes_takes_the_place_of_one() -> None:
    mixed = replace(READS, block_mix=MIX, random_map=False)
    options = mixed.options(run_seed=1)
    assert options["bssplit"] == "4096/90:1048576/10"
    assert "bs" not in options
    assert mixed.largest_block_bytes == MIB
    with pytest.raises(BadInput, match="leave out interval_s, or block_mix of reads"):
        FioRun(jobs=(mixed,), seed=1, interval_s=0.1)


def test_an_interval_adds_logs_whose_names_are_known() -> None:
    run = FioRun(jobs=(replace(READS, numjobs=2), replace(READS, name="more")), seed=1, interval_s=0.25)
    text = run.job_file("fio-9")
    assert text.count("log_avg_msec=250\n") == text.count("log_hist_msec=250\n") == 2
    assert "write_lat_log=fio-9.1\n" in text
    assert run.log_names("fio-9") == {
        "fio-9.0_clat.1.log": (0, "clat"),
        "fio-9.0_clat_hist.1.log": (0, "clat_hist"),
        "fio-9.0_clat.2.log": (0, "clat"),
        "fio-9.0_clat_hist.2.log": (0, "clat_hist"),
        "fio-9.1_clat.3.log": (1, "clat"),
        "fio-9.1_clat_hist.3.log": (1, "clat_hist"),
    }


@given(st.integers(0, 2**32))
def test_every_job_has_a_seed_that_comes_from_the_runs(seed: int) -> None:
    def randseed(run: FioRun, name: str) -> str:
        section = run.job_file("x").split(f"[{name}]\n")[1]
        return next(line for line in section.splitlines() if line.startswith("randseed="))

    alone = FioRun(jobs=(READS,), seed=seed)
    both = FioRun(jobs=(replace(READS, name="first"), READS), seed=seed)
    assert randseed(alone, "reads") == randseed(both, "reads"), "another job changes nothing for this one"
    assert randseed(both, "first") != randseed(both, "reads")
    assert randseed(alone, "reads") != randseed(replace(alone, seed=seed + 1), "reads")
    assert randseed(alone, "reads") != "randseed=0"


@pytest.mark.parametrize("rw", [rw for rw in ReadWrite if rw not in {"read", "randread"}])
def test_writing_through_a_plain_device_is_refused(rw: ReadWrite) -> None:
    with pytest.raises(GuardRefused, match=f"srv1.p0.*rw={rw} and needs a WritableDrive"):
        FioJob(name="writes", device=Device(), rw=rw)
    with pytest.raises(GuardRefused):
        replace(READS, rw=rw)


def test_a_device_cannot_turn_a_reading_job_into_a_writing_one() -> None:
    device = Device(options=(("ioengine", "nbd"), ("rw", "write"), ("uri", "nbd://host/")))
    text = FioRun(jobs=(replace(READS, device=device),), seed=1).job_file("x")
    assert [line for line in text.splitlines() if line.startswith("rw=")] == ["rw=randread"]


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"block_size_bytes": 0}, "block_size_bytes is 0, must be at least 512"),
    ({"iodepth": 0}, "iodepth is 0, must be at least 1"),
    ({"numjobs": 0}, "numjobs is 0"),
    ({"runtime_s": 0}, "runtime_s is 0, must be at least 0.001"),
    ({"offset_bytes": -1}, "offset_bytes is -1"),
    ({"rate_bytes_per_s": 0}, "rate_bytes_per_s is 0"),
    ({"rate_iops": 0}, "rate_iops is 0"),
    ({"seed": 0}, "seed is 0"),
    ({"size_bytes": 65 * MIB}, "the region ends at byte 68157440, the device at 67108864"),
    ({"offset_bytes": 60 * MIB, "size_bytes": 5 * MIB}, "the region ends at byte 68157440"),
    ({"offset_bytes": 64 * MIB}, "a region of 0 bytes has no room for a block of 4096"),
    ({"io_bytes": 4095}, "io_bytes is 4095, must be at least 4096"),
    ({"io_bytes": MIB, "runtime_s": 1}, "io_bytes and runtime_s both say when the job ends"),
    ({"read_percent": 50}, "read_percent is 0 to 100 and for rw=readwrite and rw=randrw, not for randread"),
    ({"verify": "crc32c\nrw=write"}, "verify is the name of one of fio's checksums"),
    ({"arrivals": Arrivals.POISSON}, "a Poisson process need rate_iops"),
    (
        {"arrivals": Arrivals.POISSON, "rate_iops": 9, "bursts": Bursts(on_s=1, off_s=1)},
        "arrivals and bursts both say when an I/O is due",
    ),
    ({"arrivals": Arrivals.POISSON, "rate_iops": 150_000}, "would come to 153,565: it keeps up to 20,000"),
    ({"arrivals": Arrivals.POISSON, "rate_iops": 2_000_000}, "would come to 1,718,282"),
    ({"block_mix": (BlockShare(4096, 60), BlockShare(8192, 39))}, "come to 100 %, not to 99 %"),
    ({"block_mix": (BlockShare(4096, 100), BlockShare(8192, 0))}, "1 to 100 %"),
    ({"block_mix": (BlockShare(4096, 50), BlockShare(4096, 50))}, "each size once"),
    ({"block_mix": (BlockShare(100, 100),)}, "a block of block_mix has 100 bytes, must have at least 512"),
    ({"block_mix": MIX, "size_bytes": 8192}, "a region of 8192 bytes has no room for a block of 1048576"),
    ({"block_mix": MIX}, "block_mix needs random_map=False"),
    ({"block_mix": MIX, "verify": "crc32c"}, "verify needs one block size"),
    ({"name": "global"}, "is not 'global'"),
    ({"name": "a]\nrw=write\n[b"}, "letters, digits"),
    ({"name": ""}, "letters, digits"),
]


@pytest.mark.parametrize(("change", "message"), WRONG, ids=[message for _, message in WRONG])
def test_what_fio_could_not_do_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInput) as refused:
        replace(READS, **change)
    assert message in str(refused.value)


def test_all_that_is_wrong_is_said_at_once() -> None:
    with pytest.raises(BadInput, match=r"iodepth is 0.*; numjobs is 0"):
        replace(READS, iodepth=0, numjobs=0)


@pytest.mark.parametrize("interval", [{"interval_s": 0.001}, {"status_s": 0.0}])
def test_too_short_an_interval_is_refused(interval: dict[str, float]) -> None:
    with pytest.raises(BadInput, match=r"must be at least 0\.01"):
        FioRun(jobs=(READS,), seed=1, **interval)


def test_a_run_has_jobs_and_each_name_once() -> None:
    with pytest.raises(BadInput, match="not reads, reads"):
        FioRun(jobs=(READS, READS), seed=1)
    with pytest.raises(BadInput, match="not none"):
        FioRun(jobs=(), seed=1)


def test_what_would_end_a_value_is_escaped_in_uris_and_refused_in_names() -> None:
    def text(**options: str) -> str:
        device = Device(options=tuple(options.items()))
        return FioRun(jobs=(replace(READS, device=device),), seed=1).job_file("x")

    given = "nbd+unix:///a%20b;c?socket=/run/$x #1"
    assert "\nuri=nbd+unix:///a%20b%3Bc?socket=/run/%24x%20%231\n" in text(ioengine="nbd", uri=given)
    assert "\nfilename=/dev/disk/by-path/pci-0\\:1\n" in text(ioengine="psync", filename="/dev/disk/by-path/pci-0\\:1")
    for name in ("/dev/a;b", "/dev/a#b", "/dev/$HOME", "/dev/a\nrw=write", " /dev/a", "/dev/a "):
        with pytest.raises(BadInput, match="cannot stand in a fio job file"):
            text(ioengine="psync", filename=name)
    with pytest.raises(BadInput, match="not an absolute path"):
        text(ioengine="psync", filename="sda")


STEADY: list[tuple[dict[str, Any], str]] = [
    ({"limit_percent": 0, "window_s": 5}, "limit_percent is 0"),
    ({"limit_percent": 20, "window_s": 1}, "a window of 1 s after 0 s"),
    ({"limit_percent": 20, "window_s": 5, "ramp_s": -1}, "a window of 5 s after -1 s"),
]


@pytest.mark.parametrize(("what", "message"), STEADY)
def test_a_criterion_that_fio_cannot_judge_by_is_refused(what: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        UntilSteady(metric=SteadyMetric.IOPS, **what)


def test_a_job_until_steady_has_fios_criterion_and_an_end() -> None:
    steady = UntilSteady(metric=SteadyMetric.IOPS_SLOPE, limit_percent=0.3, window_s=30, ramp_s=10)
    options = replace(READS, runtime_s=600, until_steady=steady).options(run_seed=1)
    assert options["steadystate"] == "iops_slope:0.3%"
    assert replace(steady, limit_percent=0.1234567).options()["steadystate"] == "iops_slope:0.1234567%"
    assert (options["steadystate_duration"], options["steadystate_ramp_time"]) == ("30s", "10s")
    with pytest.raises(BadInput, match="until_steady needs runtime_s"):
        replace(READS, runtime_s=None, until_steady=steady)
