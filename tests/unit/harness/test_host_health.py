"""A server's health in one command, and how far the clock of its kernel log is from the run's."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path

import pytest

from rackloop.abilities import Completed, Process
from rackloop.clock import Deadline, VirtualClock
from rackloop.errors import LabError
from rackloop.inspection.health import KernelLine, KernelPosition, snapshot_of
from rackloop_drivers import host_tools
from rackloop_drivers.host_tools import kernel_clock, read_health
from tests.unit.harness.recorded_server import RECORDED, RecordedServer, answered
from tests.unit.harness.sim_rack import described

CLOCK = VirtualClock()
SOON = Deadline.after(CLOCK, 60)
BOOT = "e2c1a1f0-5d4c-4f0c-9c53-1f1e2a3b4c5d"
LOG = """\
<6>[   12.000001] ata2: SATA link up 6.0 Gbps (SStatus 133 SControl 300)
<3>[   12.500000] I/O error, dev sdb, sector 8 op 0x0:(READ)
 continued on a line of its own
<30>[  700.250000] systemd[1]: Started something.
"""
PLACES = """\
host1 ../../devices/pci0000:00/0000:00:1f.2/ata2/host1/scsi_host/host1
host6 ../../devices/pci0000:00/0000:00:07.0/host6/scsi_host/host6
ata2 ../../devices/pci0000:00/0000:00:1f.2/ata2/ata_port/ata2
nvme0 ../../devices/pci0000:00/0000:00:04.0/0000:01:00.0/nvme/nvme0
nvme-fabrics ../../devices/virtual/nvme-fabrics/ctl
"""


@dataclass
class HealthyServer(RecordedServer):
    """A recorded server that also says which boot it is and what its kernel said."""

    kernel: dict[str, str] = field(
        default_factory=lambda: {
            "boot": f"{BOOT}\n",
            "kernel": LOG,
            "position": "700.250000\n",
            "places": PLACES,
        }
    )
    complaint: str = ""

    def run(self, argv: Sequence[str], deadline: Deadline, *, stdin: str = "") -> Completed:
        survey = super().run(argv[:5], deadline, stdin=stdin)
        self.ran[-1] = tuple(argv)
        said = "".join(f"\x1e{kind} -\n{text}" for kind, text in self.kernel.items())
        complaints = "".join(f"\x1e{kind} -\n{self.complaint * (kind == 'kernel')}" for kind in self.kernel)
        return Completed(tuple(argv), survey.status, said + survey.stdout, complaints + survey.stderr)


def test_one_command_tells_all_of_a_servers_health() -> None:
    server = HealthyServer()
    health = read_health(server, KernelPosition(BOOT, 11_999_999), SOON)
    assert len(server.ran) == 1
    assert server.ran[0][4:] == ("15", BOOT, "11.999999")
    assert health.position == KernelPosition(BOOT, 700_250_000)
    assert health.kernel == (
        KernelLine(12_000_001, 6, "ata2: SATA link up 6.0 Gbps (SStatus 133 SControl 300)"),
        KernelLine(12_500_000, 3, "I/O error, dev sdb, sector 8 op 0x0:(READ)"),
        KernelLine(700_250_000, 6, "systemd[1]: Started something."),
    )
    assert [drive.device for drive in health.inventory.drives] == ["/dev/sda", "/dev/sdb", "/dev/nvme0n1"]
    assert health.log_unreadable is None


def test_a_tool_that_is_not_understood_costs_its_own_drive_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RACKLOOP_STATE_HOME", str(tmp_path))
    server = HealthyServer(answers={**RECORDED, "smartctl sdb": answered('{"json_format_version": [2, 0]}')})
    health = read_health(server, None, SOON)
    assert [drive.device for drive in health.inventory.drives] == ["/dev/sda", "/dev/nvme0n1"]
    lab = described(tmp_path)
    snapshot = snapshot_of(lab, {"srv1": health}, {}, started_ns=0, ended_ns=1)
    [(what, why)] = snapshot.servers["srv1"].unreadable.items()
    assert what == "/dev/sdb"
    assert "smartctl printed json_format_version [2, 0]; known here: json_format_version 1.x" in why


def test_the_first_reading_asks_for_none_of_the_log() -> None:
    server = HealthyServer()
    read_health(server, None, SOON)
    assert server.ran[0][5:] == ("", "end")


@pytest.mark.parametrize(("status", "heard"), [("status 0\n", "Linux 6\n"), ("status -1\n", ""), ("", "")])
def test_a_command_besides_is_heard_where_it_succeeded(status: str, heard: str) -> None:
    server = HealthyServer()
    server.kernel = {"besides": f"Linux 6\n\x1e{status}", **server.kernel}
    health = read_health(server, None, SOON, ("uname", "-sr"))
    assert server.ran[0][5:] == ("", "end", "uname", "-sr")
    assert health.besides == heard
    assert len(health.inventory.drives) == 3


def test_a_log_that_may_not_be_read_is_said_and_the_rest_is_read() -> None:
    server = HealthyServer(complaint="dmesg: read kernel buffer failed: Operation not permitted\n")
    server.kernel |= {"kernel": "", "position": "\n"}
    health = read_health(server, None, SOON)
    assert health.log_unreadable == "dmesg: read kernel buffer failed: Operation not permitted"
    assert health.position == KernelPosition(BOOT, -1)
    assert len(health.inventory.drives) == 3


def test_an_empty_log_is_no_complaint() -> None:
    server = HealthyServer()
    server.kernel |= {"kernel": "", "position": "\n"}
    assert read_health(server, None, SOON).log_unreadable is None


@pytest.mark.parametrize(
    ("last_at", "printed"),
    [
        ("11.900000", "12.000001"),
        ("12.000001", ""),
        ("700.250000", ""),
        ("-1.000000", ""),
        ("end", ""),
    ],
)
def test_a_log_that_lost_lines_says_where_it_begins(last_at: str, printed: str) -> None:
    done = log_read(LOG, last_at)
    assert done.stdout.partition("\x1e")[2] == f"position -\n  700.250000\n{printed and f'   {printed}'}\n"
    assert done.stderr == ""


def test_a_log_whose_lines_have_no_time_is_said_to_be_so() -> None:
    done = log_read("<6>Linux version 6.1.0\n<6>[drm] Initialized\n", "-1.000000")
    assert done.stdout == "\x1eposition -\n\n\n"
    assert done.stderr == "its lines have no time; boot it with printk.time=1\n"
    assert log_read("", "end").stderr == ""


def log_read(log: str, last_at: str) -> subprocess.CompletedProcess[str]:
    """What the script prints of a kernel's log, which was read to ``last_at`` before."""
    text = files(host_tools).joinpath("health.sh").read_text(encoding="utf-8")
    reading = text[text.index("dmesg -r") : text.index("begin places")]
    script = f'dmesg() {{ printf %s "$log"; }}; last_at=$1\n{reading}'
    given = {"log": log, **os.environ}
    return subprocess.run(
        ["sh", "-c", script, "health", last_at], check=True, capture_output=True, text=True, env=given
    )


