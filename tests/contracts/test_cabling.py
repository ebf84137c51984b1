"""The drives that mock servers show over SSH, and the cables of their rack: read, checked, swapped, discovered."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from rackloop.abilities import Completed
from rackloop.clock import Deadline
from rackloop.contracts import block_device
from rackloop.contracts import drive as drive_contract
from rackloop.errors import LabError, NotSupported, ToolError
from rackloop.inspection.health import health_changes
from rackloop.lab import Lab, LabState, check_files, load_lab
from rackloop_cli.main import main
from rackloop_drivers.block import HostPath
from rackloop_drivers.drive import HostDrive
from rackloop_drivers.host import LocalExecutor
from rackloop_drivers.host_tools import survey_host
from rackloop_drivers.rackd import RackdControl
from rackloop_fixtures.rack.start import require_cabling
from rackloop_labs import Bench, MockLab, open_lab
from rackloop_labs.discovery import cabling, check_cabling, inventories
from tests.deadlines import CLOCK, soon
from tests.nbd_wire import EIO, NbdWire

POLL_NS = 5_000_000
PATHS = {f"p{number}": f"pci-0000:1{number}:00.0" for number in range(8)}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A state directory in which the mock lab is up."""
    with pytest.MonkeyPatch.context() as patch:
        home = tmp_path_factory.mktemp("home")
        patch.setenv("RACKLOOP_STATE_HOME", str(home))
        lab = MockLab(load_lab("mock"), CLOCK)
        lab.up()
        try:
            yield home
        finally:
            lab.down()


@pytest.fixture
def mock(home: Path) -> Iterator[Bench]:
    lab = load_lab("mock")
    with open_lab(lab, CLOCK, LabState.of(lab.name), None, bring_up=False) as bench:
        yield bench


@pytest.fixture
def settled(home: Path) -> Iterator[Bench]:
    """The mock lab as one that settles soon: what disagrees is believed after a second."""
    lab = load_lab("mock")
    lab = lab.model_copy(update={"times": lab.times.model_copy(update={"settle": 1.0})})
    with open_lab(lab, CLOCK, LabState.of(lab.name), None, bring_up=False) as bench:
        yield bench


@pytest.fixture(scope="module")
def discovered(home: Path, tmp_path_factory: pytest.TempPathFactory) -> Lab:
    """The mock rack as `lab discover` describes it: a physical rack, reached by SSH and by its switch."""
    file = tmp_path_factory.mktemp("found") / "found.yaml"
    assert main(["lab", "discover", "mock", "--name", "found", "--out", str(file)]) == 0
    return load_lab(file)


@pytest.fixture(params=["mock", "physical"])
def bench(request: pytest.FixtureRequest, mock: Bench, discovered: Lab) -> Iterator[Bench]:
    """The rack as a mock lab, and as the physical one that was discovered."""
    if request.param == "mock":
        yield mock
        return
    with open_lab(discovered, CLOCK, LabState.of(discovered.name), None) as bench:
        yield bench


@pytest.fixture
def rackd(home: Path) -> Iterator[RackdControl]:
    """The simulated rack's own control; every drive of the baseline is back before the next test."""
    control = RackdControl(Path(LabState.of("mock").endpoints()["control"]), CLOCK)
    yield control
    deadline = soon()
    for server, joined in load_lab("mock").baseline.items():
        for port in joined:
            while not control.request("identify", deadline, server=server, port=port)["online"]:
                CLOCK.sleep_until_ns(CLOCK.now_ns() + POLL_NS)
    control.close()


@contextmanager
def miswired(rackd: RackdControl, one: int, other: int) -> Iterator[None]:
    """The plugs of two switch ports in each other's place."""
    rackd.request("miswire", soon(), ports=[one, other])
    try:
        yield
    finally:
        rackd.request("miswire", soon(), ports=[one, other])


def test_servers_see_the_drives_that_are_mapped_to_them_as_they_are(mock: Bench) -> None:
    assert check_cabling(mock, soon()) == []
    seen = inventories(mock, soon())
    for server, joined in mock.lab.baseline.items():
        drives = seen[server].drives
        assert len(drives) == len(joined)
        assert seen[server].unreadable == {}
        for port in joined:
            (drive,) = (drive for drive in drives if drive.is_at(PATHS[port]))
            real = mock.drive(server, port).identify(soon())
            told = drive.identity
            assert (told.model, told.serial, told.firmware, told.protocol, told.size_bytes) == (
                real.model,
                real.serial,
                real.firmware,
                real.protocol,
                real.size_bytes,
            )
            assert {name: told.identifiers.get(name) for name in real.identifiers} == real.identifiers
            assert drive.usage.claims == ()


def test_one_command_reads_all_drives_of_a_server(mock: Bench) -> None:
    assert len(survey_host(mock.host("srv1"), soon()).drives) == 8


