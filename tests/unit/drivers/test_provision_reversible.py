"""The module that changes a host so that the change can be taken back, on files of this test's own."""

from __future__ import annotations

import json
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import ansible.module_utils  # type: ignore[import-untyped]
import pytest

from rackloop.data import data_path


def loaded(path: Path) -> Any:
    """What Ansible sends to a server, as a module: it belongs to no package."""
    spec = spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# Ansible sends along what a module imports from here.
ansible.module_utils.__path__.append(str(data_path("playbooks") / "module_utils"))
KEPT = loaded(data_path("playbooks") / "library" / "rackloop_reversible.py")
NVMET = loaded(data_path("playbooks") / "roles" / "nvme_tcp_target" / "files" / "nvmet.py")
NOTHING: dict[str, Any] = {
    "files": [], "modules": [], "values": {}, "mtus": {}, "offloads": {}, "offload_links": [],
    "interrupt_links": [], "interrupt_cpus": [], "units": [],
}  # fmt: skip
SYSTEMCTL = """#!/bin/sh
cd {folder}
case "$1" in
  is-enabled) if [ -e "$2.on" ]; then echo enabled; elif [ -e "$2.unit" ]; then echo disabled; else echo not-found; fi;;
  is-active) if [ -e "$2.runs" ]; then echo active; else echo inactive; fi;;
  enable) touch "$2.on";;
  disable) rm -f "$2.on";;
  start) touch "$2.runs";;
  stop) rm -f "$2.runs";;
esac
echo "$@" >> calls
"""
ETHTOOL = """#!/bin/sh
cd {folder}
if [ "$1" = --json ]; then cat features; else echo "$@" >> calls; fi
"""


