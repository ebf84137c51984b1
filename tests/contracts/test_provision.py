"""Playbooks on mock servers, with Ansible itself: what they change, what they leave, and how they fail."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from rackloop.clock import Deadline
from rackloop.errors import BadInput, DeadlineExceeded, LabError, NotConnected, ToolError
from rackloop.lab import FileSecret
from rackloop.plan import find_playbook
from rackloop.safety.leases import LeaseLost
from rackloop_drivers.host import SshAccess
from rackloop_drivers.provision import Provisioner, TaskDone, TaskStatus
from rackloop_drivers.provision._run_folder import end_leftovers, run_folder
from rackloop_labs.labd_control import HostState
from tests.deadlines import CLOCK
from tests.mock_rack import MockRack
from tests.playbooks import accesses, play

SCRATCH = ("/dev/disk/by-id/wwn-0x5000c500a0000003", "/dev/disk/by-id/ata-RL_SATA_SSD_RL000004")


def written(folder: Path, tasks: str) -> Path:
    """A playbook of these tasks."""
    indented = tasks.replace("\n", "\n    ")
    path = folder / "own.yml"
    path.write_text(f"- name: Own\n  hosts: servers\n  gather_facts: false\n  tasks:\n    {indented}\n")
    return path


def test_only_the_roles_that_are_chosen_run_with_the_variables_that_are_given(rack: MockRack) -> None:
    done = play(rack, "site", "srv2", roles=["iscsi_target"], variables={"iscsi_target_port": 9999})
    assert {task.role for task in done.tasks} == {"", "capabilities", "iscsi_target"}
    assert '"port": 9999' in rack.says("srv2", "cat /etc/rtslib-fb-target/saveconfig.json")
    assert play(rack, "undo", "srv2", roles=["iscsi_target"]).hosts["srv2"].changed == 1
    assert rack.ssh("srv2", "ls /etc/rtslib-fb-target/saveconfig.json").returncode == 2


def test_what_targets_offer_is_written_as_their_kernels_take_it(rack: MockRack) -> None:
    variables = {
        "iscsi_target_luns": {"a": SCRATCH[0], "b": SCRATCH[1]},
        "iscsi_target_initiators": ["iqn.2003-01.org.linux-iscsi.srv1:initiator"],
        "nvme_tcp_target_devices": [SCRATCH[0]],
        "nvme_tcp_target_hosts": ["nqn.h"],
    }
    play(rack, "site", "srv2", roles=["iscsi_target", "nvme_tcp_target"], variables=variables)
    offered = json.loads(rack.says("srv2", "cat /etc/rtslib-fb-target/saveconfig.json"))
    assert [(each["plugin"], each["name"], each["dev"]) for each in offered["storage_objects"]] == [
        ("block", "a", SCRATCH[0]),
        ("block", "b", SCRATCH[1]),
    ]
    (group,) = offered["targets"][0]["tpgs"]
    assert group["luns"][1] == {"index": 1, "storage_object": "/backstores/block/b"}
    assert [(portal["port"], portal["iser"]) for portal in group["portals"]] == [(3260, False)]
    assert group["node_acls"][0]["mapped_luns"][1] == {"index": 1, "tpg_lun": 1, "write_protect": False}
    said = json.loads(rack.says("srv2", "cat /etc/rackloop/nvmet.json"))
    assert (said["devices"], said["hosts"], said["port"]) == ([SCRATCH[0]], ["nqn.h"], 4420)


@pytest.mark.parametrize(
    ("role", "variables"),
    [
        ("iscsi_target", {"iscsi_target_luns": {"a": "/dev/sdb"}}),
        ("iscsi_target", {"iscsi_target_luns": {"a": "/dev/disk/by-id/ata-RL_SATA_SSD_RL000020"}}),
        ("iscsi_target", {"iscsi_target_luns": {"a": "/dev/disk/by-id/ata-RL_SATA_SSD_RL000003-part1"}}),
        ("nvme_tcp_target", {"nvme_tcp_target_devices": ["/dev/disk/by-id/wwn-0x5000c500a0000014"]}),
    ],
)
def test_what_is_not_a_scratch_drive_is_not_offered(rack: MockRack, role: str, variables: dict[str, Any]) -> None:
    with pytest.raises(LabError, match="is no name under /dev/disk/by-id of a drive that is marked scratch: true"):
        play(rack, "site", "srv3", roles=[role], variables=variables)
    assert rack.ssh("srv3", "ls /etc/rackloop/nvmet.json /etc/rtslib-fb-target/saveconfig.json").returncode == 2


def test_a_wrong_variable_is_named_before_anything_is_changed(rack: MockRack) -> None:
    with pytest.raises(LabError, match=r"role iscsi_target(?s:.*)srv2: .*iscsi_target_port"):
        play(rack, "site", "srv2", roles=["iscsi_target"], variables={"iscsi_target_port": "many"})


def test_a_task_that_fails_is_one_error_with_its_server_and_what_it_said(rack: MockRack, tmp_path: Path) -> None:
    own = written(tmp_path, "- name: Break it\n  ansible.builtin.shell: echo worn out >&2; exit 3")
    tasks: list[TaskDone] = []
    with pytest.raises(LabError) as caught:
        play(rack, own, "srv1", "srv2", tasks=tasks)
    assert str(caught.value).splitlines()[:2] == ["own.yml failed:", "  play 'Own', task 'Break it':"]
    for server in ("srv1", "srv2"):
        assert f"    {server}: non-zero return code; worn out" in str(caught.value)
    assert [task.status for task in tasks] == [TaskStatus.FAILED] * 2


def test_a_playbook_can_reboot_a_server(rack: MockRack, tmp_path: Path) -> None:
    before = rack.says("srv3", "cat /proc/sys/kernel/random/boot_id")
    tasks = "- ansible.builtin.reboot:\n    search_paths: [/opt/rackloop/bin, /sbin, /usr/sbin]"
    assert [task.status for task in play(rack, written(tmp_path, tasks), "srv3").tasks] == [TaskStatus.CHANGED]
    assert rack.says("srv3", "cat /proc/sys/kernel/random/boot_id") != before


def test_a_failure_that_the_playbook_takes_care_of_is_none(rack: MockRack, tmp_path: Path) -> None:
    rescued = (
        "- name: Try\n  block: [{name: Break it, ansible.builtin.command: 'false'}]\n"
        "  rescue: [{name: Mend it, ansible.builtin.command: 'true'}]"
    )
    done = play(rack, written(tmp_path, rescued), "srv1")
    assert [(task.task, task.status) for task in done.tasks] == [
        ("Break it", TaskStatus.FAILED),
        ("Mend it", TaskStatus.CHANGED),
    ]


@pytest.fixture
def scratch(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where temporary files go, with a path that is short enough for sockets."""
    with tempfile.TemporaryDirectory(prefix="rl-") as made:
        monkeypatch.setattr(tempfile, "tempdir", made)
        yield Path(made)