def test_the_discovered_description_is_the_racks(mock: Bench, discovered: Lab) -> None:
    lab = mock.lab
    [(_, checked)] = check_files([discovered.source])
    assert checked == discovered
    assert discovered.baseline == lab.baseline
    assert discovered.fabric.ports == lab.fabric.ports
    joined = {drive for ports in lab.baseline.values() for drive in ports.values()}
    assert set(discovered.drives) == joined
    for name in joined:
        found, described = discovered.drives[name], lab.drives[name]
        for field in ("model", "firmware", "serial", "wwn", "eui64", "size", "port"):
            assert getattr(found, field) == getattr(described, field), (name, field)
        assert found.traits.protocol == described.traits.protocol
        assert not found.scratch
    for name, server in discovered.servers.items():
        assert server.paths == {port: PATHS[port] for port in server.ports}
        assert server.ports == lab.servers[name].ports


def test_a_right_rack_has_a_row_for_every_port_and_no_disagreement(bench: Bench) -> None:
    rows = cabling(bench, soon())
    assert len(rows) == 24
    assert [row.disagreements for row in rows if row.disagreements] == []
    require_cabling(bench)


@pytest.mark.parametrize(
    ("one", "other", "plugs"),
    [(101, 103, ("d01", "d03")), (101, 119, ("d01", "d19")), (1, 6, ("srv1.p0", "srv2.p1"))],
)
def test_swapped_cables_are_named_before_anything_is_written(
    settled: Bench, rackd: RackdControl, one: int, other: int, plugs: tuple[str, str]
) -> None:
    with miswired(rackd, one, other), pytest.raises(LabError, match="so nothing was written") as caught:
        require_cabling(settled)
    assert all(plug in str(caught.value) for plug in plugs)


def test_the_command_has_a_row_for_every_port(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lab", "cabling", "mock", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [f"{port['server']}.{port['port']}" for port in told["ports"]][::7] == [
        "srv1.p0",
        "srv1.p7",
        "srv3.p0",
        "srv4.p3",
    ]
    assert main(["lab", "cabling", "mock"]) == 0
    assert "24 ports, 0 disagreements" in capsys.readouterr().out