class Host:
    """A host below a folder, and what was there before in a record beside it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.etc = folder / "etc"
        self.etc.mkdir()
        self.records = folder / "rackloop" / "kept"

    def make(self, *, only_say: bool = False, **wanted: Any) -> list[str]:
        record = KEPT.Record(str(self.records), "role")
        changes: list[str] = KEPT.make(NOTHING | wanted, record, only_say=only_say)
        return changes

    def restore(self, *, only_say: bool = False) -> list[str]:
        changes: list[str] = KEPT.restore(KEPT.Record(str(self.records), "role"), only_say=only_say)
        return changes

    def answer(self, state: str, *, only_say: bool = False, **wanted: Any) -> list[str]:
        """What a task returns whose changes something has to follow."""
        record = KEPT.Record(str(self.records), "role", is_followed=True)
        changes: list[str] = KEPT.answer(NOTHING | wanted | {"state": state}, record, only_say=only_say)
        return changes

    def file(self, name: str, content: str, mode: str = "0644") -> dict[str, str]:
        return {"path": str(self.etc / name), "content": content, "mode": mode}

    def program(self, name: str, text: str) -> None:
        path = self.folder / name
        path.write_text(text.format(folder=self.folder))
        path.chmod(0o755)

    def tree(self) -> dict[str, tuple[int, str]]:
        return {
            str(path.relative_to(self.etc)): (path.stat().st_mode, path.read_text() if path.is_file() else "")
            for path in self.etc.rglob("*")
        }


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    return Host(tmp_path)


def test_files_are_made_once_and_taken_back_exactly(host: Host) -> None:
    (host.etc / "old.conf").write_text("as it was\n")
    (host.etc / "old.conf").chmod(0o640)
    before = host.tree()
    files = [host.file("old.conf", "new\n", "0600"), host.file("deep/er/new.conf", "x\n")]
    assert host.make(files=files) == [f"{kind} {host.etc}/{name}" for kind, name in (
        ("file", "old.conf"), ("folder", "deep"), ("folder", "deep/er"), ("file", "deep/er/new.conf"))]  # fmt: skip
    assert host.tree()["old.conf"] == (0o100600, "new\n")
    assert host.make(files=files) == []
    assert len(host.restore()) == 4
    assert host.tree() == before
    assert host.restore() == []
    assert not (host.folder / "rackloop").exists()


def test_what_was_there_before_the_first_change_is_kept_through_later_ones(host: Host) -> None:
    (host.etc / "a").write_text("first")
    for content in ("second", "third"):
        host.make(files=[host.file("a", content)])
    host.restore()
    assert (host.etc / "a").read_text() == "first"


def test_a_folder_that_others_use_meanwhile_stays(host: Host) -> None:
    host.make(files=[host.file("shared/ours", "x")])
    (host.etc / "shared" / "theirs").write_text("y")
    host.restore()
    assert list(host.tree()) == ["shared", "shared/theirs"]


def test_only_saying_what_would_change_changes_nothing(host: Host) -> None:
    before = host.tree()
    assert host.make(only_say=True, files=[host.file("a", "x")]) == [f"file {host.etc}/a"]
    assert host.tree() == before
    assert not host.records.exists()
    host.make(files=[host.file("a", "x")])
    assert host.restore(only_say=True) == [f"file {host.etc}/a"]
    assert (host.etc / "a").exists()
    assert host.restore() == [f"file {host.etc}/a"]


def test_a_change_is_returned_until_it_was_followed(host: Host) -> None:
    files, change = [host.file("a", "x")], f"file {host.etc}/a"
    for state in ("present", "restored"):
        assert host.answer(state, files=files) == [change]
        # As in a run in which what follows has failed: it may be another that finds out.
        assert host.answer(state, files=files) == [change]
        assert (host.etc / "a").exists() is (state == "present")
        assert host.answer("followed", only_say=True) == []
        assert host.answer(state, files=files) == [change]
        assert host.answer("followed") == []
        assert host.answer(state, files=files) == []
    assert not (host.folder / "rackloop").exists()


def test_a_change_is_to_be_followed_also_where_making_it_fails(host: Host) -> None:
    (host.etc / "dir").mkdir()
    files = [host.file("a", "x"), host.file("dir", "x")]
    with pytest.raises(IsADirectoryError):
        host.answer("present", files=files)
    assert host.answer("restored") == [f"file {host.etc}/a"]
    assert host.answer("restored") == [f"file {host.etc}/a"]


def test_a_link_in_the_place_of_a_file_is_refused(host: Host) -> None:
    (host.etc / "link").symlink_to("elsewhere")
    with pytest.raises(KEPT.Refused, match="is a link"):
        host.make(files=[host.file("link", "x")])


def test_the_record_is_on_disk_before_the_change(host: Host) -> None:
    (host.etc / "dir").mkdir()
    with pytest.raises(IsADirectoryError):
        host.make(files=[host.file("a", "x"), host.file("dir", "x")])
    (record,) = host.records.iterdir()
    assert [entry["name"] for entry in json.loads(record.read_text())] == [f"{host.etc}/a"]
    assert record.stat().st_mode & 0o777 == 0o600


def test_values_of_the_kernel_come_back(host: Host) -> None:
    value = host.etc / "tcp_rmem"
    value.write_text("4096\t131072\t6291456\n")
    assert host.make(values={str(value): "4096 131072 6291456"}) == []
    assert host.make(values={str(value): "1 2  3"}) == [f"value {value}"]
    assert value.read_text() == "1 2 3\n"
    host.restore()
    assert value.read_text().split() == ["4096", "131072", "6291456"]
    with pytest.raises(FileNotFoundError):
        host.make(values={str(host.etc / "none"): 1})


def test_units_run_and_are_as_they_were_afterwards(host: Host) -> None:
    host.program("systemctl", SYSTEMCTL)
    for name in ("ours.unit", "theirs.unit", "theirs.on", "theirs.runs"):
        (host.folder / name).touch()
    units = [{"name": "ours", "runs": True}, {"name": "theirs", "runs": False}, {"name": "none", "runs": False}]
    assert host.make(units=units) == ["unit ours", "unit theirs"]
    on = {path.name for path in host.folder.glob("*.on")} | {path.name for path in host.folder.glob("*.runs")}
    assert on == {"ours.on", "ours.runs"}
    assert host.make(units=units) == []
    assert host.restore() == ["unit theirs", "unit ours"]
    on = {path.name for path in host.folder.glob("*.on")} | {path.name for path in host.folder.glob("*.runs")}
    assert on == {"theirs.on", "theirs.runs"}
    assert (host.folder / "calls").read_text().splitlines()[-1] == "daemon-reload"


def test_offloads_are_switched_where_they_can_be(host: Host) -> None:
    host.program("ethtool", ETHTOOL)
    features = {
        "tx-tcp-segmentation": {"active": False, "fixed": False},
        "large-receive-offload": {"active": False, "fixed": True},
    }
    (host.folder / "features").write_text(json.dumps([features]))
    assert host.make(offload_links=["eth9"], offloads={"tso": True, "lro": True}) == ["offload eth9 tso"]
    assert (host.folder / "calls").read_text() == "--features eth9 tso on\n"
    with pytest.raises(KEPT.Refused, match="eth9 knows no feature nosuch"):
        host.make(offload_links=["eth9"], offloads={"nosuch": True})


def test_a_program_that_fails_or_is_missing_is_named(host: Host) -> None:
    with pytest.raises(KEPT.Refused, match=r"modprobe( is not installed| no_such_module: )"):
        host.make(modules=["no_such_module"])


def test_the_mtu_of_a_link_is_read_from_the_kernel(host: Host) -> None:
    mtu = int(Path("/sys/class/net/lo/mtu").read_text())
    assert host.make(mtus={"lo": mtu}) == []
    with pytest.raises(OSError, match="No such device"):
        host.make(mtus={"no-such-link": 9000})


def test_an_nvme_target_is_offered_by_folders_and_links(tmp_path: Path) -> None:
    """The kernel's folders bring their attributes with them; plain ones show what was written where."""
    said = {
        "subsystem": "nqn.s",
        "devices": ["/dev/sdb", "/dev/sdc"],
        "hosts": ["nqn.h"],
        "address": "::",
        "port": 4420,
    }
    offer = NVMET.Offer(tmp_path, said)
    for _ in range(2):
        offer.start()
    subsystem, port = tmp_path / "subsystems" / "nqn.s", tmp_path / "ports" / "4420"
    assert (subsystem / "attr_allow_any_host").read_text() == "0"
    assert [(subsystem / "namespaces" / n / "device_path").read_text() for n in "12"] == said["devices"]
    assert (subsystem / "namespaces" / "2" / "enable").read_text() == "1"
    assert (subsystem / "allowed_hosts" / "nqn.h").resolve() == tmp_path / "hosts" / "nqn.h"
    assert (port / "subsystems" / "nqn.s").resolve() == subsystem
    assert (port / "addr_trsvcid").read_text() == "4420"
