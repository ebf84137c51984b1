"""The module that changes a host so that the change can be taken back, on files of this test's own."""

from __future__ import annotations

import errno
import json
import os
import shutil
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from rackloop.data import data_path
from tests.ansible_modules import loaded, module_of_ansible

KEPT = module_of_ansible("rackloop_reversible")
KINDS = import_module("ansible.module_utils.rackloop_kinds")
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
        self.kinds = KEPT.KINDS | {"interrupt": KINDS.Interrupts(folder)}

    def make(self, *, only_say: bool = False, **wanted: Any) -> list[str]:
        record = KEPT.Record(str(self.records), "role")
        changes: list[str] = KEPT.make(NOTHING | wanted, record, only_say=only_say, kinds=self.kinds)
        return changes

    def restore(self, *, only_say: bool = False) -> list[str]:
        record = KEPT.Record(str(self.records), "role")
        changes: list[str] = KEPT.restore(record, only_say=only_say, kinds=self.kinds)
        return changes

    def record(self, *entries: dict[str, Any]) -> None:
        """What an earlier task has written."""
        self.records.mkdir(parents=True)
        (self.records / "role.json").write_text(json.dumps(entries))

    def interrupts(self, **links: dict[int, str]) -> None:
        """Links with these interrupts and their CPUs, and none that were there before."""
        for folder in ("sys", "proc"):
            shutil.rmtree(self.folder / folder, ignore_errors=True)
        for link, numbers in links.items():
            for number, cpus in numbers.items():
                (self.folder / f"sys/class/net/{link}/device/msi_irqs/{number}").mkdir(parents=True)
                (self.folder / f"proc/irq/{number}").mkdir(parents=True)
                self.affinity(number).write_text(f"{cpus}\n")

    def affinity(self, number: int) -> Path:
        return self.folder / f"proc/irq/{number}/smp_affinity_list"

    def cpus(self) -> dict[int, str]:
        """Each interrupt's CPUs."""
        found = (self.folder / "proc/irq").iterdir()
        return {int(irq.name): self.affinity(int(irq.name)).read_text().strip() for irq in found}

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


def test_a_file_whose_folder_is_gone_since_then_comes_back(host: Host) -> None:
    (host.etc / "iscsi").mkdir()
    (host.etc / "iscsi" / "iscsid.conf").write_text("as it was\n")
    host.make(files=[host.file("first", "x"), host.file("iscsi/iscsid.conf", "new\n")])
    shutil.rmtree(host.etc / "iscsi")
    assert len(host.restore()) == 2
    assert (host.etc / "iscsi" / "iscsid.conf").read_text() == "as it was\n"
    assert not (host.folder / "rackloop").exists()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[",
        "{}",
        "[1]",
        '[{"kind": "file", "path": "a"}]',
        '{"kind": "file", "name": "/a"}',
        '[{"kind": "x", "name": "a", "before": 1}]',
    ],
)
def test_a_record_that_was_changed_by_hand_is_named(host: Host, text: str) -> None:
    host.record()
    (host.records / "role.json").write_text(text)
    with pytest.raises(KEPT.Refused, match=r"role\.json is no record"):
        host.restore()
    assert (host.records / "role.json").read_text() == text


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


DEALT: dict[str, Any] = {"interrupt_links": ["eth0"], "interrupt_cpus": [2, 3]}


def test_interrupts_are_dealt_to_cpus_and_given_back(host: Host) -> None:
    host.interrupts(eth0={9: "0-3", 31: "0-3", 120: "1"}, eth1={40: "0-3"})
    assert host.make(**DEALT) == ["interrupt eth0 0", "interrupt eth0 1", "interrupt eth0 2"]
    assert host.cpus() == {9: "2", 31: "3", 120: "2", 40: "0-3"}
    assert host.make(**DEALT) == []
    assert len(host.restore()) == 3
    assert host.cpus() == {9: "0-3", 31: "0-3", 120: "1", 40: "0-3"}


