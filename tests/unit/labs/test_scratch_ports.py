"""Server ports whose drives may be erased: those of somebody's drives are left out."""

from __future__ import annotations

import pytest

from rackloop.errors import NotSupported
from rackloop.lab import Lab, load_lab
from rackloop_labs.scratch_ports import first_scratch_drives, first_scratch_ports, kept_circuits, scratch_ports


def without_scratch(lab: Lab, *names: str) -> Lab:
    kept = {name: drive.model_copy(update={"scratch": False}) for name, drive in lab.drives.items() if name in names}
    return lab.model_copy(update={"drives": {**lab.drives, **kept}})


def test_somebodys_drive_is_at_no_scratch_port() -> None:
    lab = load_lab("mock")
    joined = dict(lab.joined("srv1"))
    assert scratch_ports(lab, "srv1") == joined
    port, drive = next(iter(joined.items()))
    assert scratch_ports(without_scratch(lab, drive), "srv1") == {
        name: other for name, other in joined.items() if name != port
    }


def test_the_first_ports_pass_over_somebodys_drive() -> None:
    lab = load_lab("mock")
    first, second, third = list(lab.joined("srv1").items())[:3]
    watched, disturbed = first_scratch_ports(without_scratch(lab, first[1]), 2)
    assert (watched["srv1"], disturbed["srv1"]) == (second[0], third[0])
    assert watched.keys() == disturbed.keys() == lab.servers.keys()
    assert first_scratch_drives(without_scratch(lab, first[1]), 2)[:2] == [second[1], third[1]]


def test_a_server_with_too_few_is_left_out_and_a_rack_without_one_is_refused() -> None:
    lab = load_lab("mock")
    [ports] = first_scratch_ports(without_scratch(lab, *lab.joined("srv2").values()), 1)
    assert ports.keys() == lab.servers.keys() - {"srv2"}
    with pytest.raises(NotSupported, match="no server of lab mock has 2 scratch drives at its baseline"):
        first_scratch_ports(without_scratch(lab, *lab.drives), 2)


def test_circuits_are_kept_of_drives_that_may_not_be_erased_alone_or_in_an_expander() -> None:
    assert list(kept_circuits(load_lab("virtual"))) == [(10, 106)]
    mock = load_lab("mock")
    # Its only drive that is not scratch is at no server.
    assert not list(kept_circuits(mock))
    joined = mock.model_copy(update={"baseline": {"srv1": {"p0": "d01", "p1": "exp1"}}})
    assert list(kept_circuits(without_scratch(joined, "d22"))) == [(2, 150)]
    assert not list(kept_circuits(load_lab("direct-attached")))
