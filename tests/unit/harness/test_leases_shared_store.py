"""Nobody leases a physical rack in a store that others who control it do not see."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from rackloop.clock import VirtualClock
from rackloop.errors import BadInput, LabError
from rackloop.lab import Lab, LabKind
from rackloop.safety.leases import _shared_store, leased, leases_of
from rackloop.safety.store import Store, open_store
from tests.unit.harness.sim_rack import described

HERE = socket.gethostname()


@pytest.fixture
def stack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ExitStack]:
    monkeypatch.setattr(_shared_store, "_SHARED", tmp_path)
    with ExitStack() as stack:
        yield stack


def store(stack: ExitStack, file: Path) -> Store:
    file.parent.mkdir(exist_ok=True)
    return stack.enter_context(closing(open_store(file, VirtualClock())))


def physical(folder: Path, *controllers: str) -> Lab:
    return described(folder, LabKind.PHYSICAL).model_copy(update={"controllers": controllers})


@pytest.mark.parametrize("controllers", [(), ("elsewhere",), (HERE, "elsewhere")], ids=["none", "another", "two"])
def test_a_file_serves_a_physical_rack_that_is_worked_on_from_its_machine_alone(
    stack: ExitStack, tmp_path: Path, controllers: tuple[str, ...]
) -> None:
    lab = physical(tmp_path, *controllers)
    with pytest.raises(BadInput, match=r"say `controllers: \[.*\]` .* or name the store .* postgresql://"):
        stack.enter_context(leased(lab, store(stack, tmp_path / "store.sqlite")))
    assert leases_of(physical(tmp_path, f"{HERE}.lab.example"), store(stack, tmp_path / "store.sqlite")).held() == []


def test_two_users_of_a_machine_do_not_lease_a_physical_rack_each_in_a_file_of_their_own(
    stack: ExitStack, tmp_path: Path
) -> None:
    lab, anns, bobs = physical(tmp_path, HERE), tmp_path / "ann" / "store.sqlite", tmp_path / "bob" / "store.sqlite"
    for _ in range(2):
        leases_of(lab, store(stack, anns))
    said = rf"has its leases on this machine in {anns}, as .* of user .* says, and this is {bobs}"
    with pytest.raises(BadInput, match=said) as refused:
        leases_of(lab, store(stack, bobs))
    claim = tmp_path / "rackloop-store-of-bench"
    assert f"may delete {claim}" in str(refused.value)
    claim.unlink()
    leases_of(lab, store(stack, bobs))
    assert [path.name for path in tmp_path.glob("rackloop-*")] == [claim.name]


def test_a_simulated_rack_is_of_whoever_has_it(stack: ExitStack, tmp_path: Path) -> None:
    for user in ("ann", "bob"):
        leases_of(described(tmp_path), store(stack, tmp_path / user / "store.sqlite"))


def _link(claim: Path) -> None:
    claim.symlink_to("/etc/passwd")


def _text(claim: Path) -> None:
    claim.write_text("\x1b[2Jno path")


@pytest.mark.parametrize("make", [os.mkfifo, _link, Path.mkdir, _text], ids=["fifo", "link", "folder", "text"])
def test_what_somebody_else_put_in_the_way_is_named_and_neither_waited_for_nor_followed(
    stack: ExitStack, tmp_path: Path, make: Callable[[Path], None]
) -> None:
    claim = tmp_path / "rackloop-store-of-bench"
    make(claim)
    with pytest.raises(LabError, match=f"which store lab bench has.*look at {claim}"):
        leases_of(physical(tmp_path, HERE), store(stack, tmp_path / "store.sqlite"))
    assert [path.name for path in tmp_path.glob("rackloop-*")] == [claim.name]
