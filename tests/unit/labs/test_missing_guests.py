"""The tests of guests are skipped for what the machine lacks, and for nothing else."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from rackloop.errors import BadInput
from rackloop_labs.virtual_rack.prerequisites import (
    require_memory,
    require_name_space,
    require_programs,
    require_room,
)
from tests.e2e.command_line import Ended
from tests.virtual.missing_guests import REQUIRED, went_well


def too_little_memory(folder: Path) -> None:
    (folder / "meminfo").write_text("MemAvailable: 1024 kB\n")
    require_memory(3, 640, folder / "meminfo")


LACKS: list[Callable[[Path], None]] = [
    lambda _: require_programs(to_build=True, find=lambda _: None),
    too_little_memory,
    lambda folder: require_room(folder, 4096, "the image", lambda _: 0),
    lambda _: require_name_space("unshare: Operation not permitted"),
]


@pytest.mark.parametrize("require", LACKS)
def test_what_the_machine_lacks_skips_the_tests_unless_it_must_have_guests(
    require: Callable[[Path], None], tmp_path: Path
) -> None:
    with pytest.raises(BadInput) as lacking:
        require(tmp_path)
    ended = Ended(2, "", f"rackloop: lab virtual did not come up: {lacking.value}\n")
    with pytest.raises(pytest.skip.Exception, match="no guests on this machine"):
        went_well(ended, {})
    with pytest.raises(AssertionError):
        went_well(ended, {REQUIRED: "1"})


def test_a_machine_without_a_network_skips_them() -> None:
    said = "rackloop: Debian's packages cannot be downloaded: Failed to fetch; is there a network?\n"
    with pytest.raises(pytest.skip.Exception, match="is there a network"):
        went_well(Ended(3, "", said), {})


@pytest.mark.parametrize("said", ["rackloop: No such command 'build'\n", "", "rackloop: lab virtual is up already\n"])
def test_any_other_refusal_is_a_failure(said: str) -> None:
    with pytest.raises(AssertionError):
        went_well(Ended(2, "", said), {})
    went_well(Ended(0, "", ""), {})
