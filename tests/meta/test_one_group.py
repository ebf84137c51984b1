"""The group of processes that `./rackloop test` and all that it starts are of, where sessions share the processors."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.meta.tree import ROOT

TEXT = (ROOT / "rackloop").read_text()
FUNCTION = TEXT[TEXT.index("join_one_group() {") :].partition("\n}\n")[0] + "\n}\n"
VERSION_1 = "9:name=systemd:/\n3:cpuset:/b\n2:cpu,cpuacct:{path}\n0::/c\n"


def joined(folder: Path, groups: str, *, hierarchy: str, file: str, is_shared: str = "1") -> bool:
    """Whether a process of ``groups``, as its /proc/self/cgroup has them, becomes one of the group."""
    proc, cgroups = folder / "proc", folder / "cgroup"
    for made in (proc / "self", proc / "sys/kernel", cgroups / hierarchy / "rackloop-tests"):
        made.mkdir(parents=True)
    (proc / "self/cgroup").write_text(groups)
    (proc / "sys/kernel/sched_autogroup_enabled").write_text(f"{is_shared}\n")
    (cgroups / hierarchy / "cgroup.procs").touch()
    (cgroups / hierarchy / "rackloop-tests" / file).touch()
    script = f'set -euo pipefail\n{FUNCTION}\njoin_one_group "$@"\necho "$$"\n'
    done = subprocess.run(
        ("bash", "-c", script, "rackloop", str(proc), str(cgroups)), capture_output=True, text=True, check=True
    )
    group = cgroups / hierarchy / "rackloop-tests/cgroup.procs"
    assert done.stderr == ""
    assert not group.exists() or group.read_text() == done.stdout
    return group.exists()


def test_sessions_that_share_the_processors_are_of_one_group(tmp_path: Path) -> None:
    assert joined(tmp_path / "1", VERSION_1.format(path="/"), hierarchy="cpu", file="cpu.shares")
    assert joined(tmp_path / "2", "0::/\n", hierarchy="", file="cpu.weight")


@pytest.mark.parametrize(
    ("groups", "hierarchy", "file", "is_shared"),
    [
        pytest.param(VERSION_1.format(path="/"), "cpu", "cpu.shares", "0", id="the kernel has them share nothing"),
        pytest.param(VERSION_1.format(path="/user"), "cpu", "cpu.shares", "1", id="they are of a group already"),
        pytest.param("0::/user.slice\n", "", "cpu.weight", "1", id="they are of a slice already"),
        pytest.param("0::/\n", "", "memory.high", "1", id="groups have no share of the processors"),
    ],
)
def test_processes_stay_where_they_are(tmp_path: Path, groups: str, hierarchy: str, file: str, is_shared: str) -> None:
    assert not joined(tmp_path, groups, hierarchy=hierarchy, file=file, is_shared=is_shared)


def test_a_kernel_without_groups_is_no_error(tmp_path: Path) -> None:
    script = f'set -euo pipefail\n{FUNCTION}\njoin_one_group "$@"\n'
    done = subprocess.run(
        ("bash", "-c", script, "rackloop", str(tmp_path), str(tmp_path)), capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
