"""Where a lab's state lives, and whether the lab is up."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from rackloop.errors import BadInput, LabError
from rackloop.state import LabState, state_root


def test_the_root_is_the_users_choice(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("RACKLOOP_STATE_HOME", str(tmp_path))
    assert state_root() == tmp_path
    monkeypatch.delenv("RACKLOOP_STATE_HOME")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "xdg"))
    assert state_root() == tmp_path / "xdg" / "rackloop"


def test_labs_are_kept_apart_and_private(tmp_path: Path) -> None:
    one, other = LabState.of("one", root=tmp_path), LabState.of("other", root=tmp_path)
    assert one.directory != other.directory
    assert one.directory.stat().st_mode & 0o777 == 0o700
    assert {one.store.parent, one.log.parent, one.history.parent, one.endpoints_file.parent} == {one.directory}


def test_one_process_holds_a_lab(tmp_path: Path) -> None:
    state = LabState.of("one", root=tmp_path)
    assert not state.is_held()
    lock = state.take()
    assert lock is not None
    assert state.is_held()
    assert state.take() is None
    os.close(lock)
    assert not state.is_held()


def test_endpoints_are_those_of_a_lab_that_is_up(tmp_path: Path) -> None:
    state = LabState.of("one", root=tmp_path)
    state.endpoints_file.write_text(json.dumps({"pid": 1}))
    with pytest.raises(LabError, match="lab one is not up: start it"):
        state.endpoints()
    lock = state.take()
    assert lock is not None
    assert state.endpoints() == {"pid": 1}
    state.endpoints_file.unlink()
    with pytest.raises(LabError, match="lab one is not up"):
        state.endpoints()
    os.close(lock)


def test_last_words(tmp_path: Path) -> None:
    state = LabState.of("one", root=tmp_path)
    assert "it said nothing" in state.last_words()
    state.log.write_text("first\nlast\n\n")
    assert state.last_words() == "last"


def test_a_path_too_long_for_sockets(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="too long for Unix sockets"):
        LabState.of("x" * 100, root=tmp_path)


def test_a_directory_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(BadInput, match="cannot make the lab's state directory"):
        LabState.of("one", root=tmp_path / "file")


def test_a_lock_that_cannot_be_opened(tmp_path: Path) -> None:
    state = LabState.of("one", root=tmp_path)
    (state.directory / "labd.lock").mkdir()
    with pytest.raises(BadInput, match="cannot open"):
        state.is_held()
