from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from rackloop_labs.mock_hosts._view import HostView
from tests.transcripts.guest import GUEST, NVME, RecordedActs, run, with_counters


def _json(*argv: str, view: HostView = GUEST) -> Any:
    answer = run(*argv, "-o", "json", view=view)
    assert (answer.stderr, answer.status) == ("", 0)
    return json.loads(answer.stdout)


def test_a_drive_that_is_gone_is_in_no_list_and_cannot_be_opened() -> None:
    without = replace(GUEST, drives=tuple(drive for drive in GUEST.drives if drive is not NVME))
    assert [device["DevicePath"] for device in _json("nvme", "list")["Devices"]] == ["/dev/nvme0n1"]
    assert _json("nvme", "list", view=without) == {"Devices": []}
    assert _json("nvme", "list", "-v", view=without) == {"Devices": []}
    assert _json("nvme", "list-subsys", view=without) == []
    answer = run("nvme", "smart-log", "/dev/nvme0", view=without)
    assert answer.stderr.startswith("/dev/nvme0: No such file or directory\n")
    assert (answer.stdout, answer.status) == ("", 1)


def test_the_health_log_counts_what_the_drive_did_in_its_own_units() -> None:
    view = with_counters(
        NVME,
        reads=7,
        writes=8,
        bytes_read=512_001,
        bytes_written=1_024_000,
        power_cycles=3,
        power_on_ns=2 * 3_600_000_000_000 + 1,
        media_errors=5,
        erase_count_mean=1500,
    )
    log = _json("nvme", "smart-log", "/dev/nvme0", view=view)
    expected = {
        "data_units_read": "2",
        "data_units_written": "2",
        "host_read_commands": "7",
        "host_write_commands": "8",
        "power_cycles": "3",
        "unsafe_shutdowns": "2",
        "power_on_hours": "2",
        "media_errors": "5",
        "num_err_log_entries": "5",
        "percent_used": 50,
        "critical_warning": 0,
    }
    assert {name: log[name] for name in expected} == expected


def test_a_drive_with_many_media_errors_warns_of_its_reliability() -> None:
    view = with_counters(NVME, media_errors=94)
    assert _json("nvme", "smart-log", "/dev/nvme0n1", view=view)["critical_warning"] == 4
    assert _json("nvme", "smart-log", "/dev/nvme0", view=with_counters(NVME, media_errors=93))["critical_warning"] == 0


def test_the_error_log_has_the_newest_media_errors_first_and_their_blocks_where_known() -> None:
    view = with_counters(NVME, media_errors=3, failed_lbas=(100, 200))
    errors = _json("nvme", "error-log", "/dev/nvme0", "-e", "4", view=view)["errors"]
    assert [error["error_count"] for error in errors] == [3, 2, 1, 0]
    assert [error["lba"] for error in errors] == [200, 100, 2**64 - 1, 0]
    assert [error["status_field"] for error in errors] == [0x4281, 0x4281, 0x4281, 0]
    text = run("nvme", "error-log", "/dev/nvme0", "--log-entries=1", view=view).stdout
    assert "status_field\t: 0x4281(Unrecovered Read Error: " in text
    assert "lba\t\t: 0xc8\n" in text
    for many in ("1000", "0x1000", "-1"):
        assert len(_json("nvme", "error-log", "/dev/nvme0", "-e", many, view=view)["errors"]) == 64


@pytest.mark.parametrize("command", ["reset", "subsystem-reset"])
def test_a_reset_resets_the_controller_that_is_named(command: str) -> None:
    acts = RecordedActs()
    assert run("nvme", command, "/dev/nvme0", acts=acts).status == 0
    assert run("nvme", command, "/dev/nvme1", acts=acts).status == 1
    assert run("nvme", command, "/dev/nvme0n1", acts=acts).status == 1
    assert acts.asked == [("reset_controller", "nvme0")]


def test_a_namespace_says_who_and_how_large_it_is() -> None:
    drive = replace(NVME, eui64="0025385b71b00001", nguid="0025385b71b000010025385b71b00002", sector_bytes=4096)
    view = replace(GUEST, drives=(drive,))
    namespace = _json("nvme", "id-ns", "/dev/nvme0n1", view=view)
    assert namespace["eui64"] == drive.eui64
    assert namespace["nguid"] == drive.nguid
    assert namespace["nsze"] * 4096 == drive.size_bytes
    assert namespace["lbafs"] == [{"ms": 0, "ds": 12, "rp": 0}]
    assert _json("nvme", "id-ctrl", "/dev/nvme0", view=view)["ieee"] == 0x002538
    assert "4 KiB +  0 B" in run("nvme", "list", view=view).stdout


def test_a_controller_lists_its_one_namespace_and_has_no_list_of_unattached_ones() -> None:
    for node in ("/dev/nvme0", "/dev/nvme0n1"):
        assert run("nvme", "list-ns", node).stdout == "[   0]:0x1\n"
        assert _json("nvme", "list-ns", node) == {"nsid_list": [{"nsid": 1}]}
    assert run("nvme", "list-ns", "/dev/nvme0", "-n", "2").stdout == ""
    assert run("nvme", "list-ns", "/dev/nvme0", "--namespace-id=0").stderr == "invalid nsid parameter\n"
    # There is no namespace management: bit 3 of OACS.
    assert not _json("nvme", "id-ctrl", "/dev/nvme0")["oacs"] & 0x8
    unmanaged = run("nvme", "list-ns", "/dev/nvme0", "--all", "-o", "json")
    assert (unmanaged.stdout, unmanaged.status) == ("", 1)
    assert unmanaged.stderr.startswith("NVMe status: Invalid Field in Command: ")
    assert unmanaged.stderr.endswith("(0x4002)\n")


def test_an_output_format_that_is_not_emulated_is_refused() -> None:
    answer = run("nvme", "smart-log", "/dev/nvme0", "-o", "binary")
    assert (answer.stdout, answer.stderr, answer.status) == ("", "Invalid output format\n", 1)


def test_links_below_dev_disk_lead_to_the_namespace() -> None:
    by_path = f"/dev/disk/by-path/{NVME.by_path}"
    assert _json("nvme", "smart-log", by_path) == _json("nvme", "smart-log", "/dev/nvme0n1")
    assert run("nvme", "smart-log", by_path).stdout.startswith("Smart Log for NVME device:nvme0n1 ")
    assert run("nvme", "smart-log", "/dev/disk/by-path/nothing").status == 1