def test_interrupts_are_given_back_by_the_numbers_that_they_have_now(host: Host) -> None:
    """With a boot numbers are dealt anew, and so are the CPUs, by the unit of the role."""
    host.interrupts(eth0={30: "0-3", 31: "0-1"}, eth1={40: "0-3"})
    host.make(**DEALT)
    host.interrupts(eth0={50: "2", 51: "3"}, eth1={30: "5", 31: "5"})
    assert host.make(**DEALT) == []
    assert host.restore() == ["interrupt eth0 1", "interrupt eth0 0"]
    assert host.cpus() == {50: "0-3", 51: "0-1", 30: "5", 31: "5"}
    assert not (host.folder / "rackloop").exists()


@pytest.mark.parametrize(
    ("now", "changed"),
    [
        ({"eth0": {30: "2"}, "eth1": {31: "5"}}, {30: "0-3", 31: "5"}),
        ({"eth1": {30: "5", 31: "5"}}, {30: "5", 31: "5"}),
    ],
    ids=["a queue", "the link"],
)
def test_an_interrupt_that_is_gone_is_passed_over(
    host: Host, now: dict[str, dict[int, str]], changed: dict[int, str]
) -> None:
    (host.etc / "earlier").write_text("as it was")
    host.interrupts(eth0={30: "0-3", 31: "0-3"})
    host.make(files=[host.file("earlier", "new")], **DEALT)
    host.interrupts(**now)
    host.restore()
    assert host.cpus() == changed
    assert (host.etc / "earlier").read_text() == "as it was"
    assert not (host.folder / "rackloop").exists()


def test_an_interrupt_whose_file_or_cpus_are_gone_is_passed_over(host: Host) -> None:
    host.interrupts(eth0={30: "0-3", 31: "0-3"})
    host.make(**DEALT)
    host.affinity(30).unlink()
    host.affinity(31).unlink()
    # A file of the kernel that refuses these CPUs as that of an interrupt does where it has fewer.
    host.affinity(31).symlink_to("/proc/self/oom_score_adj")
    assert host.restore() == []
    assert not (host.folder / "rackloop").exists()
    with pytest.raises(KEPT.Gone, match="eth0 1: CPUs x: Invalid argument"):
        host.kinds["interrupt"].put("eth0 1", "x")


def test_what_was_recorded_of_links_and_numbers_that_are_gone_is_passed_over(host: Host) -> None:
    host.program("ethtool", "#!/bin/sh\necho netlink error: No such device >&2; exit 1\n")
    host.record(
        {"kind": "mtu", "name": "no-such-link", "before": 1500},
        {"kind": "offload", "name": "no-such-link tso", "before": True},
        {"kind": "value", "name": str(host.etc / "none"), "before": "1"},
        # Of an earlier version: by now the number may be another device's.
        {"kind": "value", "name": "/proc/irq/99999/smp_affinity_list", "before": "0-3"},
    )
    assert host.restore() == []
    assert not (host.folder / "rackloop").exists()


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


def test_offloads_have_the_short_names_of_ethtool(host: Host) -> None:
    host.program("ethtool", ETHTOOL)
    named = {
        "rx": "rx-checksumming",
        "tx": "tx-checksumming",
        "sg": "tx-scatter-gather",
        "gso": "generic-segmentation-offload",
        "gro": "generic-receive-offload",
        "rxvlan": "rx-vlan-offload",
        "txvlan": "tx-vlan-offload",
        "ntuple": "ntuple-filters",
        "rxhash": "receive-hashing",
    }
    # Of the several kinds of checksums together ethtool does not say whether they are fixed.
    features = {name: {"active": True, "fixed": None if short == "tx" else False} for short, name in named.items()}
    (host.folder / "features").write_text(json.dumps([features]))
    changes = host.make(offload_links=["eth9"], offloads=dict.fromkeys(named, False))
    assert changes == [f"offload eth9 {short}" for short in named]