def contents(folder: Path) -> Iterator[bytes]:
    """The content of the files below a folder that a program is working in: what goes meanwhile is left out."""
    for directory, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):
                yield Path(directory, name).read_bytes()


def test_a_secret_is_in_no_message_and_in_no_file(rack: MockRack, tmp_path: Path, scratch: Path) -> None:
    """The server says it aloud; a task that is told not to log says nothing."""
    seen: list[bytes] = []
    (tmp_path / "password").write_text("hunter2hunter2")
    reach = accesses(rack, "srv1")["srv1"]
    shown = SshAccess(
        *(reach.name, reach.host, reach.known_hosts, reach.port, reach.user, reach.key_file),
        password=FileSecret(tmp_path / "password"),
        use_agent=False,
    )
    first = "- name: Look\n  ansible.builtin.command: 'true'\n"
    own = written(
        tmp_path, f"{first}- name: Tell\n  ansible.builtin.shell: echo {{{{ ansible_password }}}} >&2; exit 1"
    )
    provisioner = Provisioner(rack.lab, {"srv1": shown}, CLOCK)
    with pytest.raises(LabError, match=r"non-zero return code; \*{8}$"):
        provisioner.run(own, Deadline.after(CLOCK, 300), on_task=lambda _task: seen.extend(contents(scratch)))
    assert any(b"Host srv1" in content for content in seen)
    assert not any(b"hunter2hunter2" in content for content in seen)
    own.write_text(own.read_text() + "      no_log: true\n")
    with pytest.raises(LabError, match=r"withheld \(no_log\)$"):
        play(rack, own, reaches={"srv1": shown})


