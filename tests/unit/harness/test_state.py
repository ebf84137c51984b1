"""Where a lab's state lives, and whether the lab is up."""

from __future__ import annotations

import fcntl
import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from rackloop.errors import BadInput, LabError
from rackloop.lab import LabState, state_root
from rackloop.lab import _state as state_module


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


def test_asking_whether_a_lab_is_up_keeps_nobody_from_asking_or_from_bringing_it_up(tmp_path: Path) -> None:
    state = LabState.of("one", root=tmp_path)
    assert not state.is_held()
    assert list(state.directory.iterdir()) == []
    lock = state.take()
    assert lock is not None
    os.close(lock)
    with (state.directory / "labd.lock").open("rb") as asker, ThreadPoolExecutor(1) as pool:
        fcntl.flock(asker, fcntl.LOCK_SH)
        assert not state.is_held()
        assert state.take() is None
        bringing_up = pool.submit(state.take)
        fcntl.flock(asker, fcntl.LOCK_UN)
        taken = bringing_up.result()
        assert taken is not None
        os.close(taken)


@pytest.mark.parametrize("kind", ["nfs4", "nfs", "cifs", "fuse.sshfs"])
def test_a_state_directory_that_other_machines_share_is_refused(tmp_path: Path, kind: str) -> None:
    device = tmp_path.stat().st_dev
    number = f"{os.major(device)}:{os.minor(device)}"
    mounts = tmp_path / "mountinfo"
    local = f"36 35 {number} / {tmp_path} rw,noatime master:1 - ext4 /dev/root rw\n"
    mounts.write_text(f"24 1 0:0 / / rw - {kind} filer:/export rw\n{local}")
    assert LabState.of("one", root=tmp_path, mounts=mounts).directory.is_dir()
    mounts.write_text(local.replace("ext4 /dev/root", f"{kind} filer:/export"))
    with pytest.raises(BadInput, match=f"is on {kind}, .*set RACKLOOP_STATE_HOME to a local disk"):
        LabState.of("one", root=tmp_path, mounts=mounts)


def test_a_file_system_without_locks_is_bad_input(tmp_path: Path) -> None:
    state = LabState.of("one", root=tmp_path)
    # What a file system without locks says of a file, the kernel says of no file at all.
    with pytest.raises(BadInput, match=r"cannot lock .*local disk"):
        state_module._locked(-1 & 0x7FFF, fcntl.LOCK_EX, state.directory / "labd.lock")
