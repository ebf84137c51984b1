"""Formats of a server's tools that nobody has seen: named, kept, and no trouble of other drives."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rackloop.clock import Deadline, VirtualClock
from rackloop.errors import UnknownFormat
from rackloop_drivers.host_tools import identify_drive, read_drive, survey_host
from tests.unit.harness.recorded_server import RECORDED, RecordedServer, answered, changed

SOON = Deadline.after(VirtualClock(), 10)


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where what is printed in an unknown format is kept."""
    monkeypatch.setenv("RACKLOOP_STATE_HOME", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize(
    ("asked", "fields", "told"),
    [
        ("smartctl sdb", {"json_format_version": [2, 0]}, r"smartctl 7\.3 printed json_format_version \[2, 0\]"),
        ("smartctl sdb", {"json_format_version": None}, "json_format_version None"),
        ("smartctl sdb", {"user_capacity": {"bytes": "many"}}, "user_capacity.bytes with the value 'many'"),
        ("smartctl sdb", {"device": None}, "JSON without device.protocol"),
        ("smartctl sdb", {"wwn": {"naa": "x"}}, "the wwn {'naa': 'x'}"),
        ("id-ctrl nvme0n1", {"mn": None}, r"JSON without mn; .*\(nvme version 2\.3"),
        ("id-ns nvme0n1", {"nsze": "many"}, "nsze with the value 'many'"),
        ("id-ns nvme0n1", {"lbafs": []}, "no LBA format 0"),
        ("smart-log nvme0n1", {"media_errors": None}, "JSON without media_errors"),
        ("smart-log nvme0n1", {"media_errors": math.inf}, "media_errors with the value inf"),
    ],
)
def test_a_format_that_nobody_has_seen_is_named_and_costs_its_own_drive_only(
    asked: str, fields: dict[str, Any], told: str
) -> None:
    server, node = changed(asked, **fields), f"/dev/{asked.split(' ')[1]}"
    found = survey_host(server, SOON)
    assert list(found.unreadable) == sorted(found.of_unknown_format) == [node]
    assert len(found.drives) == 2
    with pytest.raises(UnknownFormat, match=told) as caught:
        read_drive(server, node, SOON)
    assert re.search(told, found.unreadable[node])
    assert caught.value.tool in str(caught.value)
    assert "known here: " in str(caught.value)
    assert caught.value.raw in {answer.stdout for answer in server.answers.values()}


@pytest.mark.parametrize(
    ("blockdevices", "told"), [([{"type": "disk"}], "KeyError: 'mountpoint'"), (None, "without blockdevices")]
)
def test_a_list_of_disks_in_a_format_that_nobody_has_seen_is_an_error_of_the_host(blockdevices: Any, told: str) -> None:
    with pytest.raises(UnknownFormat, match=told):
        survey_host(changed("lsblk -", blockdevices=blockdevices), SOON)


@pytest.mark.parametrize("device", ["/dev/sdb", "pci-0000:00:1f.2-ata-2"])
def test_a_drive_whose_tool_is_not_understood_is_not_identified(device: str) -> None:
    with pytest.raises(UnknownFormat, match="json_format_version"):
        identify_drive(changed("smartctl sdb", json_format_version=[2, 0]), device, SOON)


def test_the_version_of_a_tool_is_asked_once_however_many_drives_it_is_of() -> None:
    server = changed("id-ctrl nvme0n1", mn=None)
    server.answers |= {
        f"{kind} nvme1n1": server.answers[f"{kind} nvme0n1"] for kind in ("id-ctrl", "id-ns", "smart-log")
    }
    assert survey_host(server, SOON).of_unknown_format == {"/dev/nvme0n1", "/dev/nvme1n1"}
    assert [argv for argv in server.ran if argv[0] == "nvme"] == [("nvme", "version")]


def test_what_is_not_understood_is_kept_once_though_its_counters_move(state: Path) -> None:
    for reads in (1, 2):
        survey_host(changed("smart-log nvme0n1", media_errors=None, host_read_commands=reads), SOON)
    [kept] = (state / "kept").iterdir()
    assert json.loads(kept.read_text())["host_read_commands"] == 2


@pytest.mark.parametrize(
    ("asked", "tool"), [("lsblk -", "lsblk"), ("smartctl sda", "smartctl"), ("id-ns nvme0n1", "nvme")]
)
def test_text_that_is_no_json_is_kept_too(asked: str, tool: str, state: Path) -> None:
    server = RecordedServer(answers={**RECORDED, asked: answered("Segmentation fault")})
    for _ in range(2):
        with pytest.raises(UnknownFormat, match="printed no JSON") as caught:
            read_drive(server, "/dev/nvme0n1" if tool == "nvme" else "/dev/sda", SOON)
        assert caught.value.raw == "Segmentation fault"
    [kept] = (state / "kept").iterdir()
    assert kept.name.startswith(f"{tool}-")
    assert "or report what it printed" in str(caught.value)
    assert str(caught.value).endswith(f": {kept}")
    assert kept.read_text() == "Segmentation fault"


def maimed(document: Any) -> Iterator[Any]:
    """The document with each of its fields, however deep, in turn replaced by one of each other kind."""
    entries = document.items() if isinstance(document, dict) else enumerate(document)
    for key, value in [*entries]:
        others = [other for other in ("text", -1, None, [], [3], {}, {"a": 3}) if type(other) is not type(value)]
        for other in others if not isinstance(value, dict | list) else [*others, *maimed(value)]:
            changed = dict(document) if isinstance(document, dict) else list(document)
            changed[key] = other
            yield changed


@pytest.mark.parametrize("asked", RECORDED)
def test_no_field_of_another_kind_is_met_unprepared(asked: str) -> None:
    told = 0
    for document in maimed(RECORDED[asked].document):
        server = RecordedServer(answers={**RECORDED, asked: answered(json.dumps(document))})
        try:
            found = survey_host(server, SOON)
        except UnknownFormat:
            assert asked == "lsblk -"
            told += 1
        else:
            assert len(found.drives) + len(found.unreadable) == 3
            told += len(found.of_unknown_format)
    assert told > 0