def test_a_server_without_power_is_not_reached_and_the_others_are_named_apart(rack: MockRack, tmp_path: Path) -> None:
    own = written(tmp_path, "- name: Look\n  ansible.builtin.command: 'true'")
    with rack.rackd() as rackd:
        rackd.request("power", Deadline.after(CLOCK, 10), target="server:srv3", on=False)
        try:
            with pytest.raises(NotConnected, match=r"own\.yml does not reach every server") as caught:
                play(rack, own, "srv2", "srv3")
        finally:
            rackd.request("power", Deadline.after(CLOCK, 10), target="server:srv3", on=True)
            rack.becomes("srv3", HostState.UP)
    assert list(caught.value.children) == ["srv3"]


def test_a_playbook_runs_on_the_servers_that_are_named(rack: MockRack, tmp_path: Path) -> None:
    own = written(tmp_path, "- name: Look\n  ansible.builtin.command: 'true'")
    provisioner = Provisioner(rack.lab, accesses(rack, "srv1", "srv2", "srv3"), CLOCK)
    done = provisioner.run(own, Deadline.after(CLOCK, 300), servers=["srv3", "srv1"])
    assert done.hosts.keys() == {"srv1", "srv3"}
    with pytest.raises(BadInput, match=r"^there is no server 'srv4' to provision; did you mean"):
        provisioner.run(own, Deadline.after(CLOCK, 300), servers=["srv4"])


def test_a_playbook_that_does_nothing_on_any_server_has_not_provisioned_them(rack: MockRack, tmp_path: Path) -> None:
    playbook = written(tmp_path, "- name: Look\n  ansible.builtin.command: 'true'")
    playbook.write_text(playbook.read_text().replace("hosts: servers", "hosts: servres"))
    with pytest.raises(BadInput, match=r"own\.yml did nothing on any server: .* `hosts: servers`"):
        play(rack, playbook, "srv1")


def test_a_host_key_that_is_not_the_known_one_is_refused(rack: MockRack, tmp_path: Path) -> None:
    known, other = accesses(rack, "srv1", "srv2").values()
    keys = [line.split(" ", 1)[1] for line in known.known_hosts.read_text().splitlines() if str(other.port) in line]
    (tmp_path / "known_hosts").write_text(f"[{known.host}]:{known.port} {keys[0]}\n")
    wrong = SshAccess(
        "srv1", known.host, tmp_path / "known_hosts", known.port, key_file=known.key_file, use_agent=False
    )
    own = written(tmp_path, "- name: Look\n  ansible.builtin.command: 'true'")
    with pytest.raises(NotConnected, match="Host key verification failed"):
        play(rack, own, reaches={"srv1": wrong})


def test_a_run_ends_at_its_deadline_and_leaves_no_process(rack: MockRack, tmp_path: Path) -> None:
    own = written(tmp_path, "- name: Take long\n  ansible.builtin.command: sleep 1000")
    # What Ansible takes to begin a task is nobody's promise: a run that had no time to is given more.
    for within_s in (6.0, 20.0, 60.0):
        with pytest.raises(DeadlineExceeded, match=r"own\.yml was ended at its deadline") as caught:
            play(rack, own, "srv1", within_s=within_s)
        if "in the task 'Take long'" in str(caught.value):
            break
    else:
        pytest.fail(str(caught.value))
    assert not [command for command in commands() if str(own) in command]


