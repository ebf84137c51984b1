"""Every file of tests on guests has the rack that its worker brings up."""

from __future__ import annotations

from tests.meta.tree import ROOT
from tests.virtual.rack_scheduling import RACKS, rack_of


def test_every_file_is_a_workers() -> None:
    files = {path.stem for path in (ROOT / "tests" / "virtual").glob("test_*.py")}
    assert files == {file for its in RACKS.values() for file in its}
    assert {rack_of(f"tests/virtual/{file}.py::test_it[a/b::c]") for file in files} == RACKS.keys()
