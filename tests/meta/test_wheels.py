"""Contents of the wheels."""

from __future__ import annotations

import stat
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

from tests.meta.tree import ROOT, files

PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check")


def _below(folder: Path) -> set[str]:
    """The files in ``folder``, relative to it."""
    return {str(path.relative_to(folder)) for path in files("") if path.is_relative_to(folder)}


def build(project: Path, into: Path) -> Path:
    """The wheel of ``project``, built without network."""
    options = ("--quiet", "--no-deps", "--no-index", "--no-build-isolation", "--wheel-dir", into)
    done = subprocess.run((*PIP, "wheel", *options, project), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (wheel,) = into.glob("*.whl")
    return wheel


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(ROOT, tmp_path_factory.mktemp("wheel"))


def test_the_wheel_is_pure_and_holds_code_and_data(wheel: Path) -> None:
    assert wheel.name.endswith("-py3-none-any.whl")
    names = set(ZipFile(wheel).namelist())
    folders = {"labs": "labs", "playbooks": "playbooks", "testplans": "testplans", "traces": "traces/samples"}
    data = {folder: _below(ROOT / source) for folder, source in folders.items()}
    data["labs"] = {name for name in data["labs"] if name.endswith(".yaml")}
    for folder, expected in data.items():
        missing = sorted(name for name in expected if f"rackloop_data/{folder}/{name}" not in names)
        assert expected
        assert not missing, f"of {folder} not in the wheel: {missing}"
    assert {"rackloop/py.typed", "rackloop_cli/main.py", "rackloop_labs/__init__.py"} <= names
    assert any(name.endswith("/licenses/LICENSE") for name in names)
    top = {name.split("/")[0] for name in names if ".dist-info/" not in name}
    assert sorted(name for name in top if not name.startswith("rackloop")) == []


def test_an_installed_wheel_finds_its_data(wheel: Path, tmp_path: Path) -> None:
    with ZipFile(wheel) as archive:
        archive.extractall(tmp_path)
    folders = ("labs", "playbooks", "testplans", "traces")
    program = f"from rackloop.data import data_path; print(*map(data_path, {folders}))"
    # -S: not even this checkout's editable install, which would be found otherwise.
    done = subprocess.run(
        (sys.executable, "-S", "-c", program),
        env={"PYTHONPATH": str(tmp_path)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == [str(tmp_path / "rackloop_data" / folder) for folder in folders]


def test_the_native_wheel_carries_the_programs_and_the_library(tmp_path: Path) -> None:
    wheel = build(ROOT / "native" / "wheel", tmp_path)
    assert "-py3-none-" in wheel.name
    assert not wheel.name.endswith("-any.whl")
    archive = ZipFile(wheel)
    for program in ("blobload", "drivesim", "hosttool", "rackd", "rackprobe", "storageswitch"):
        info = archive.getinfo(f"rackloop_native/bin/{program}")
        assert info.external_attr >> 16 & stat.S_IXUSR, f"{program} cannot be executed"
        assert archive.read(info)[:4] == b"\x7fELF"
    assert archive.read("rackloop_native/lib/librackloop_erasure.so")[:4] == b"\x7fELF"