def test_lines_that_were_lost_before_they_were_read_are_said() -> None:
    server = HealthyServer()
    server.kernel["position"] = "  700.250000\n   12.000001\n"
    health = read_health(server, KernelPosition(BOOT, 11_900_000), SOON)
    assert health.position == KernelPosition(BOOT, 700_250_000)
    assert health.log_unreadable is not None
    assert health.log_unreadable.startswith("what it said before 12.000001 s was overwritten before it was read")


def test_a_snapshot_names_drives_and_ports_as_the_description_does(tmp_path: Path) -> None:
    lab = described(tmp_path)
    paths = {"p0": "pci-0000:00:1f.2", "p1": "pci-0000:01:00.0"}
    server = lab.servers["srv1"].model_copy(update={"paths": paths})
    serial = read_health(HealthyServer(), None, SOON).inventory.drives[1].identity.serial
    # The guard and the check of the cables take no notice of spaces at its ends, nor does this.
    drives = {**lab.drives, "d01": lab.drives["d01"].model_copy(update={"serial": f" {serial} "})}
    lab = lab.model_copy(update={"servers": {**lab.servers, "srv1": server}, "drives": drives})
    health = read_health(HealthyServer(complaint="x\n", kernel={**HealthyServer().kernel, "position": ""}), None, SOON)

    found = snapshot_of(lab, {"srv1": health}, {"srv2": "no route"}, started_ns=1, ended_ns=2)
    sas, nvme = (health.inventory.drives[number].identity.serial for number in (0, 2))
    assert set(found.drives) == {"d01", f"srv1 serial {sas}", f"srv1 serial {nvme}"}
    seen = found.servers["srv1"]
    assert [*seen.ports["sdb"], *seen.ports["ata2"], *seen.ports["nvme0"]] == ["p0", "p0", "p1"]
    assert list(seen.ports["sda"]) == ["p2"], "the one whose path is not described"
    assert seen.unreadable == {"kernel log": "x"}
    assert found.unreachable == {"srv2": "no route"}