def test_the_command_names_the_cables_and_ends_with_3(
    rackd: RackdControl, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with miswired(rackd, 102, 105):
        assert main(["lab", "cabling", "mock"]) == 3
    assert "the cables of d02 and d05 are swapped (switch ports 102 and 105)" in capsys.readouterr().out


def test_a_stuck_port_is_told(mock: Bench, rackd: RackdControl) -> None:
    live = rackd.request("get_map", soon())["pairs"]
    rackd.request("open", soon(), ports=[1])
    rackd.request("stick", soon(), port=1, stuck=True)
    try:
        rackd.request("map", soon(), pairs=live, full=True)
        with pytest.raises(LabError, match="switch port 1: joined to nothing, at the baseline to 101; it is stuck"):
            require_cabling(mock)
    finally:
        rackd.request("stick", soon(), port=1, stuck=False)
        rackd.request("map", soon(), pairs=live, full=True)


@pytest.fixture
def expander(mock: Bench, rackd: RackdControl) -> Iterator[None]:
    """The expander joined to srv1.p0, in the place of d01."""
    rackd.request("map", soon(), pairs=[[1, 150]], full=False)
    yield
    rackd.request("map", soon(), pairs=[[1, 101]], full=False)


@pytest.mark.usefixtures("expander")
def test_drives_behind_an_expander_are_seen_in_their_slots(mock: Bench) -> None:
    rows = cabling(mock, soon())
    assert [row.disagreements for row in rows if row.disagreements] == []
    assert (rows[0].expected, rows[0].found.count("serial")) == ("exp1", 4)
    slots = {
        drive.identity.serial: drive.identity.identifiers["slot"]
        for drive in inventories(mock, soon())["srv1"].drives
        if drive.is_at(PATHS["p0"])
    }
    assert slots == {"RL000021": "0", "RL000022": "1", "RL000023": "2", "RL000024": "3"}


def test_a_server_that_is_off_is_named(mock: Bench, rackd: RackdControl) -> None:
    rackd.request("power", soon(), target="server:srv3", on=False)
    try:
        with pytest.raises(LabError, match="srv3"):
            check_cabling(mock, Deadline.after(CLOCK, 5))
    finally:
        rackd.request("power", soon(), target="server:srv3", on=True)
        mock.host("srv3").reconnect(soon())
    assert check_cabling(mock, soon()) == []


@pytest.mark.parametrize("port", ["p0", "p2", "p3"])
@pytest.mark.parametrize("clause", drive_contract.CONTRACT, ids=lambda clause: clause.__name__)
def test_drives_of_servers_keep_the_contract(
    mock: Bench, port: str, clause: Callable[[drive_contract.DriveFactory], None]
) -> None:
    clause(lambda: HostDrive(mock.host("srv1"), PATHS[port]))


@pytest.mark.parametrize("port", ["p0", "p2"])
@pytest.mark.parametrize("clause", block_device.CONTRACT, ids=lambda clause: clause.__name__)
def test_paths_of_servers_keep_the_contract(
    mock: Bench, port: str, clause: Callable[[block_device.BlockDeviceFactory], None]
) -> None:
    try:
        clause(lambda: HostPath(mock.host("srv1"), PATHS[port], CLOCK))
    except NotSupported as reason:
        pytest.skip(str(reason))


class Without(LocalExecutor):
    """This machine with the programs in one folder and no others."""

    def __init__(self, folder: Path) -> None:
        super().__init__(CLOCK)
        self._folder_of_programs = folder

    def run(self, argv: Sequence[str], deadline: Deadline, *, stdin: str = "") -> Completed:
        return super().run(["env", f"PATH={self._folder_of_programs}", *argv], deadline, stdin=stdin)


def test_a_tool_that_is_missing_on_a_server_is_named_with_its_package(tmp_path: Path) -> None:
    for program in ("sh", "mktemp", "sleep", "cat", "rm", "find", "grep", "ls", "readlink"):
        (tmp_path / program).symlink_to(str(shutil.which(program)))
    told = "lsblk was not found on this machine: install its package util-linux"
    with Without(tmp_path) as executor, pytest.raises(ToolError, match=told):
        survey_host(executor, soon())


@pytest.mark.parametrize(("port", "counter"), [("p0", "uncorrectable_errors"), ("p2", "media_errors")])
def test_a_sector_that_cannot_be_read_is_counted_by_the_tools_of_the_server(
    mock: Bench, rackd: RackdControl, port: str, counter: str
) -> None:
    drive = HostDrive(mock.host("srv1"), PATHS[port])
    before = drive.health(soon())
    fault = {"kind": "media_error", "lba": 0, "sectors": 8, "mode": "once"}
    rackd.request("fault", soon(), drive=mock.lab.baseline["srv1"][port], fault=fault)
    with NbdWire(Path(LabState.of("mock").endpoints()["nbd"]), f"srv1.{port}") as wire:
        assert wire.read(0, 4096)[0] == EIO
    after = drive.health(soon())
    assert after[counter] == before[counter] + 1
    alarms = [change.alarm or "" for change in health_changes(before, after)]
    assert any(alarm.startswith(f"{counter} went from {before[counter]} to {after[counter]}") for alarm in alarms)


def test_a_physical_bench_reads_a_drive_where_the_mock_one_does(bench: Bench) -> None:
    drive, device = bench.drive("srv1", "p0"), bench.device("srv1", "p0")
    identity = drive.identify(soon())
    assert identity.serial == "RL000001"
    assert device.size_bytes >= identity.size_bytes
    assert identity.serial in {found.serial for found in bench.survey()}


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["mock"], "is there already"),
        (["mock", "--host", "srv1=root@a"], "give either LAB or --host"),
        ([], "nothing to discover"),
        (["--host", "srv1=root@a"], "--name is missing"),
        (["--name", "1x", "--host", "srv1=root@a"], "--name 1x: give a name"),
        (["--name", "x", "--host", "root@a"], "write NAME=user@host"),
        (["--name", "x", "--host", "a=root@a", "--host", "a=root@b"], "a server is named a already"),
        (["--name", "x", "--host", "a=root@a:65536"], "'a:65536' is no address"),
        (["--name", "x", "--host", "a=@a"], "write NAME=user@host"),
    ],
)
def test_what_cannot_be_discovered_is_said(
    words: list[str], told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mock.yaml").write_text("precious", encoding="utf-8")
    assert main(["lab", "discover", *words]) == 2
    assert told in capsys.readouterr().err
    assert Path("mock.yaml").read_text(encoding="utf-8") == "precious"


def test_a_rack_without_a_description_is_discovered_by_its_hosts(
    mock: Bench, home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    endpoints = LabState.of("mock").endpoints()
    login, out = endpoints["ssh"], tmp_path / "rack7.yaml"
    words = ["--known-hosts", login["known_hosts"], "--key", login["key_file"], "--out", str(out)]
    words += ["--switch", f"tcp://{endpoints['switch']['tcp']}", "--name", "rack7"]
    for server in ("srv1", "srv2"):
        words += ["--host", f"{server}={login['user']}@{endpoints['servers'][server]['ssh']}"]
    assert main(["lab", "discover", *words]) == 0
    assert "2 servers, 14 drives" in capsys.readouterr().out
    lab = load_lab(out)
    assert {drive.serial for drive in lab.drives.values()} == {
        mock.lab.drives[name].serial for server in ("srv1", "srv2") for name in mock.lab.baseline[server].values()
    }
    with ExitStack() as stack:
        bench = stack.enter_context(open_lab(lab, CLOCK, LabState.of(lab.name), None))
        assert check_cabling(bench, soon()) == []


def test_a_server_that_does_not_answer_is_named_and_nothing_is_written(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    login, out = LabState.of("mock").endpoints()["ssh"], tmp_path / "rack7.yaml"
    words = ["--known-hosts", login["known_hosts"], "--key", login["key_file"], "--out", str(out), "--name", "rack7"]
    assert main(["lab", "discover", *words, "--host", "gone=root@127.0.0.1:1"]) == 3
    assert "gone" in capsys.readouterr().err
    assert not out.exists()