def commands() -> Iterator[str]:
    """The command lines of the processes of this session's user."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            with contextlib.suppress(OSError):
                yield (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")


def test_what_is_begun_while_leftovers_are_ended_is_ended_too(tmp_path: Path) -> None:
    of_run = tmp_path / "run"
    os.mkfifo(of_run)
    # Each waits for somebody to write.
    begin = 'for _ in $(seq 300); do timeout 60 cat "$1" & done; wait'
    with subprocess.Popen(["sh", "-c", begin, "sh", of_run], start_new_session=True):
        while not any(f"cat {of_run}" in command for command in commands()):
            pass
        end_leftovers(of_run)
        assert not [command for command in commands() if str(of_run) in command]


def test_a_folder_that_cannot_be_removed_does_not_hide_why_the_run_ended() -> None:
    left: list[Path] = []

    def keep(folder: Path, _ignores: bool, on_error: Callable[[Callable[..., Any], str, Any], object]) -> None:
        left.append(folder)
        on_error(os.rmdir, str(folder), (OSError, OSError(errno.ENOTEMPTY, "Directory not empty"), None))

    with pytest.raises(LeaseLost, match="stolen by eve") as lost, run_folder(keep):
        raise LeaseLost("stolen by eve")
    told = "cannot be removed, and may have what the playbook printed; remove it by hand"
    assert told in lost.value.__notes__[0]
    with pytest.raises(LabError, match=told), run_folder(keep):
        pass
    for folder in left:
        folder.rmdir()


def test_a_callback_that_raises_ends_the_run(rack: MockRack, tmp_path: Path) -> None:
    def refuse(_task: TaskDone) -> None:
        raise LabError("the event stream has ended")

    own = written(tmp_path, "- name: Look\n  ansible.builtin.command: 'true'")
    provisioner = Provisioner(rack.lab, accesses(rack, "srv1"), CLOCK)
    with pytest.raises(LabError, match="the event stream has ended"):
        provisioner.run(own, Deadline.after(CLOCK, 300), on_task=refuse)


def test_a_lease_that_is_over_ends_the_run_and_leaves_no_process(rack: MockRack, tmp_path: Path) -> None:
    ended: list[TaskDone] = []

    def check() -> None:
        if ended:
            raise LeaseLost("stolen by eve")

    own = written(
        tmp_path,
        "- name: Look\n  ansible.builtin.command: 'true'\n- name: Write\n  ansible.builtin.command: sleep 1000",
    )
    with pytest.raises(LeaseLost, match="stolen by eve"):
        play(rack, own, "srv1", tasks=ended, within_s=100.0, check=check)
    assert [task.task for task in ended] == ["Look"]
    assert not [command for command in commands() if str(own) in command]


def test_what_runs_on_servers_is_labelled_with_its_lease(rack: MockRack, tmp_path: Path) -> None:
    own = written(
        tmp_path,
        '- name: Look\n  ansible.builtin.shell: test "${RACKLOOP_COMMAND%/*}" = mock/0badcafe\n'
        '  environment: "{{ rackloop_environment }}"',
    )
    provisioner = Provisioner(rack.lab, accesses(rack, "srv1"), CLOCK, "mock/0badcafe")
    assert len(provisioner.run(own, Deadline.after(CLOCK, 300)).tasks) == 1


def test_a_playbook_that_ansible_cannot_read_is_said_in_its_words(rack: MockRack, tmp_path: Path) -> None:
    own = written(tmp_path, "- name: Nothing\n  no_such_module:")
    with pytest.raises(ToolError, match=r"ansible-playbook own\.yml ended with status 4: (?s:.*)no_such_module"):
        play(rack, own, "srv1")


STAND_INS = "/var/lib/stand-ins"
# Units are files beside it: one that is not there is refused as by systemd.
SYSTEMCTL = """#!/bin/sh
cd /var/lib/stand-ins && echo "$*" >> calls
if [ "$1" = try-restart ] && ! [ -e "$2" ]; then echo "Unit $2 not found." >&2; exit 5; fi
if [ "$1" = is-enabled ]; then echo disabled; fi
"""
# An initramfs that cannot be made while this file is there.
UPDATE = """#!/bin/sh
cd /var/lib/stand-ins && echo "${0##*/} $*" >> calls
test "${0##*/}" = update-grub || ! [ -e full ]
"""
# The package manager: a unit goes with its package, which has its name here.
WITHOUT_UNITS = """
from pathlib import Path
from ansible.module_utils.basic import AnsibleModule
module = AnsibleModule({"name": {"type": "list"}, "state": {}})
for name in module.params["name"]:
    Path("/var/lib/stand-ins", name).unlink()