def test_an_offload_that_is_off_by_a_word_is_switched_off(host: Host) -> None:
    """A plan's file makes true and false alone no text."""
    host.program("ethtool", ETHTOOL)
    features = {"large-receive-offload": {"active": True, "fixed": False}}
    (host.folder / "features").write_text(json.dumps([features]))
    assert host.make(offload_links=["eth9"], offloads={"lro": "off"}) == ["offload eth9 lro"]
    assert (host.folder / "calls").read_text() == "--features eth9 lro off\n"
    assert host.make(offload_links=["eth9"], offloads={"lro": "yes"}) == []
    with pytest.raises(KEPT.Refused, match="lro is 'of'; write true or false"):
        host.make(offload_links=["eth9"], offloads={"lro": "of"})


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


def test_what_was_offered_before_its_file_changed_is_offered_no_more(tmp_path: Path) -> None:
    """As a restart does it: stop and start of another version of the file, with another name at another port."""
    configfs, file, started = tmp_path / "nvmet", tmp_path / "nvmet.json", tmp_path / "started.json"
    service = NVMET.Service(file, configfs, started, shutil.rmtree)
    said = {"subsystem": "nqn.a", "devices": ["/dev/a"], "hosts": ["nqn.h"], "address": "127.0.0.1", "port": 4420}
    file.write_text(json.dumps(said))
    service.start()
    file.write_text(json.dumps(said | {"subsystem": "nqn.b", "port": 4421}))
    service.stop()
    assert [path.name for kind in ("subsystems", "ports", "hosts") for path in (configfs / kind).iterdir()] == []
    service.start()
    # One that was killed before it could stop is followed by a start alone.
    file.write_text(json.dumps(said | {"port": 4422}))
    service.start()
    assert [path.name for path in (configfs / "ports").iterdir()] == ["4422"]
    assert [path.name for path in (configfs / "subsystems").iterdir()] == ["nqn.a"]
    service.stop()
    assert not started.exists()


def test_of_an_offer_that_cannot_be_made_whole_nothing_is_left(tmp_path: Path) -> None:
    """systemd would not stop what did not start, and an undo could not remove the kernel modules below it."""
    configfs, file, started = tmp_path / "nvmet", tmp_path / "nvmet.json", tmp_path / "started.json"
    said = {"subsystem": "nqn.a", "devices": ["/dev/a"], "hosts": ["nqn.h"], "address": "127.0.0.1", "port": 4420}
    file.write_text(json.dumps(said))
    # A setting that is refused.
    (configfs / "ports" / "4420" / "addr_trsvcid").mkdir(parents=True)
    service = NVMET.Service(file, configfs, started, shutil.rmtree)
    with pytest.raises(IsADirectoryError):
        service.start()
    assert [path.name for kind in ("subsystems", "ports", "hosts") for path in (configfs / kind).iterdir()] == []
    assert not started.exists()


def test_ports_and_hosts_that_another_subsystem_uses_stay(tmp_path: Path) -> None:
    said = {"subsystem": "nqn.a", "devices": ["/dev/a"], "hosts": ["nqn.h"], "address": "127.0.0.1", "port": 4420}
    used = {tmp_path / "hosts" / "nqn.h": errno.EBUSY, tmp_path / "ports" / "4420": errno.ENOTEMPTY}

    def remove(folder: Path) -> None:
        if folder in used:
            raise OSError(used[folder], os.strerror(used[folder]))
        shutil.rmtree(folder)

    offer = NVMET.Offer(tmp_path, said, remove)
    offer.start()
    offer.stop()
    assert list((tmp_path / "subsystems").iterdir()) == []
    assert list((tmp_path / "ports" / "4420" / "subsystems").iterdir()) == []
    assert all(folder.is_dir() for folder in used)
