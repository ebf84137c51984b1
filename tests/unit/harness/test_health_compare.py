"""Two snapshots and what the test did in between: what changed, whether that is explained, and whose fault it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rackloop.inspection.health import (
    COUNTERS,
    KERNEL_MESSAGES,
    Disturbed,
    HealthSnapshot,
    KernelLine,
    KernelPosition,
    ServerHealth,
    compare,
    rule_names,
)
from rackloop.lab import Part
from rackloop.measurement import Cause
from rackloop.record import HealthChange, Judgement
from tests.parts import parts

P0, P1 = ("p0",), ("p1",)
PORTS = {"host0": P0, "ata1": P0, "sda": P0, "host1": P1, "nvme0": P1, "phy-1:0": P1, "0000:11:00.0": P1}
PHYS = {"phy-1:0": {"invalid_dword_count": 0}}
QUIET = ServerHealth(KernelPosition("boot-1", 0), PHYS, PORTS, drives=("d01", "d02"))
HEALTHY: dict[str, int] = {"media_errors": 0, "phy_resets": 1, "power_cycles": 3, "host_reads": 10}
BEFORE = HealthSnapshot(0, 1, {"d01": HEALTHY, "d02": HEALTHY}, {"srv1": QUIET})


def later(
    drives: Mapping[str, Mapping[str, int]] | None = None, server: ServerHealth | None = None, *texts: str
) -> HealthSnapshot:
    """The rack afterwards, with what the kernel of srv1 said meanwhile."""
    lines = tuple(KernelLine(number, 4, text) for number, text in enumerate(texts))
    moved = {name: {**HEALTHY, **counters} for name, counters in (drives or {}).items()}
    return HealthSnapshot(2, 3, {**BEFORE.drives, **moved}, {"srv1": replace(server or QUIET, kernel=lines)})


def only(changes: list[HealthChange]) -> HealthChange:
    (change,) = changes
    return change


LINKED = Disturbed(linked=parts(server_ports={("srv1", "p0")}, drives={"d01"}))


@pytest.mark.parametrize(
    ("drive", "did", "judgement", "cause"),
    [
        ("d01", Disturbed(), Judgement.UNEXPECTED, Cause.LAB),
        ("d01", LINKED, Judgement.EXPECTED, None),
        ("d02", LINKED, Judgement.UNEXPECTED, Cause.LAB),
    ],
)
def test_a_link_that_was_lost_is_excused_where_the_test_took_it(
    drive: str, did: Disturbed, judgement: Judgement, cause: Cause | None
) -> None:
    change = only(compare(BEFORE, later({drive: {"phy_resets": 2}}), did))
    assert (change.subject, change.what, change.judgement, change.cause) == (drive, "phy_resets", judgement, cause)
    assert change.difference == 1


def test_taking_a_link_excuses_neither_a_media_error_nor_a_power_cycle() -> None:
    changes = compare(BEFORE, later({"d01": {"media_errors": 2, "power_cycles": 4}}), LINKED)
    assert [(change.judgement, change.cause) for change in changes] == [
        (Judgement.UNEXPECTED, Cause.PRODUCT),
        (Judgement.UNEXPECTED, Cause.LAB),
    ]
    assert str(changes[0]) == "d01: media_errors went from 0 to 2: data could not be read back, or not be written"


@pytest.mark.parametrize(
    ("counters", "did", "judgement"),
    [
        ({"crc_errors": 2}, Disturbed(), Judgement.UNEXPECTED),
        ({"crc_errors": 2}, LINKED, Judgement.EXPECTED),
        ({"writes": 2}, Disturbed(), Judgement.NOTED),
    ],
)
def test_a_counter_that_a_drive_reports_for_the_first_time_moved_from_0(
    counters: dict[str, int], did: Disturbed, judgement: Judgement
) -> None:
    change = only(compare(BEFORE, later({"d01": counters}), did))
    assert (change.subject, change.before, change.after, change.judgement) == ("d01", None, 2, judgement)
    assert str(change).startswith(f"d01: {change.what} went from not reported to 2")


def test_a_counter_that_is_reported_for_the_first_time_as_0_is_no_change() -> None:
    assert compare(BEFORE, later({"d01": {"crc_errors": 0}}), Disturbed()) == []


def test_a_counter_of_a_phy_that_is_no_longer_reported_is_missing() -> None:
    change = only(
        compare(
            BEFORE, later(None, replace(QUIET, phys={"phy-1:0": {}})), Disturbed(parts(server_ports={("srv1", "p1")}))
        )
    )
    assert (change.subject, change.what, change.after) == ("srv1 p1 phy-1:0", "invalid_dword_count", None)
    assert (change.judgement, change.cause) == (Judgement.UNEXPECTED, Cause.LAB)


def test_a_phy_that_could_not_be_read_before_says_nothing() -> None:
    """Those of an expander count on while no server looks."""
    phys = {"phy-1:0": {"invalid_dword_count": 0, "phy_reset_problem_count": 8}, "phy-1:1": {"invalid_dword_count": 5}}
    assert compare(BEFORE, later(None, replace(QUIET, phys=phys)), Disturbed()) == []


def test_cut_power_excuses_power_cycles_and_links() -> None:
    did = Disturbed(linked=parts(drives={"d01"}), powered=parts(drives={"d01"}))
    changes = compare(BEFORE, later({"d01": {"power_cycles": 4, "phy_resets": 2}}), did)
    assert {change.judgement for change in changes} == {Judgement.EXPECTED}


def test_the_plan_excuses_what_it_names_and_no_more() -> None:
    after = later({"d01": {"media_errors": 1, "power_cycles": 4}})
    named, other = compare(BEFORE, after, Disturbed(), ["media_errors"])
    assert (named.judgement, named.why) == (Judgement.EXPECTED, "the plan expects it")
    assert other.judgement is Judgement.UNEXPECTED


def test_work_is_noted_and_alarms_nobody() -> None:
    change = only(compare(BEFORE, later({"d01": {"host_reads": 999}}), Disturbed()))
    assert (change.judgement, change.cause, change.difference) == (Judgement.NOTED, None, 989)


def test_a_state_that_clears_is_good_news() -> None:
    before = replace(BEFORE, drives={"d01": {"pending_sectors": 2, "critical_warning": 4}})
    after = replace(before, drives={"d01": {"pending_sectors": 0, "critical_warning": 0}})
    assert {change.judgement for change in compare(before, after, Disturbed())} == {Judgement.NOTED}
    assert {change.judgement for change in compare(after, before, Disturbed())} == {Judgement.UNEXPECTED}


@given(
    st.dictionaries(
        st.sampled_from(["d01", "d02"]),
        st.dictionaries(st.sampled_from(sorted(COUNTERS)), st.integers(0, 2**40), min_size=1),
    )
)
def test_nothing_that_stays_is_a_change(drives: dict[str, dict[str, int]]) -> None:
    snapshot = replace(BEFORE, drives=drives)
    assert compare(snapshot, snapshot, Disturbed()) == []


def test_a_drive_that_is_gone_is_missing_whatever_the_test_did() -> None:
    # A log that lost lines is no reason for a drive.
    unreadable = {"/dev/sda": "it hangs", "kernel log": "what it said before 12 s was overwritten"}
    after = HealthSnapshot(2, 3, {"d02": HEALTHY}, {"srv1": replace(QUIET, unreadable=unreadable)})
    change = only(compare(BEFORE, after, LINKED))
    assert (change.subject, change.what, change.cause, change.sample) == ("d01", "missing", Cause.LAB, "it hangs")
    assert str(change) == "d01: missing: it could be read before the test, and cannot be afterwards (it hangs)"


def test_a_server_that_is_silent_is_one_change_not_one_for_each_drive() -> None:
    after = HealthSnapshot(2, 3, {}, {}, {"srv1": "no route"})
    change = only(compare(BEFORE, after, Disturbed()))
    assert (change.subject, change.what, change.cause) == ("srv1", "unreachable", Cause.LAB)
    assert "no route" in str(change)


def test_a_drive_that_goes_as_another_server_falls_silent_is_missed() -> None:
    before = replace(BEFORE, servers={"srv1": replace(QUIET, drives=("d01",)), "srv2": replace(QUIET, drives=("d02",))})
    after = HealthSnapshot(2, 3, {}, {"srv2": replace(QUIET, drives=())}, {"srv1": "no route"})
    changes = [(change.subject, change.what) for change in compare(before, after, Disturbed())]
    assert changes == [("d02", "missing"), ("srv1", "unreachable")]
    seen_by_both = replace(before, servers={"srv1": QUIET, "srv2": QUIET})
    changes = [(change.subject, change.what) for change in compare(seen_by_both, after, Disturbed())]
    assert changes == [("d01", "missing"), ("d02", "missing"), ("srv1", "unreachable")]


def test_a_drive_that_goes_is_missed_though_another_server_was_silent_all_the_time() -> None:
    silent = {"srv2": "no route"}
    after = replace(later(), drives={"d01": HEALTHY}, unreachable=silent)
    change = only(compare(replace(BEFORE, unreachable=silent), after, Disturbed()))
    assert (change.subject, change.what, change.judgement) == ("d02", "missing", Judgement.UNEXPECTED)


def test_what_was_unknown_before_says_nothing_afterwards() -> None:
    silent = HealthSnapshot(0, 1, {}, {}, {"srv1": "no route"})
    assert compare(silent, later({"d01": {"media_errors": 5}}), Disturbed()) == []


def test_a_fault_explains_the_rules_it_breaks_on_its_drive_and_no_other() -> None:
    did = Disturbed(broken={Part.drive("d01"): frozenset({"media_errors"})})
    named, other = compare(BEFORE, later({"d01": {"media_errors": 5, "power_cycles": 9}}), did)
    assert (named.what, named.judgement, named.why) == ("media_errors", Judgement.EXPECTED, "the test broke it")
    assert (other.what, other.judgement) == ("power_cycles", Judgement.UNEXPECTED)
    elsewhere = Disturbed(broken={Part.drive("d02"): frozenset({"media_errors"})})
    assert only(compare(BEFORE, later({"d01": {"media_errors": 5}}), elsewhere)).judgement is Judgement.UNEXPECTED


def test_a_fault_explains_what_the_kernel_says_of_the_port_its_drive_is_at() -> None:
    text = "critical medium error, dev sda, sector 0"
    explained = Disturbed(broken={Part.port("srv1", "p0"): frozenset({"kernel.medium_error"})})
    elsewhere = Disturbed(broken={Part.port("srv2", "p0"): frozenset({"kernel.medium_error"})})
    assert only(compare(BEFORE, later(None, None, text), explained)).judgement is Judgement.EXPECTED
    assert only(compare(BEFORE, later(None, None, text), elsewhere)).judgement is Judgement.UNEXPECTED


@pytest.mark.parametrize(
    ("did", "judgement"),
    [
        (Disturbed(), Judgement.UNEXPECTED),
        (LINKED, Judgement.UNEXPECTED),
        (Disturbed(powered=parts(servers={"srv1"})), Judgement.EXPECTED),
    ],
)
def test_a_restart_is_excused_by_cut_power_alone(did: Disturbed, judgement: Judgement) -> None:
    restarted = replace(QUIET, position=KernelPosition("boot-2", 0))
    change = only(compare(BEFORE, later(None, restarted), did))
    assert (change.subject, change.what, change.judgement) == ("srv1", "boot_id", judgement)


def test_a_kernel_that_starts_anew_counts_its_phys_from_zero() -> None:
    counted = replace(QUIET, phys={"phy-1:0": {"invalid_dword_count": 7}})
    restarted = replace(QUIET, position=KernelPosition("boot-2", 0))
    before = replace(BEFORE, servers={"srv1": counted})
    assert [change.what for change in compare(before, later(None, restarted), Disturbed())] == ["boot_id"]


def test_a_phy_is_named_by_its_port() -> None:
    counted = replace(QUIET, phys={"phy-1:0": {"invalid_dword_count": 7}})
    change = only(compare(BEFORE, later(None, counted), LINKED))
    assert (change.subject, change.judgement, change.cause) == ("srv1 p1 phy-1:0", Judgement.UNEXPECTED, Cause.LAB)


# What Linux 6.1 prints; the part that names the device decides whose change it is.
MESSAGES = {
    "sd 0:0:0:0: [sda] tag#0 Sense Key : Medium Error [current] ": ("kernel.medium_error", "srv1 p0"),
    "critical medium error, dev sda, sector 8 op 0x0:(READ) flags 0x0 phys_seg 1 prio class 2": (
        "kernel.medium_error",
        "srv1 p0",
    ),
    "nvme0n1: Read(0x2) @ LBA 0, 8 blocks, Unrecovered Read Error (sct 0x2 / sc 0x81) DNR ": (
        "kernel.medium_error",
        "srv1",
    ),
    "critical target error, dev sda, sector 8 op 0x1:(WRITE) flags 0x0": ("kernel.target_error", "srv1 p0"),
    "nvme nvme0: I/O 12 QID 3 timeout, aborting": ("kernel.controller_reset", "srv1 p1"),
    "nvme nvme0: controller is down; will reset: CSTS=0xffffffff": ("kernel.controller_reset", "srv1 p1"),
    "ata1: link is slow to respond, please be patient (ready=0)": ("kernel.link_slow", "srv1 p0"),
    "ata1.00: exception Emask 0x10 SAct 0x0 SErr 0x4010000 action 0xe frozen": ("kernel.link_lost", "srv1 p0"),
    "ata1: exception Emask 0x0 SAct 0x0 SErr 0x10000 action 0xe frozen": ("kernel.link_lost", "srv1 p0"),
    "ata1.00: exception Emask 0x0 SAct 0x1 SErr 0x0 action 0x6 frozen": ("kernel.command_timeout", "srv1 p0"),
    "ata1: SError: { PHYRdyChg DevExch }": ("kernel.link_lost", "srv1 p0"),
    "pcieport 0000:11:00.0: AER: Corrected error received: 0000:11:00.0": ("kernel.pcie_aer", "srv1 p1"),
    "I/O error, dev sda, sector 0 op 0x0:(READ) flags 0x0": ("kernel.io_error", "srv1 p0"),
    "Kernel panic - not syncing: sysrq triggered crash": ("kernel.panic", "srv1"),
    "Kernel panic - not syncing: EXT4-fs (device sdz): panic forced after error": ("kernel.panic_on_storage", "srv1"),
    "mce: [Hardware Error]: CPU 0: Machine Check: 0 Bank 5: be00000000800400": ("kernel.mce", "srv1"),
    "BUG: unable to handle page fault for address: ffffffffc0000000": ("kernel.oops", "srv1"),
    "Oops: 0002 [#1] PREEMPT SMP NOPTI": ("kernel.oops", "srv1"),
    "Out of memory: Killed process 812 (fio) total-vm:1048576kB": ("kernel.oom", "srv1"),
    "INFO: task fio:812 blocked for more than 120 seconds.": ("kernel.stall", "srv1"),
    "watchdog: BUG: soft lockup - CPU#1 stuck for 26s! [kworker/1:2:99]": ("kernel.stall", "srv1"),
    "BUG: workqueue lockup - pool cpus=0 node=0 flags=0x0 nice=0 stuck for 31s!": ("kernel.stall", "srv1"),
    "sd 1:0:0:0: attempting task abort!scmd(0x00000000b1b1)": ("kernel.command_timeout", "srv1 p1"),
    "sd 1:0:0:0: Device offlined - not ready after error recovery": ("kernel.command_timeout", "srv1 p1"),
    "sd 1:0:0:0: rejecting I/O to offline device": ("kernel.io_error", "srv1 p1"),
}


@pytest.mark.parametrize("text", MESSAGES)
def test_a_kernel_message_is_told_by_its_rule_and_port(text: str) -> None:
    change = only(compare(BEFORE, later(None, None, text), Disturbed()))
    assert (change.what, change.subject) == MESSAGES[text]
    assert (change.judgement, change.cause) == (Judgement.UNEXPECTED, KERNEL_MESSAGES[change.what].cause)
    assert text.strip() in str(change)


def test_every_rule_about_messages_is_tried() -> None:
    assert {rule for rule, _ in MESSAGES.values()} == set(KERNEL_MESSAGES)


@pytest.mark.parametrize(
    "text",
    [
        "sd 0:0:0:0: [sda] Attached SCSI disk",
        "ata1: SATA link up 6.0 Gbps (SStatus 133 SControl 300)",
        "ata1.00: exception Emask 0x0 SAct 0x1 SErr 0x0 action 0x0",
        "ata1: hard resetting link",
        "nvme nvme0: 1/0/0 default/read/poll queues",
        "nvme nvme0: Shutdown timeout set to 8 seconds",
        "traps: fio[812] general protection fault ip:7f3a2b sp:7ffc1d error:0 in libc.so.6[7f3a2b+155000]",
        "pcieport 0000:00:11.0: pciehp: Slot(1): Card present",
        "pcieport 0000:00:10.0: AER: enabled with IRQ 24",
        "EXT4-fs (sda1): mounted filesystem with ordered data mode. Quota mode: none.",
    ],
)
def test_what_a_kernel_says_when_all_is_well_alarms_nobody(text: str) -> None:
    assert compare(BEFORE, later(None, None, text), Disturbed()) == []


def test_messages_of_one_rule_and_port_are_one_change() -> None:
    texts = (
        "ata1: SError: { PHYRdyChg }",
        "ata1: SATA link down (SStatus 0)",
        "sd 1:0:0:0: rejecting I/O to offline device",
    )
    first, second = compare(BEFORE, later(None, None, *texts), LINKED)
    assert (first.subject, first.after, first.judgement) == ("srv1 p0", 2, Judgement.EXPECTED)
    assert (second.subject, second.after, second.judgement) == ("srv1 p1", 1, Judgement.UNEXPECTED)


def test_a_message_that_names_no_device_is_excused_by_any_port_of_its_server() -> None:
    text = "mptsas: ioc3: removing ssp device: fw_channel 0, fw_id 0, phy 0"
    assert only(compare(BEFORE, later(None, None, text), LINKED)).judgement is Judgement.EXPECTED
    elsewhere = Disturbed(linked=parts(server_ports={("srv2", "p0")}))
    assert only(compare(BEFORE, later(None, None, text), elsewhere)).judgement is Judgement.UNEXPECTED


def test_a_device_that_is_at_no_port_is_excused_by_none() -> None:
    own = replace(QUIET, ports={**PORTS, "sdz": ()})
    assert only(compare(BEFORE, later(None, own, "I/O error, dev sdz"), LINKED)).judgement is Judgement.UNEXPECTED


def test_a_port_that_lost_its_drive_is_meant_still() -> None:
    """Which port of its controller it is was known while it had one."""
    gone = replace(QUIET, ports={**PORTS, "ata1": ("p0", "p1")})
    change = only(compare(BEFORE, later(None, gone, "ata1: SATA link down (SStatus 0 SControl 300)"), Disturbed()))
    assert change.subject == "srv1 p0"


def test_a_disks_letter_that_passed_on_stands_for_both_ports() -> None:
    passed_on = replace(QUIET, ports={**PORTS, "sda": P1})
    change = only(compare(BEFORE, later(None, passed_on, "I/O error, dev sda, sector 0"), Disturbed()))
    assert change.subject == "srv1 p0 p1"


def test_a_disks_letter_stands_for_the_port_it_was_last_named_with() -> None:
    error = "critical medium error, dev sda, sector 0"
    texts = (error, "sd 1:0:0:0: [sda] Attached SCSI disk", error, "sd 0:0:0:0: [sda] tag#0 CDB: Read(10)", error)
    changes = compare(BEFORE, later(None, None, *texts), Disturbed())
    assert [(change.subject, change.after) for change in changes] == [("srv1 p0", 2), ("srv1 p1", 1)]


def test_an_nvme_drives_name_stands_for_the_port_its_controller_was_last_found_at() -> None:
    known = replace(QUIET, ports={**PORTS, "nvme0n1": P1, "0000:10:00.0": P0})
    error = "nvme0n1: Read(0x2) @ LBA 8, 1 blocks, Unrecovered Read Error (sct 0x2 / sc 0x81) DNR"
    found = "nvme nvme0: pci function 0000:{}:00.0"
    texts = (found.format(10), error, "nvme nvme0: I/O 12 QID 3 timeout, aborting", found.format(11), error)
    before = replace(BEFORE, servers={"srv1": known})
    broken = Disturbed(broken={Part.port("srv1", "p0"): frozenset({"kernel.medium_error"})})
    changes = {
        (change.subject, change.what): change.judgement
        for change in compare(before, later(None, known, *texts), broken)
    }
    assert changes == {
        ("srv1 p0", "kernel.medium_error"): Judgement.EXPECTED,
        ("srv1 p0", "kernel.controller_reset"): Judgement.UNEXPECTED,
        ("srv1 p1", "kernel.medium_error"): Judgement.UNEXPECTED,
    }


def test_an_nvme_drive_found_at_an_address_that_is_not_known_is_not_taken_for_another() -> None:
    known = replace(QUIET, ports={**PORTS, "nvme0n1": P1})
    error = "nvme0n1: Read(0x2) @ LBA 8, 1 blocks, Unrecovered Read Error (sct 0x2 / sc 0x81) DNR"
    texts = ("nvme nvme0: pci function 0000:10:00.0", error)
    before = replace(BEFORE, servers={"srv1": known})
    assert only(compare(before, later(None, known, *texts), Disturbed())).subject == "srv1"


def test_every_rule_has_a_name_of_its_own() -> None:
    assert len(rule_names()) == len(COUNTERS) + len(KERNEL_MESSAGES) + 3
    assert all(rule.name == name for rules in (COUNTERS, KERNEL_MESSAGES) for name, rule in rules.items())