module.exit_json(changed=True)
"""


def test_an_undo_needs_no_unit_that_is_gone_and_the_next_completes_it(rack: MockRack, tmp_path: Path) -> None:
    """Services are restarted before their packages go, and an initramfs that failed is made by the second undo."""
    playbooks = shutil.copytree(find_playbook("site").parent, tmp_path / "playbooks")
    (playbooks / "library" / "without_units.py").write_text(WITHOUT_UNITS)
    units = {"iscsi_initiator": "iscsid.service", "iscsi_target": "rtslib-fb-targetctl.service"}
    rack.says("srv4", f"mkdir {STAND_INS}; cd {STAND_INS}; touch full {' '.join(units.values())}")
    for name, text in (("systemctl", SYSTEMCTL), ("update-initramfs", UPDATE), ("update-grub", UPDATE)):
        path = f"{STAND_INS}/{name}"
        assert rack.ssh("srv4", f"cat > {path} && chmod 755 {path}", stdin=text.encode()).returncode == 0
    # As a provisioning with arguments for the kernel has left it, which an undo is not told.
    made = {role: f"{STAND_INS}/{role}.conf" for role in units} | {"kernel_ahci": "/etc/default/grub.d/90-rackloop.cfg"}
    rack.says("srv4", f"cd /var/lib; mkdir -p rackloop/kept rackloop/packages {Path(made['kernel_ahci']).parent}")
    for role, path in made.items():
        record = json.dumps([{"kind": "file", "name": path, "before": None}])
        rack.says("srv4", f"cd /var/lib/rackloop; touch {path}; echo '{record}' > kept/{role}.json")
    for role, unit in units.items():
        rack.says("srv4", f"echo {unit} > /var/lib/rackloop/packages/{role}")
    roles = list(made)
    variables = {
        "rackloop_environment": {"PATH": f"{STAND_INS}:/usr/sbin:/usr/bin:/sbin:/bin"},
        "rackloop_cannot": {"udev": "udevd is not running"},
        "ansible_package_use": "without_units",
    }

    tasks: list[TaskDone] = []
    with pytest.raises(LabError, match="Regenerate the initramfs"):
        play(rack, playbooks / "undo.yml", "srv4", roles=roles, variables=variables, tasks=tasks)
    assert [task.task for task in tasks if task.status is TaskStatus.FAILED] == ["Regenerate the initramfs"]
    assert rack.says("srv4", f"cd {STAND_INS}; echo *.service") == "*.service"

    rack.says("srv4", f"cd {STAND_INS}; rm full calls")
    play(rack, playbooks / "undo.yml", "srv4", roles=roles, variables=variables)
    assert rack.says("srv4", f"cat {STAND_INS}/calls").splitlines() == ["update-initramfs -u", "update-grub "]
    assert rack.ssh("srv4", "ls /var/lib/rackloop").returncode == 2


def test_services_read_their_files_anew_by_the_next_run_where_one_failed_before(rack: MockRack, tmp_path: Path) -> None:
    playbooks = shutil.copytree(find_playbook("site").parent, tmp_path / "playbooks")
    text = (playbooks / "site.yml").read_text()
    (playbooks / "failing.yml").write_text(f"{text}    - role: failing\n      tags: [always]\n")
    (playbooks / "roles" / "failing" / "tasks").mkdir(parents=True)
    (playbooks / "roles" / "failing" / "tasks" / "main.yml").write_text("- ansible.builtin.fail:\n")
    units = ["iscsid.service", "nvmf-autoconnect.service", "rackloop-nvmet.service", "rtslib-fb-targetctl.service"]
    systemctl = f"{STAND_INS}/systemctl"
    rack.says("srv3", f"mkdir {STAND_INS}; cd {STAND_INS}; touch {' '.join(units)}")
    assert rack.ssh("srv3", f"cat > {systemctl} && chmod 755 {systemctl}", stdin=SYSTEMCTL.encode()).returncode == 0
    roles = ["iscsi_initiator", "iscsi_target", "nvme_tcp_host", "nvme_tcp_target"]
    variables = {
        "rackloop_environment": {"PATH": f"{STAND_INS}:/usr/sbin:/usr/bin:/sbin:/bin"},
        "rackloop_cannot": {"packages": "there are none", "modules": "there are none"},
    }

    def restarted() -> list[str]:
        calls = rack.says("srv3", f"cd {STAND_INS}; cat calls; rm calls").splitlines()
        return sorted(call.split()[1] for call in calls if call.startswith("try-restart "))

    with pytest.raises(LabError, match=r"failing\.yml failed"):
        play(rack, playbooks / "failing.yml", "srv3", roles=roles, variables=variables)
    assert restarted() == []
    play(rack, playbooks / "site.yml", "srv3", roles=roles, variables=variables)
    assert restarted() == units
    play(rack, playbooks / "site.yml", "srv3", roles=roles, variables=variables)
    assert restarted() == []
    play(rack, playbooks / "undo.yml", "srv3", roles=roles, variables=variables)
    assert rack.ssh("srv3", "ls /var/lib/rackloop").returncode == 2


def test_what_others_offer_by_iscsi_is_not_taken_away(rack: MockRack, tmp_path: Path) -> None:
    """The service of the role's file takes down what the kernel offers, that of others too, and what was not saved."""
    playbooks = shutil.copytree(find_playbook("site").parent, tmp_path / "playbooks")
    offers, saved = "/var/lib/offers", "/etc/rtslib-fb-target/saveconfig.json"
    variables = {"iscsi_target_offers": offers, "iscsi_target_name": "iqn.2003-01.org.x:own"}
    rack.says("srv4", f"mkdir -p {offers}/core/iblock_0/disk {offers}/iscsi/discovery_auth {offers}/iscsi/iqn.x:theirs")

    with pytest.raises(LabError, match=r"LIO offers /var/lib/offers/iscsi/iqn\.x:theirs/ already"):
        play(rack, playbooks / "site.yml", "srv4", roles=["iscsi_target"], variables=variables)
    assert rack.ssh("srv4", f"ls {saved} /var/lib/rackloop").returncode == 2

    rack.says("srv4", f"cd {offers}/iscsi; mv iqn.x:theirs iqn.2003-01.org.x:own")
    play(rack, playbooks / "site.yml", "srv4", roles=["iscsi_target"], variables=variables)
    # What the role made before it is told another name is its own.
    variables["iscsi_target_name"] = "iqn.2003-01.org.x:new"
    play(rack, playbooks / "site.yml", "srv4", roles=["iscsi_target"], variables=variables)

    rack.says("srv4", f"cd {offers}/iscsi; rmdir *:own; mkdir iqn.2003-01.org.x:new iqn.x:later")
    for playbook in ("site.yml", "undo.yml"):
        with pytest.raises(LabError, match=r"LIO offers /var/lib/offers/iscsi/iqn\.x:later/ already"):
            play(rack, playbooks / playbook, "srv4", roles=["iscsi_target"], variables=variables)
    rack.says("srv4", f"rmdir {offers}/iscsi/iqn.x:later")
    # An undo is not told which name it had.
    del variables["iscsi_target_name"]
    play(rack, playbooks / "undo.yml", "srv4", roles=["iscsi_target"], variables=variables)
    assert rack.ssh("srv4", f"ls {saved} /var/lib/rackloop").returncode == 2
    # There is nothing left to take back.
    play(rack, playbooks / "undo.yml", "srv4", roles=["iscsi_target"], variables=variables)
    rack.says("srv4", f"rm -r {offers}")


