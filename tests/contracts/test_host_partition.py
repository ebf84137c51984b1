"""A server's packet filter that cuts it off: the contract on mock servers, the script on the real nft where that is."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing
from importlib.resources import files
from pathlib import Path
from typing import Any, cast

import pytest

from rackloop.abilities import Completed, Host
from rackloop.clock import Deadline
from rackloop.contracts import breakable
from rackloop.errors import DeadlineExceeded, FaultRefused, LabError, ToolError
from rackloop.faults import Faults, FaultSpec
from rackloop.lab import LabKind
from rackloop.safety import heal
from rackloop.safety.store import open_store
from rackloop.safety.undo import ActRecorder, Equipment, Journal
from rackloop_drivers.host_tools import HostFaults, HostRegister
from rackloop_drivers.network import HostPartition
from rackloop_labs.host_breakables import host_breakables
from rackloop_labs.mock import MockBench
from rackloop_labs.offered import unsupported_in
from tests.deadlines import CLOCK, soon
from tests.mock_rack import running_mock_bench

TABLE = "table inet rackloop_partition"
PARTITION = {"kind": "partition"}


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MockBench]:
    with running_mock_bench(tmp_path_factory.mktemp("rack"), "mock-direct") as bench:
        yield bench


def part_of(host: Host, longest_s: float = 3600) -> HostFaults:
    return HostFaults(host, f"network:{host.name}", HostPartition(cast(Any, host), longest_s))


def is_cut(host: Host) -> bool:
    return TABLE in host.run(["nft", "list", "tables"], soon()).stdout


@pytest.mark.parametrize("clause", breakable.CONTRACT, ids=lambda clause: clause.__name__)
def test_a_mock_server(clause: Callable[[breakable.BreakableArm], None], bench: MockBench) -> None:
    host = bench.host("node1")
    clause(breakable.BreakableArm(lambda: part_of(host), PARTITION, lambda: is_cut(host)))


def test_ssh_from_the_harness_and_the_loopback_are_let_through_and_nothing_else(bench: MockBench) -> None:
    host = bench.host("node1")
    part_of(host).break_as("test/1", PARTITION, soon())
    _, _, own, port = host.run(["sh", "-c", "echo $SSH_CONNECTION"], soon()).stdout.split()
    listed = host.run(["nft", "list", "table", "inet", "rackloop_partition"], soon()).stdout
    assert listed.count("policy drop;") == 3
    accepted = [line.strip() for line in listed.splitlines() if "accept" in line]
    assert accepted == [
        'iif "lo" accept',
        f"ip saddr {own} tcp dport {port} accept",
        "icmp type destination-unreachable accept",
        "udp sport 67 udp dport 68 accept",
        'oif "lo" accept',
        f"ip daddr {own} tcp sport {port} accept",
        "udp sport 68 udp dport 67 accept",
    ]
    part_of(host).mend("test/1", soon())
    assert not is_cut(host)


def test_a_server_ends_it_by_itself_where_nobody_else_does(bench: MockBench) -> None:
    host = bench.host("node2")
    part = part_of(host, longest_s=0.2)
    part.break_as("test/2", PARTITION, soon())
    assert soon().poll(lambda: not is_cut(host), every_s=1e-2)
    assert part.standing(soon()) == {}
    part.mend("test/2", soon())


def test_a_timer_ends_no_other_partition_than_its_own(bench: MockBench) -> None:
    host = bench.host("node2")
    for longest_s in (0.3, 3600):
        part = part_of(host, longest_s)
        part.break_as("test/3", PARTITION, soon())
        if longest_s == 3600:
            timers = host.run(
                ["sh", "-c", "cat /run/rackloop-partition; ps -eo args | grep -c '[s]leep 0.300'"], soon()
            )
            assert timers.stdout.split()[1] == "0"
            assert is_cut(host)
        part.mend("test/3", soon())
    assert host.run(["sh", "-c", "ls /run/rackloop-partition 2>&1"], soon()).status != 0


class ShutOut:
    """A server that is reached by the connection there is, and by no new one."""

    def __init__(self, host: Host) -> None:
        self._host = host

    def run_apart(self, _argv: list[str], _deadline: Deadline) -> Completed:
        raise DeadlineExceeded("nothing answered in time")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._host, name)


def test_a_partition_that_lets_no_new_login_in_is_over_soon(bench: MockBench) -> None:
    host = bench.host("node2")
    partition = HostPartition(cast(Any, ShutOut(host)), trial_s=0.2)
    note = partition.prepare(PARTITION, soon())
    with pytest.raises(LabError, match=r"node2: with its network cut no new login came in.*nothing answered in time"):
        partition.start(note, soon())
    assert soon().poll(lambda: not is_cut(host), every_s=1e-2)


def test_a_new_login_has_it_stand_as_long_as_it_may(bench: MockBench) -> None:
    host = bench.host("node2")
    partition = HostPartition(cast(Any, host), longest_s=3601, trial_s=77)
    partition.start(partition.prepare(PARTITION, soon()), soon())
    timers = host.run(["sh", "-c", "ps -eo args | sed -n -E 's/^sleep (77|3601)[.]000$/\\1/p'"], soon()).stdout
    assert (timers.split(), is_cut(host)) == (["3601"], True)
    partition.end({}, soon())


def test_a_login_that_comes_when_the_trial_is_over_makes_no_partition(bench: MockBench) -> None:
    host = bench.host("node2")

    class Late(ShutOut):
        def run_apart(self, argv: list[str], deadline: Deadline) -> Completed:
            HostPartition(cast(Any, host)).end({}, deadline)
            return cast(Completed, cast(Any, host).run_apart(argv, deadline))

    partition = HostPartition(cast(Any, Late(host)))
    with pytest.raises(LabError, match="the cut was over before"):
        partition.start(partition.prepare(PARTITION, soon()), soon())
    assert host.run(["ls", "/run/rackloop-partition"], soon()).status != 0


def test_a_reboot_ends_it(bench: MockBench) -> None:
    host = bench.host("node1")
    part = part_of(host)
    part.break_as("test/4", PARTITION, soon())
    bench.power.ports["server:node1"].turn_off(soon())
    bench.power.ports["server:node1"].turn_on(soon())
    host.reconnect(soon())
    assert part.standing(soon()) == {}
    part.mend("test/4", soon())


class Changed:
    """A server that answers the first look otherwise."""

    def __init__(self, host: Host, look: Callable[[Completed], Completed]) -> None:
        self._host, self._look = host, look

    def run(self, argv: list[str], deadline: Deadline, **more: Any) -> Completed:
        done = self._host.run(argv, deadline, **more)
        return self._look(done) if "look" in argv else done

    def __getattr__(self, name: str) -> Any:
        return getattr(self._host, name)


class BySudo:
    """A server whose commands are run as sudo does: without the variables of the login."""

    def __init__(self, host: Host) -> None:
        self._host = host

    def run(self, argv: list[str], deadline: Deadline, **more: Any) -> Completed:
        cleaned = ["sh", "-c", 'env -u SSH_CONNECTION "$@"; exit $?', "sudo", *argv]
        return self._host.run(cleaned, deadline, **more)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._host, name)


def test_an_account_that_is_root_by_sudo_is_let_through_as_well(bench: MockBench) -> None:
    part = part_of(cast("Host", BySudo(bench.host("node1"))))
    part.break_as("test/6", PARTITION, soon())
    listed = bench.host("node1").run(["nft", "list", "table", "inet", "rackloop_partition"], soon()).stdout
    assert "ip saddr 127.0.0.1 tcp dport" in listed
    part.mend("test/6", soon())


def looking(stdout: str = "", stderr: str = "", status: int = 0) -> Callable[[Completed], Completed]:
    return lambda done: type(done)(
        **{**vars(done), "stdout": stdout or done.stdout, "stderr": stderr, "status": status}
    )


@pytest.mark.parametrize(
    ("look", "error", "said"),
    [
        (looking(status=5), ToolError, "nft was not found on node1: install its package nftables there"),
        (looking("from \n"), LabError, "SSH_CONNECTION is not set.*look at how the account logs in"),
        (looking("from 10.0.0.1 4 10.0.0.2 22\nmount /home\n"), FaultRefused, "/home is mounted from the network"),
        (looking(stderr="Operation not permitted", status=1), LabError, "Operation not permitted; it takes root"),
    ],
)
def test_a_server_that_cannot_be_cut_off_safely_is_left_alone(
    bench: MockBench, look: Callable[[Completed], Completed], error: type[Exception], said: str
) -> None:
    host = bench.host("node1")
    part = part_of(cast("Host", Changed(host, look)))
    with pytest.raises(error, match=said):
        part.break_as("test/5", PARTITION, soon())
    assert not is_cut(host)
    assert part_of(host).standing(soon()) == {}


def test_the_servers_of_a_real_rack_are_cut_off_and_healed(bench: MockBench, tmp_path: Path) -> None:
    """The journal has it, and so have the servers, whoever made it."""
    real = bench.lab.model_copy(update={"kind": LabKind.PHYSICAL})
    hosts = {name: bench.host(name) for name in bench.lab.servers}
    broken = host_breakables(real, cast(Any, hosts))
    assert {"network:node1", "network:node2"} <= broken.keys()
    assert not any(name.startswith("network:") for name in host_breakables(bench.lab, cast(Any, hosts)))
    assert unsupported_in(real)(FaultSpec("partition", "node1")) is None
    registers = tuple(HostRegister(hosts[name], {f"network:{name}": broken[f"network:{name}"]}) for name in hosts)
    equipment = Equipment(bench.equipment.fabric, None, breakable=broken, server_registers=registers)
    with closing(open_store(tmp_path / "store.sqlite", CLOCK)) as store:
        journal = Journal(store)
        recorder = ActRecorder(bench.lab, journal, "run")
        with Faults(bench.lab, equipment, CLOCK, recorder) as faults, faults.injected(FaultSpec("partition", "node2")):
            assert is_cut(hosts["node2"])
        assert not is_cut(hosts["node2"])
        Faults(bench.lab, equipment, CLOCK, recorder).begin(FaultSpec("partition", "node1"))
        assert is_cut(hosts["node1"])
        report = heal(bench.lab, journal, equipment, CLOCK, soon())
        assert (report.problems, len(report.undone)) == ((), 1)
        assert not is_cut(hosts["node1"])


SCRIPT = files("rackloop_drivers.network").joinpath("partition.sh").read_text(encoding="utf-8")


@pytest.mark.parametrize(("family", "client"), [("ip", "192.0.2.7"), ("ip6", "2001:db8::7")])
def test_the_real_nft_takes_what_the_script_says(family: str, client: str) -> None:
    if shutil.which("nft", path=f"{os.environ['PATH']}:/usr/sbin:/sbin") is None:
        pytest.skip("no nft here: its package nftables is not installed")
    inside = (
        f'mount -t tmpfs none /run; s=$1; sh -c "$s" p begin {family} {client} 22 60; sh -c "$s" p hold 90; '
        'nft list tables; sh -c "$s" p stands; sh -c "$s" p end; sh -c "$s" p stands'
    )
    done = subprocess.run(
        ["unshare", "-Urnm", "sh", "-c", inside, "try", SCRIPT], capture_output=True, text=True, timeout=60, check=False
    )
    if "unshare" in done.stderr:
        pytest.skip(f"no user namespace here: {done.stderr}")
    assert (done.stdout.split("\n")[:3], done.stderr) == ([TABLE, "yes", "no"], "")


DISKS = {
    "sda": "pci0000:00/ata1/host0/target0:0:0/0:0:0:0",
    "sdb": "platform/host9/session3/target9:0:0/9:0:0:1",
    "nvme0n1": "pci0000:00/nvme/nvme0",
    "nvme1n1": "virtual/nvme-fabrics/ctl/nvme1",
    "nvme2n1": "virtual/nvme-subsystem/nvme-subsys2",
    "nbd0": "virtual/nbd",
}
TRANSPORTS = {"nvme0n1": "transport", "nvme1n1": "transport", "nvme2n1": "nvme2/transport"}
LSBLK = """#!/bin/sh
printf '%s\n' "" "/of/${3##*/}"
"""


def test_what_is_mounted_from_a_disk_of_another_machine_is_known(tmp_path: Path) -> None:
    """As kernels have them in sysfs, the last of the NVMe disks one of several paths."""
    for name, place in DISKS.items():
        (tmp_path / "devices" / place).mkdir(parents=True)
        (tmp_path / "block" / name).mkdir(parents=True)
        (tmp_path / "block" / name / "device").symlink_to(tmp_path / "devices" / place)
    for name, file in TRANSPORTS.items():
        transport = tmp_path / "block" / name / "device" / file
        transport.parent.mkdir(exist_ok=True)
        transport.write_text("pcie\n" if name == "nvme0n1" else "tcp\n")
    for tool, text in (("nft", "#!/bin/sh\n"), ("lsblk", LSBLK)):
        (tmp_path / tool).write_text(text)
        (tmp_path / tool).chmod(0o755)
    path = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    argv = ["sh", "-c", SCRIPT, "partition", "look", str(tmp_path)]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=True, env=path)
    found = [line.removeprefix("mount /of/") for line in done.stdout.splitlines() if line.startswith("mount /of/")]
    assert found == ["nbd0", "nvme1n1", "nvme2n1", "sdb"]


@pytest.mark.parametrize(
    ("kind", "is_shared"),
    [
        *((kind, True) for kind in ("nfs4", "lustre", "beegfs", "gpfs", "afs", "fuse.ceph-fuse", "gfs2", "ocfs2")),
        ("ext4", False),
    ],
)
def test_a_file_system_that_is_shared_by_the_network_is_known(tmp_path: Path, kind: str, *, is_shared: bool) -> None:
    (tmp_path / "nft").write_text("#!/bin/sh\n")
    (tmp_path / "nft").chmod(0o755)
    (tmp_path / "mounts").write_text(f"/dev/vda1 / ext4 rw 0 0\ncluster:/srv /srv {kind} rw,relatime 0 0\n")
    path = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    script = SCRIPT.replace("/proc/mounts", f"{tmp_path}/mounts")
    argv = ["sh", "-c", script, "partition", "look", str(tmp_path)]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=True, env=path)
    assert done.stdout.splitlines()[1:] == (["mount /srv"] if is_shared else [])


@pytest.mark.parametrize("what", ["begin ip 192.0.2.7 22 60", "hold 90", "stands", "end"])
def test_a_filter_that_cannot_be_asked_is_an_error_and_its_timer_stays(tmp_path: Path, what: str) -> None:
    (tmp_path / "run").mkdir()
    timer = tmp_path / "run" / "rackloop-partition"
    timer.write_text("no process\n")
    (tmp_path / "nft").write_text("#!/bin/sh\necho 'cache initialization failed' >&2\nexit 1\n")
    (tmp_path / "nft").chmod(0o755)
    path = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    argv = ["sh", "-c", SCRIPT.replace("/run/", f"{tmp_path}/run/"), "partition", *what.split()]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False, env=path)
    assert (done.returncode, done.stdout) == (1, "")
    assert "cache initialization failed" in done.stderr
    assert timer.exists()
