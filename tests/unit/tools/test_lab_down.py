"""A lab is not taken down under whoever works on it, unless it is taken from them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from rackloop.clock import RealClock
from rackloop.errors import EXIT_PASS, BadInput, LabError
from rackloop.lab import LabState, parts_of
from rackloop.safety.leases import Holder, Leases, RackLeased
from rackloop.safety.store import open_store
from rackloop_cli.lab import up_down as verb
from tests.unit.harness.sim_rack import described

ANN = Holder("ann", "there")


class Up:
    """A lab that is up, as long as nobody takes it down."""

    def __init__(self, folder: Path) -> None:
        self.lab = described(folder)
        self.state = LabState.of(self.lab.name)
        self._lock = self.state.take()

    @property
    def is_up(self) -> bool:
        return self._lock is not None

    def down(self) -> bool:
        if self._lock is None:
            return False
        os.close(self._lock)
        self._lock = None
        return True


@pytest.fixture
def up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Up]:
    monkeypatch.setenv("RACKLOOP_STATE_HOME", str(tmp_path / "state"))
    up = Up(tmp_path)
    monkeypatch.setattr(verb, "MockLab", lambda *_: up)
    yield up
    up.down()


@pytest.fixture
def leases(up: Up) -> Iterator[Leases]:
    with closing(open_store(up.state.store, RealClock())) as store:
        yield Leases(store, up.lab.name)


@pytest.mark.parametrize("holder", [Holder.here(), ANN], ids=["a process of the user", "somebody else"])
def test_a_lab_that_somebody_works_on_stays_up(up: Up, leases: Leases, holder: Holder) -> None:
    leases.request(parts_of(up.lab, ["srv1"]), holder, term_s=600.0)
    with pytest.raises(RackLeased, match=r"srv1.* held by .* \(--steal\)"):
        verb.down(str(up.lab.source))
    assert up.is_up


def test_a_lab_is_taken_down_under_somebody_once_it_is_taken_from_them(up: Up, leases: Leases) -> None:
    leases.request(parts_of(up.lab, ["srv1"]), ANN, term_s=600.0)
    with pytest.raises(BadInput, match="add --yes"):
        verb.down(str(up.lab.source), steal=True)
    assert up.is_up
    assert verb.down(str(up.lab.source), steal=True, yes=True) == EXIT_PASS
    assert not up.is_up
    [theft] = leases.thefts()
    assert (theft.previous_holder, theft.why, leases.held()) == ("ann@there", "taken for lab down", [])


def test_what_the_user_leased_before_does_not_keep_a_lab_up_and_stays_theirs(up: Up, leases: Leases) -> None:
    leases.request(parts_of(up.lab, ["srv1"]), Holder.here(bound=False), term_s=600.0)
    assert verb.down(str(up.lab.source)) == EXIT_PASS
    assert not up.is_up
    assert len(leases.held()) == 1


def test_a_lab_with_a_damaged_store_is_taken_down_all_the_same(up: Up, capsys: pytest.CaptureFixture[str]) -> None:
    up.state.store.write_bytes(b"no database" * 1000)
    assert verb.down(str(up.lab.source)) == EXIT_PASS
    assert not up.is_up
    assert "is damaged" in capsys.readouterr().err


def test_a_lab_whose_store_cannot_be_opened_is_taken_down_when_told_to(
    up: Up, capsys: pytest.CaptureFixture[str]
) -> None:
    # As on a disk that the lab itself has filled.
    up.state.store.mkdir()
    for given in ({}, {"steal": True}, {"yes": True}):
        with pytest.raises(LabError, match=r"lab down .* --steal --yes` takes it down, whichever holder has it"):
            verb.down(str(up.lab.source), **given)
    assert up.is_up
    assert verb.down(str(up.lab.source), steal=True, yes=True) == EXIT_PASS
    assert not up.is_up
    assert "its leases are not known: lab store" in capsys.readouterr().err


def test_a_lab_that_is_not_up_is_a_lab_that_is_down(up: Up, leases: Leases, capsys: pytest.CaptureFixture[str]) -> None:
    leases.request(parts_of(up.lab), ANN, term_s=600.0)
    up.down()
    assert verb.down(str(up.lab.source)) == EXIT_PASS
    assert capsys.readouterr().out == "lab bench was not up\n"
