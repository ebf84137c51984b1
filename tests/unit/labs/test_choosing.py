"""Servers chosen by their tags: the first that is in service and free, no server twice."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from rackloop.errors import BadInput
from rackloop.lab import Lab, LabState, Part, load_lab
from rackloop.safety.leases import Leases, LeaseTerms, obtain
from rackloop.safety.maintenance import OutOfServiceStore
from rackloop.safety.store import open_lab_store
from rackloop_labs.choosing import chosen_servers
from tests.deadlines import CLOCK

LAB = """
name: tagged
kind: mock
fabric: {driver: flexfabric, ports: 40}
servers:
  srv1: {ports: {p0: 1}, tags: [jbod]}
  srv2: {ports: {p0: 5}, tags: [nvme8, big]}
  srv3: {ports: {p0: 6}, tags: [nvme8]}
  srv4: {ports: {p0: 7}, tags: [nvme8]}
drives:
  d01: {profile: sas-ssd, serial: S1, wwn: 5000c500a0000001, size: 64 MiB, port: 21, scratch: true}
"""


@pytest.fixture
def lab(tmp_path: Path, state_home: Path) -> Lab:
    (tmp_path / "lab.yaml").write_text(LAB)
    return load_lab(tmp_path / "lab.yaml")


def test_names_stay_and_tags_are_chosen(lab: Lab) -> None:
    assert chosen_servers(lab, ()) == ()
    assert chosen_servers(lab, ("srv9",)) == ("srv9",)
    assert chosen_servers(lab, ("tag:nvme8",)) == ("srv2",)
    assert chosen_servers(lab, ("srv2", "tag:nvme8", "tag:nvme8")) == ("srv2", "srv3", "srv4")


def test_what_is_held_or_out_of_service_is_passed_over(lab: Lab) -> None:
    with closing(open_lab_store(lab, LabState.of(lab.name), CLOCK)) as store:
        leases = Leases(store, lab.name)
        terms = LeaseTerms(servers=("srv2",), purpose="something else")
        lease, _ = obtain(leases, terms.parts_of(lab, leases), terms)
        OutOfServiceStore(store, lab.name).maintain(Part.server("srv3"), "a fan", "somebody")
        assert chosen_servers(lab, ("tag:nvme8",)) == ("srv4",)
        # All that are left are held: the first is waited for.
        assert chosen_servers(lab, ("srv4", "tag:nvme8")) == ("srv4", "srv2")
        leases.release(lease)


def test_within_a_lease_it_is_one_of_the_lease(lab: Lab) -> None:
    with closing(open_lab_store(lab, LabState.of(lab.name), CLOCK)) as store:
        leases = Leases(store, lab.name)
        terms = LeaseTerms(servers=("srv1", "srv3"), purpose="by hand")
        lease, _ = obtain(leases, terms.parts_of(lab, leases), terms)
        assert chosen_servers(lab, ("tag:nvme8",)) == ("srv2",)
        assert chosen_servers(lab, ("tag:nvme8",), within=lease.id) == ("srv3",)
        with pytest.raises(BadInput, match=rf"lease {lease.id} has no server with the tag 'big'; srv2 would be one"):
            chosen_servers(lab, ("tag:big",), within=lease.id)
        with pytest.raises(BadInput, match="of srv2, srv3, srv4 each is wanted already, not in the lease or out"):
            chosen_servers(lab, ("tag:nvme8", "tag:nvme8"), within=lease.id)
        leases.release(lease)


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        (("tag:nvme",), r"no server of lab tagged has the tag 'nvme'; did you mean 'nvme8'\?"),
        (("tag:jbod", "tag:jbod"), "no further server with the tag 'jbod': of srv1 each is wanted already or out"),
    ],
)
def test_a_tag_that_gives_none_is_refused(lab: Lab, wanted: tuple[str, ...], said: str) -> None:
    with pytest.raises(BadInput, match=said):
        chosen_servers(lab, wanted)