def test_drives_that_are_in_use_are_not_taken_away_with_the_module_they_came_by(rack: MockRack, tmp_path: Path) -> None:
    """Others may have connected since the module was loaded, and mounted what they got."""
    playbooks = shutil.copytree(find_playbook("site").parent, tmp_path / "playbooks")
    sys, kept = f"{STAND_INS}/sys", "/var/lib/rackloop/kept"
    record = json.dumps([{"kind": "module", "name": "nvme-tcp", "before": False}])
    rack.says(
        "srv4",
        f"mkdir -p {kept} {sys}/class {sys}/block/nvme0n1/holders;"
        f" cd {sys}/class; mkdir -p nvme/nvme0/nvme0c0n1 nvme/nvme3/nvme3n1 nvme/nvme4;"
        f" echo tcp >{sys}/class/nvme/nvme0/transport; echo pcie >{sys}/class/nvme/nvme3/transport;"
        # One that has no namespace.
        f" echo tcp >{sys}/class/nvme/nvme4/transport;"
        f" echo '{record}' >{kept}/nvme_tcp_host.json; cd {STAND_INS};"
        " echo '[ \"$3\" = /dev/nvme0n1 ] && cat /var/lib/stand-ins/mounts' >lsblk; chmod 755 lsblk; echo /srv >mounts",
    )
    variables = {
        "rackloop_environment": {"PATH": f"{STAND_INS}:/usr/sbin:/usr/bin:/sbin:/bin"},
        "nvme_tcp_host_sys": sys,
    }
    for in_use in ("/srv", "dm-0"):
        with pytest.raises(LabError, match=f"nvme0n1 would go with the module, and is in use: {in_use}"):
            play(rack, playbooks / "undo.yml", "srv4", roles=["nvme_tcp_host"], variables=variables)
        rack.says("srv4", f"cd {STAND_INS}; : >mounts; touch sys/block/nvme0n1/holders/dm-0; ls {kept}")
    rack.says("srv4", f"rm {sys}/block/nvme0n1/holders/dm-0")
    play(rack, playbooks / "undo.yml", "srv4", roles=["nvme_tcp_host"], variables=variables)
    rack.says("srv4", f"rm -r {STAND_INS}")
    assert rack.ssh("srv4", "ls /var/lib/rackloop").returncode == 2