RAW = "<6>[    2.500000] Linux version 6.1.0\n"
ISO = "2026-11-21T04:41:02,500000+01:00 Linux version 6.1.0\n"
BOOTED_NS = 1_795_232_460_000_000_000  # 2026-11-21T04:41:00+01:00, two and a half seconds before that line


@dataclass
class Shell:
    """A shell whose clock is 90 s ahead of the run's; each answer takes 2 ms, 1 ms of it on the way there."""

    clock: VirtualClock
    answer: str | None = None
    is_killed: bool = False

    def write_line(self, line: str) -> None:
        self.clock.advance(0.001)

    def read_line(self, deadline: Deadline) -> str | None:
        shown = BOOTED_NS + 90_000_000_000 + self.clock.now_ns()
        self.clock.advance(0.001)
        return str(shown) if self.answer is None else self.answer

    def wait(self, deadline: Deadline) -> Completed:
        raise NotImplementedError

    def kill(self) -> None:
        self.is_killed = True


@dataclass
class TimedServer(RecordedServer):
    """A server that tells its time of day, its uptime between, and the first line of its log with both stamps."""

    shell: Shell = field(default_factory=lambda: Shell(VirtualClock()))
    first_lines: str = RAW + ISO
    uptime: str = ""

    def run(self, argv: Sequence[str], deadline: Deadline, *, stdin: str = "") -> Completed:
        return Completed(tuple(argv), 0, self.uptime if "/proc/uptime" in argv[-1] else self.first_lines, "")

    def start(self, argv: Sequence[str]) -> Process:
        return self.shell


def test_a_kernels_clock_is_related_through_the_time_of_day() -> None:
    shell = Shell(VirtualClock())
    offset = kernel_clock(TimedServer(shell=shell), shell.clock, Deadline.after(shell.clock, 60))
    assert shell.is_killed
    assert abs(offset.offset_ns - 90_000_000_000) <= offset.error_ns <= 1_001_000


def uptime(booted_ns: int) -> str:
    """What a server says that booted then: two looks at its uptime, the time of day between them."""
    return f"10.00\n{booted_ns + 10_012_000_000}\n10.02\n"


def test_the_fraction_of_the_second_of_a_boot_that_dmesg_leaves_out_is_told_by_the_uptime() -> None:
    """Of util-linux 2.38 on a server that booted 0.6 s into a second; its kernel's log was up to a second early."""
    shell = Shell(VirtualClock())
    server = TimedServer(shell=shell, uptime=uptime(BOOTED_NS + 600_000_000))
    offset = kernel_clock(server, shell.clock, Deadline.after(shell.clock, 60))
    assert abs(offset.offset_ns - 89_400_000_000) <= offset.error_ns <= 17_000_000


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (uptime(BOOTED_NS - 86_400_000_000_000), "a simulated server has the uptime of the machine it is on"),
        (uptime(BOOTED_NS + 1_100_000_000), "another second"),
        ("", "no uptime"),
        ("x\ny\nz\n", "nonsense"),
    ],
)
def test_an_uptime_that_says_something_else_is_not_listened_to(said: str, why: str) -> None:
    shell = Shell(VirtualClock())
    offset = kernel_clock(TimedServer(shell=shell, uptime=said), shell.clock, Deadline.after(shell.clock, 60))
    assert abs(offset.offset_ns - 90_000_000_000) <= offset.error_ns <= 1_001_000, why


def test_a_fraction_that_dmesg_gives_is_taken() -> None:
    shell = Shell(VirtualClock())
    iso = ISO.replace("02,500000", "03,100000")
    server = TimedServer(shell=shell, first_lines=RAW + iso, uptime=uptime(BOOTED_NS))
    offset = kernel_clock(server, shell.clock, Deadline.after(shell.clock, 60))
    assert abs(offset.offset_ns - 89_400_000_000) <= offset.error_ns <= 1_001_000


@pytest.mark.parametrize("first_lines", ["", RAW, RAW + "dmesg: unrecognized option\n"])
def test_a_dmesg_without_both_stamps_cannot_be_related(first_lines: str) -> None:
    shell = Shell(VirtualClock())
    with pytest.raises(LabError, match="srv9: dmesg does not give the same line with both stamps"):
        kernel_clock(TimedServer(shell=shell, first_lines=first_lines), shell.clock, Deadline.after(shell.clock, 60))


def test_a_date_without_nanoseconds_is_named() -> None:
    shell = Shell(VirtualClock(), answer="1795232463N")
    with pytest.raises(LabError, match="srv9: date printed '1795232463N'"):
        kernel_clock(TimedServer(shell=shell), shell.clock, Deadline.after(shell.clock, 60))
    assert shell.is_killed
