"""Where the native programs, and the native library, are looked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from rackloop.errors import ToolError
from rackloop.native import BIN_VARIABLE, find_binary, find_library


def test_the_variable_names_the_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(BIN_VARIABLE, str(tmp_path))
    program = tmp_path / "rackprobe"
    program.touch(mode=0o755)
    assert find_binary("rackprobe") == program


def test_programs_for_other_machines_lie_in_a_folder_of_their_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(BIN_VARIABLE, str(tmp_path))
    other = "riscv64"
    with pytest.raises(ToolError, match=f"program rackprobe for {other} is not at {tmp_path}/{other}/rackprobe"):
        find_binary("rackprobe", other)
    program = tmp_path / other / "rackprobe"
    program.parent.mkdir()
    program.touch(mode=0o755)
    assert find_binary("rackprobe", other) == program


@pytest.mark.parametrize("mode", [None, 0o644], ids=["missing", "not a program"])
def test_where_the_variable_is_wrong_nothing_else_is_tried(
    mode: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(BIN_VARIABLE, str(tmp_path))
    if mode is not None:
        (tmp_path / "rackd").touch(mode=mode)
    with pytest.raises(ToolError, match=f"rackd is not at .*{BIN_VARIABLE} must name"):
        find_binary("rackd")


def test_an_installed_wheel_comes_before_the_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "rackloop_native"
    (package / "bin").mkdir(parents=True)
    (package / "__init__.py").touch()
    program = package / "bin" / "rackd"
    program.touch(mode=0o755)
    monkeypatch.delenv(BIN_VARIABLE, raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    assert find_binary("rackd") == program


def test_the_library_is_looked_for_like_the_programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "rackloop_native"
    (package / "lib").mkdir(parents=True)
    (package / "__init__.py").touch()
    library = package / "lib" / "librackloop_erasure.so"
    library.touch()
    monkeypatch.delenv(BIN_VARIABLE, raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    assert find_library("rackloop_erasure") == library
    monkeypatch.setenv(BIN_VARIABLE, str(tmp_path))
    with pytest.raises(ToolError, match=f"library librackloop_erasure.so is not at {tmp_path}.*{BIN_VARIABLE} must"):
        find_library("rackloop_erasure")
