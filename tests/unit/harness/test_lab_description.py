"""A lab description that is right: what it says is what the lab has."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from rackloop.errors import BadInput, NotSupported
from rackloop.lab import Lab, LabKind, Stack, find_lab, load_lab
from rackloop.portmap import PortMap
from rackloop_drivers.fabric.flexfabric import FlexFabricDriver

LABS = Path(__file__).parents[3] / "labs"


@pytest.fixture(scope="module")
def mock() -> Lab:
    return load_lab(LABS / "mock.yaml")


def test_the_mock_rack_is_the_reference_rack(mock: Lab) -> None:
    assert (mock.name, mock.kind, mock.store) == ("mock", LabKind.MOCK, "sqlite")
    assert (mock.fabric.driver, mock.fabric.ports) == ("flexfabric", 160)
    assert isinstance(mock.fabric, FlexFabricDriver)
    assert (mock.fabric.control.tcp, mock.fabric.control.serial) == ("auto", "auto")
    assert [server.stack for server in mock.servers.values()] == list(Stack)
    ports = [port for server in mock.servers.values() for port in server.ports.values()]
    assert len(ports) == len(set(ports))
    assert set(ports) == set(range(1, 25))
    assert len(mock.drives) == 32
    assert {drive.profile for drive in mock.drives.values()} == {"sata-ssd", "sata-hdd", "sas-hdd", "nvme-ssd"}
    assert [name for name, drive in mock.drives.items() if not drive.scratch] == ["d20"]
    assert [drive.expander_slot for drive in mock.drives.values() if drive.expander] == [0, 1, 2, 3]
    assert len({drive.size for drive in mock.drives.values()}) > 1
    assert mock.source == LABS / "mock.yaml"


def test_the_baseline_joins_every_server_port_to_a_drive(mock: Lab) -> None:
    pairs = mock.baseline_map()
    assert len(pairs) == 24
    assert pairs.peer_of(mock.switch_port("srv1", "p0")) == mock.where_is("d01") == 101
    assert mock.drives_of("srv2") == ["d03", "d04", "d10", "d14", "d31", "d32"]


def test_a_drive_behind_an_expander_is_where_the_expander_is(mock: Lab) -> None:
    assert {mock.where_is(name) for name in ("d21", "d22", "d23", "d24")} == {150}


def test_a_port_that_an_expander_is_joined_to_has_no_drive_to_itself(mock: Lab) -> None:
    assert list(mock.places)[:9] == ["d01", "d02", "d09", "d13", "d25", "d26", "d27", "d28", "d03"]
    assert mock.places["d09"] == ("srv1", "p2")
    expander = next(iter(mock.expanders))
    lab = mock.model_copy(update={"baseline": {"srv2": {"p1": expander, "p0": "d03"}, "srv1": {"p3": "d01"}}})
    assert lab.joined("srv2") == {"p1": expander, "p0": "d03"}
    assert list(lab.places.items()) == [("d03", ("srv2", "p0")), ("d01", ("srv1", "p3"))]


def test_text_survives_and_identifiers_are_normalised(tmp_path: Path) -> None:
    text = (LABS / "mock.yaml").read_text().replace("5000c500a0000001", "0x50:00:C5:00:A0:00:00:01", 1)
    text = text.replace("5000c500a0000002", "5000e50000000002").replace("RL000003", "no").replace("RL000004", "1e3")
    (tmp_path / "rack.yaml").write_text(text)
    drives = load_lab(tmp_path / "rack.yaml").drives
    assert [drives[name].serial for name in ("d03", "d04", "d09")] == ["no", "1e3", "00123456"]
    assert [drives[name].wwn for name in ("d01", "d02")] == ["5000c500a0000001", "5000e50000000002"]


def test_a_profile_says_what_the_file_does_not(mock: Lab) -> None:
    drive = mock.drives["d09"]
    assert (drive.model, drive.firmware) == ("RL NVMe SSD", "RL10")
    assert (drive.traits.protocol, drive.traits.sector_bytes, drive.traits.is_rotational) == ("nvme", 512, False)
    assert drive.identifiers == {"eui64": "0025385b71b00009"}
    assert drive.size == 8 << 30


def test_names_that_are_not_there_are_bad_input(mock: Lab) -> None:
    for ask in (
        lambda: mock.switch_port("srv9", "p0"),
        lambda: mock.where_is("d99"),
        lambda: mock.drives_of("srv9"),
        lambda: mock.joined("srv9"),
    ):
        with pytest.raises(BadInput, match="did you mean"):
            ask()
    with pytest.raises(BadInput, match="no port of srv1 is named 'p9'"):
        mock.switch_port("srv1", "p9")


def test_a_rack_without_a_switch_maps_nothing() -> None:
    lab = load_lab(LABS / "direct-attached.yaml")
    assert not lab.has_switch
    assert lab.baseline_map() == PortMap()
    assert lab.drives_of("node1") == ["boot-free1", "fast1"]
    assert lab.drives_of("node2") == ["shelf1-0", "shelf1-1"]
    assert lab.places == {"boot-free1": ("node1", "p0"), "fast1": ("node1", "p1")}
    with pytest.raises(NotSupported, match="no switch"):
        lab.where_is("fast1")
    with pytest.raises(NotSupported, match="no switch"):
        lab.switch_port("node1", "p0")


def test_a_physical_rack_says_where_everything_answers() -> None:
    lab = load_lab(LABS / "example-rack.yaml")
    assert isinstance(lab.fabric, FlexFabricDriver)
    assert lab.fabric.control.tcp == "switch.lab.example:5025"
    assert lab.servers["storage2"].ssh == "storage2.lab.example:2222"
    assert lab.servers["storage2"].known_hosts == LABS / "example-rack.known_hosts"
    assert lab.drives_of("storage2") == ["hdd1"]
    assert lab.drives["nvme1"].serial == "00987654"


def test_a_bare_name_is_looked_for_here_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert find_lab("mock") == LABS / "mock.yaml"
    (tmp_path / "labs").mkdir()
    (tmp_path / "labs" / "mock.yaml").write_text((LABS / "mock.yaml").read_text())
    assert load_lab("mock").source == tmp_path / "labs" / "mock.yaml"
    with pytest.raises(BadInput, match=r"no lab description is named 'mok' .*did you mean 'mock'\?"):
        load_lab("mok")
    with pytest.raises(BadInput, match=r"no lab description at racks/mock\.yaml"):
        load_lab("racks/mock.yaml")


NAMES = st.from_regex(r"[A-Za-z][A-Za-z0-9_-]{0,10}", fullmatch=True)
SERIALS = st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E), min_size=1, max_size=20)


@given(
    st.dictionaries(
        NAMES,
        st.tuples(SERIALS, st.integers(0, 2**64 - 1), st.integers(1, 10**6), st.booleans()),
        min_size=1,
        max_size=8,
    )
)
def test_what_is_written_is_what_is_read(
    tmp_path_factory: pytest.TempPathFactory, drives: dict[str, tuple[str, int, int, bool]]
) -> None:
    written = {
        name: {
            "profile": "sata-ssd",
            "serial": f"{at}{serial}",
            "wwn": f"{wwn:016x}"[:-1] + f"{at:x}",
            "size": f"{mib} MiB",
            "port": str(at + 10),
            "scratch": str(scratch).lower(),
        }
        for at, (name, (serial, wwn, mib, scratch)) in enumerate(drives.items())
    }
    fabric = {"driver": "flexfabric", "ports": "160"}
    # Longer than any name that is drawn: no two parts may have one.
    servers = {"the-only-server": {"ports": {"p": "1"}}}
    rack = {"name": "r", "kind": "mock", "fabric": fabric, "servers": servers, "drives": written}
    path = tmp_path_factory.mktemp("written") / "rack.yaml"
    path.write_text(yaml.safe_dump(rack), encoding="utf-8")
    read = load_lab(path).drives
    assert {name: (drive.serial, drive.wwn, drive.size, drive.port, drive.scratch) for name, drive in read.items()} == {
        name: (drive["serial"], drive["wwn"], drives[name][2] << 20, int(drive["port"]), drives[name][3])
        for name, drive in written.items()
    }


def test_a_name_by_path_may_stand_with_its_folder(tmp_path: Path) -> None:
    text = (LABS / "direct-attached.yaml").read_text()
    (tmp_path / "whole.yaml").write_text(text.replace("pci-0000", "/dev/disk/by-path/pci-0000"))
    plain, whole = load_lab(LABS / "direct-attached.yaml"), load_lab(tmp_path / "whole.yaml")
    assert plain.servers["node1"].paths
    assert [server.paths for server in whole.servers.values()] == [server.paths for server in plain.servers.values()]
    by_path = [drive.by_path for drive in plain.drives.values()]
    assert any(by_path)
    assert [drive.by_path for drive in whole.drives.values()] == by_path
