"""Permits of tenants and arrays: derived from those of their drives, and worth no more than they are."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import pytest

from rackloop.abilities import BlockUsage, DriveIdentity, WritableDrive
from rackloop.abilities.inventory import SeenDrive
from rackloop.clock import Deadline
from rackloop.errors import BadInput, GuardRefused, LabError
from rackloop.lab import Lab, load_lab
from rackloop.safety import TenantRegion, array_export, tenant_exports
from rackloop_drivers.block import NbdExport
from tests.unit.harness.guard_case import DEADLINE, Case, SimDevice

MIB = 1 << 20
SERIAL = {"serial": "LUN7"}


@pytest.fixture
def case() -> Case:
    described: Lab = load_lab("mock")
    return Case.sound(described)


def export(size_bytes: int = 8 * MIB, **of_device: object) -> SimDevice:
    return SimDevice(size_bytes, location="srv1:/dev/t", **of_device)  # type: ignore[arg-type]


def regions(*places: tuple[int, int], reported: Mapping[str, str] | None = None) -> list[TenantRegion]:
    """Tenants t1, t2, ... with a region each, by offset and size, and an export of just that size."""
    return [
        TenantRegion(f"t{number}", export(size, reported=reported or {}), offset, size)
        for number, (offset, size) in enumerate(places, 1)
    ]


def reasons(writable: WritableDrive, divided: Sequence[TenantRegion]) -> str:
    with pytest.raises(GuardRefused) as raised:
        tenant_exports(writable, divided, DEADLINE)
    assert raised.value.exit_code == 2
    assert not writable.has_tenants
    return "; ".join(raised.value.reasons)


def test_each_tenant_writes_its_export_because_the_drive_is_permitted(case: Case) -> None:
    wanted = regions((0, 8 * MIB), (8 * MIB, 8 * MIB))
    with case.mint() as writable:
        permits = tenant_exports(writable, wanted, DEADLINE)
        assert [permit.device for permit in permits] == [region.device for region in wanted]
        assert {(permit.drive_id, permit.serial) for permit in permits} == {(writable.drive_id, writable.serial)}
        assert writable.has_tenants
        for permit in permits:
            permit.close()
            permit.close()
        assert not writable.has_tenants
        with pytest.raises(LabError, match="given back"):
            permits[0].require()
        writable.require()


def test_a_permit_is_worth_nothing_once_that_of_the_drive_is_closed(case: Case) -> None:
    writable = case.mint()
    (permit,) = tenant_exports(writable, regions((0, 8 * MIB)), DEADLINE)
    writable.close()
    with pytest.raises(LabError, match="given back"):
        _ = permit.device
    with pytest.raises(LabError, match="given back"):
        tenant_exports(writable, regions((0, 8 * MIB)), DEADLINE)


def test_a_permit_ends_where_another_drive_took_the_place(case: Case) -> None:
    with case.mint() as writable:
        (permit,) = tenant_exports(writable, regions((0, 8 * MIB)), DEADLINE)
        case.device.claims[0].exchanged = "RL999999"
        with pytest.raises(GuardRefused, match="its serial is RL999999"):
            permit.require()


def test_exports_are_claimed_and_given_back(case: Case) -> None:
    (region,) = regions((0, 8 * MIB))
    with case.mint() as writable:
        (permit,) = tenant_exports(writable, [region], DEADLINE)
        assert permit.is_claimed
        permit.close()
    assert isinstance(region.device, SimDevice)
    assert [claim.is_held for claim in region.device.claims] == [False]


def test_nothing_stays_claimed_after_a_refusal(case: Case) -> None:
    divided = regions((0, 8 * MIB), (4 * MIB, 8 * MIB))
    with case.mint() as writable:
        assert reasons(writable, divided) == f"the regions of tenants t1 and t2 overlap at byte {4 * MIB}"
    claims = [claim for region in divided if isinstance(region.device, SimDevice) for claim in region.device.claims]
    assert len(claims) == 2
    assert not any(claim.is_held for claim in claims)


@pytest.mark.parametrize(
    ("places", "said"),
    [
        (((0, 8 * MIB), (0, 8 * MIB)), "the regions of tenants t1 and t2 overlap at byte 0"),
        (((8 * MIB, 8 * MIB), (0, 9 * MIB)), f"the regions of tenants t2 and t1 overlap at byte {8 * MIB}"),
        (((-1, MIB),), "the region of tenant t1, bytes -1 to 1048575, is not within the"),
        (((1 << 50, MIB),), "is not within the"),
        (((0, 0),), "is not within the"),
        ((), "it was to be divided among no tenants"),
    ],
)
def test_regions_lie_apart_and_on_the_drive(case: Case, places: Sequence[tuple[int, int]], said: str) -> None:
    with case.mint() as writable:
        assert said in reasons(writable, regions(*places))


def test_the_last_byte_of_the_drive_may_be_a_tenants(case: Case) -> None:
    with case.mint() as writable:
        whole = regions((0, writable.size_bytes))
        (permit,) = tenant_exports(writable, whole, DEADLINE)
        permit.close()
        assert "is not within" in reasons(writable, regions((1, writable.size_bytes)))


def test_a_tenant_has_one_region(case: Case) -> None:
    one, other = regions((0, MIB), (MIB, MIB))
    with case.mint() as writable:
        assert reasons(writable, [one, replace(other, tenant="t1")]) == "tenant t1 has more than one region"


def test_a_permit_is_divided_once(case: Case) -> None:
    with case.mint() as writable:
        (permit,) = tenant_exports(writable, regions((0, MIB)), DEADLINE)
        for divided, said in ((permit, "not divided again"), (writable, "divided among tenants already")):
            with pytest.raises(GuardRefused, match=said):
                tenant_exports(divided, regions((MIB, MIB)), DEADLINE)
        permit.close()
        tenant_exports(writable, regions((MIB, MIB)), DEADLINE)[0].close()


EXPORTS: dict[str, tuple[SimDevice, str]] = {
    "another serial": (
        export(reported={"serial": "LUN8"}),
        "the serial is described as LUN7, the export of tenant t1, srv1:/dev/t, reports LUN8",
    ),
    "no serial": (export(), "the export of tenant t1, srv1:/dev/t, reports no serial"),
    "another size": (export(9 * MIB, reported=SERIAL), f"has {9 * MIB} bytes, and its region {8 * MIB}"),
    "mounted": (export(reported=SERIAL, used=BlockUsage(("mounted at /srv",))), "is in use: mounted at /srv"),
    "boot drive": (export(reported=SERIAL, used=BlockUsage((), is_boot_drive=True)), "is the boot drive of its server"),
    "claimed": (export(reported=SERIAL, holder="mdadm"), "the export of tenant t1: cannot be claimed: mdadm holds it"),
}


@pytest.mark.parametrize("kind", EXPORTS)
def test_an_export_is_what_it_was_said_to_be(case: Case, kind: str) -> None:
    device, said = EXPORTS[kind]
    with case.mint() as writable:
        assert said in reasons(writable, [TenantRegion("t1", device, 0, 8 * MIB, SERIAL)])


class Asked(SimDevice):
    """An export that answers at once who it is."""

    def seen(self, deadline: Deadline) -> SeenDrive:
        identity = DriveIdentity("LUN", "LUN8", "1", "sas", self.size_bytes, {"wwn": "5000c500a0000001"})
        return SeenDrive("/dev/sdx", identity, usage=BlockUsage(("swap",)))


def test_one_answer_tells_of_identity_and_use(case: Case) -> None:
    with case.mint() as writable:
        said = reasons(writable, [TenantRegion("t1", Asked(8 * MIB), 0, 8 * MIB, SERIAL)])
    assert "the serial is described as LUN7" in said
    assert "is in use: swap" in said


NAMED = {"serial": "LUN7", "wwn": "0x5000c500a0000001"}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (NAMED, {"serial": "LUN7", "wwn": "naa.5000C500A0000001"}),
        (NAMED, {"serial": "LUN8", "wwn": "5000c500a0000001"}),
        (NAMED, SERIAL),
        (SERIAL, {"serial": " LUN7 ", "by_path": "pci-1"}),
    ],
)
def test_two_tenants_have_not_one_export(case: Case, one: Mapping[str, str], other: Mapping[str, str]) -> None:
    devices = [export(reported=reported) for reported in (one, other)]
    divided = [TenantRegion(f"t{n}", device, n * 8 * MIB, 8 * MIB) for n, device in enumerate(devices)]
    with case.mint() as writable:
        assert reasons(writable, divided) == "tenants t0 and t1 have one export"


def test_one_uri_is_one_export(case: Case) -> None:
    uris = ["nbd://box.example/vol1", "nbd://box.example/vol2", "nbd://box.example:10809/vol1"]
    devices = [NbdExport.of_uri(uri, 8 * MIB) for uri in uris]
    divided = [TenantRegion(f"t{n}", device, n * 8 * MIB, 8 * MIB) for n, device in enumerate(devices)]
    with case.mint() as writable:
        assert reasons(writable, divided) == "tenants t0 and t2 have one export"


@pytest.mark.parametrize("other", [{**NAMED, "wwn": "5000c500a0000002"}, {"serial": "LUN8"}, {"serial": ""}, {}])
def test_exports_that_report_different_drives_are_two(case: Case, other: Mapping[str, str]) -> None:
    devices = [export(reported=reported) for reported in (NAMED, other, {"serial": ""})]
    divided = [TenantRegion(f"t{n}", device, n * 8 * MIB, 8 * MIB) for n, device in enumerate(devices)]
    with case.mint() as writable:
        for permit in tenant_exports(writable, divided, DEADLINE):
            permit.close()


FORGERIES: dict[str, Callable[[WritableDrive], object]] = {
    "copied": copy.copy,
    "copied deeply": copy.deepcopy,
    "pickled": pickle.dumps,
    "made by hand": lambda real: WritableDrive(object(), "d01", "RL1", MIB, real.device, None, parents=(real,)),
}


@pytest.mark.parametrize("forgery", FORGERIES)
def test_a_permit_is_not_forged(case: Case, forgery: str) -> None:
    with (
        case.mint() as writable,
        tenant_exports(writable, regions((0, MIB)), DEADLINE)[0] as permit,
        pytest.raises(BadInput, match="ask the guard"),
    ):
        FORGERIES[forgery](permit)
    assert not writable.has_tenants


def against_array(drives: Sequence[WritableDrive]) -> str:
    with pytest.raises(GuardRefused) as raised:
        array_export(drives, export(), "8b2c")
    return "; ".join(raised.value.reasons)


def test_an_array_is_written_as_long_as_each_of_its_drives_may_be(case: Case) -> None:
    device = export()
    with case.mint() as one, Case.sound(case.lab, "d02").mint() as other:
        permit = array_export([one, other], device, "8b2c")
        assert (permit.drive_id, permit.serial, permit.size_bytes) == ("d01+d02", "8b2c", device.size_bytes)
        assert permit.device is device
        assert permit.is_derived
        assert not permit.is_claimed
        assert one.has_tenants
        assert other.has_tenants
        other.close()
        with pytest.raises(LabError, match="permission to write d02 was given back"):
            permit.require()
        permit.close()
        assert not one.has_tenants


def test_an_array_ends_where_another_drive_took_the_place_of_one(case: Case) -> None:
    with case.mint() as one, Case.sound(case.lab, "d02").mint() as other:
        permit = array_export([other, one], export(), "8b2c")
        case.device.claims[0].exchanged = "RL999999"
        with pytest.raises(GuardRefused, match="its serial is RL999999"):
            permit.require()


def test_an_array_is_of_whole_drives_each_in_one(case: Case) -> None:
    with case.mint() as one:
        assert against_array([]) == against_array([one, one]) == "an array is of several drives, each named once"
        (tenant,) = tenant_exports(one, regions((0, 8 * MIB)), DEADLINE)
        assert against_array([tenant]) == "d01 is permitted by a derived permission"
        assert against_array([one]) == "d01 has tenants or is in an array already"
        tenant.close()
        array_export([one], export(), "8b2c").close()
