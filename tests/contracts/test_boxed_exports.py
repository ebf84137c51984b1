"""Exports of a box as nodes of physical servers: real drivers, mock peers; a second drive stands for the volume."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from rackloop.abilities import WritableDrive
from rackloop.errors import GuardRefused
from rackloop.lab import Lab, LabState, load_lab, once_online
from rackloop.safety import Guard, tenant_exports
from rackloop.safety.leases import LeaseTerms, leased
from rackloop.safety.store import open_store
from rackloop_drivers.block import HostPath
from rackloop_fixtures import Labels, Tenant, Workload
from rackloop_fixtures.subjects.tenant_boxes import ForeignBox, permit_behind
from rackloop_labs import Bench, open_leased
from rackloop_models.under_test import BoxFile
from tests.deadlines import CLOCK, soon
from tests.discovered_rack import erasable_rack

pytestmark = pytest.mark.usefixtures("own_machine")

TENANTS = [Tenant("t1", Workload(4096, 100))]


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with erasable_rack(tmp_path_factory, "boxed") as file:
        yield load_lab(file).model_copy(update={"controllers": (socket.gethostname(),)})


@contextmanager
def behind_and_volume(lab: Lab, folder: Path) -> Iterator[tuple[Bench, WritableDrive, HostPath]]:
    """A leased rack, the permit of the drive behind a box, and the path of the drive that stands for its volume."""
    (drive, behind), (_, volume) = list(lab.places.items())[:2]
    with ExitStack() as stack:
        store = open_store(folder / "store.sqlite", CLOCK)
        stack.callback(store.close)
        held = stack.enter_context(leased(lab, store, LeaseTerms()))
        bench = stack.enter_context(open_leased(lab, CLOCK, LabState.of(lab.name), held))
        for place in (behind, volume):
            once_online(bench.drive(*place), soon())
        path = bench.device(*volume)
        assert isinstance(path, HostPath)
        labels = Labels(bench, Guard(lab, held, seen=bench.survey()), 1)
        yield bench, stack.enter_context(permit_behind(labels, bench, drive, *behind, is_boxed=True)), path


def test_a_node_is_written_where_it_reports_what_it_was_said_to(lab: Lab, tmp_path: Path) -> None:
    with behind_and_volume(lab, tmp_path) as (bench, behind, path):
        # The box holds its drive, so that the guard claims the volume and not that.
        assert not behind.is_claimed
        seen = path.seen(soon())
        server = path.location.partition(":")[0]

        def permits(serial: str, size_bytes: int) -> tuple[WritableDrive, ...]:
            export = f"drive: {behind.drive_id}, server: {server}, size: {size_bytes} B, offset: 0 B"
            (file := tmp_path / "acme.yaml").write_text(
                f"box: acme\nexports:\n  - {{{export}, device: {seen.device}, serial: {serial}}}\n"
                f'  - {{{export}, device: "nbd://box.example/t2"}}\n'
            )
            box = ForeignBox(bench, BoxFile.load(file, lab)).serve(TENANTS, [], {})
            return tenant_exports(behind, [export.region for export in box.exports], soon())

        size_bytes = seen.identity.size_bytes
        (permit,) = permits(seen.identity.serial, size_bytes)
        with permit:
            assert permit.is_claimed
            assert permit.device.probe_target().startswith("/dev/disk/by-id/")
            assert (permit.drive_id, permit.serial) == (behind.drive_id, behind.serial)
        with pytest.raises(GuardRefused) as raised:
            permits("LUN7", size_bytes)
        assert f"the serial is described as LUN7, the export of tenant t1, {server}:{seen.device}" in str(raised.value)
        with pytest.raises(GuardRefused, match=rf"has {size_bytes} bytes, and its region {size_bytes - 4096}"):
            permits(seen.identity.serial, size_bytes - 4096)
