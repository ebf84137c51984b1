"""A simulated lab that is up, and the description of a physical one with its name."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rackloop.errors import LabError
from rackloop.lab import LabKind, LabState
from rackloop_labs.described import endpoints_of
from tests.unit.harness.sim_rack import described


def test_a_physical_rack_is_not_where_a_simulated_one_of_its_name_answers(tmp_path: Path) -> None:
    simulated = described(tmp_path, LabKind.MOCK)
    physical = simulated.model_copy(update={"kind": LabKind.PHYSICAL})
    state = LabState.of(simulated.name, root=tmp_path)
    with pytest.raises(LabError, match="is not up"):
        endpoints_of(simulated, state)
    lock = state.take()
    assert lock is not None
    try:
        state.endpoints_file.write_text('{"ssh": {}}')
        assert endpoints_of(simulated, state) == {"ssh": {}}
        assert endpoints_of(physical, state) is None
    finally:
        os.close(lock)
