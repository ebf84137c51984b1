"""Every way a lab description can be wrong has one line: where, what, and what to do."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rackloop.errors import DescriptionError
from rackloop.lab import check_files, load_lab

RACK = """\
name: rack
kind: mock
fabric: {driver: flexfabric, ports: 8}
servers:
  srv1: {ports: {p0: 1, p1: 2}, outlet: pdu1/1}
pdus:
  pdu1: {driver: redfish, outlets: 2}
expanders:
  exp1: {port: 8, slots: 2}
drives:
  d01: {profile: sata-ssd, serial: A1, wwn: 5000c500a0000001, size: 8 GiB, port: 3, scratch: true}
  d02: {profile: sas-hdd, serial: A2, wwn: 5000c500a0000002, size: 8 GiB, expander: exp1, slot: 0, scratch: true}
baseline:
  srv1: {p0: d01, p1: exp1}
"""

PHYSICAL = """\
name: rack
kind: physical
fabric: {driver: flexfabric, control: {tcp: 'switch:5025'}}
servers:
  srv1: {ports: {p0: 1}, ssh: srv1, known_hosts: known, jump: gate}
jump_hosts:
  gate: {ssh: 'gate:22', known_hosts: known}
drives:
  d01: {profile: sata-ssd, model: M, serial: A1, wwn: 5000c500a0000001, size: 8 GiB, port: 3, scratch: true}
"""

STATIC = """\
name: rack
kind: mock
fabric: {driver: static}
servers:
  srv1: {ports: {p0, p1}}
drives:
  d01: {profile: sata-ssd, serial: A1, wwn: 5000c500a0000001, size: 8 GiB, attached: srv1/p0, scratch: true}
"""


def problems_of(text: str, folder: Path) -> list[str]:
    """The problems of a description, without the name of its file."""
    path = folder / "rack.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DescriptionError) as caught:
        load_lab(path)
    return [str(problem).replace(f"{path}:", "") for problem in caught.value.problems]


@pytest.mark.parametrize("text", [RACK, PHYSICAL, STATIC])
def test_what_the_table_starts_from_is_sound(text: str, tmp_path: Path) -> None:
    (tmp_path / "rack.yaml").write_text(text)
    assert load_lab(tmp_path / "rack.yaml").name == "rack"


WRONG_VALUES = [
    ("name: rack", "name: 'my rack'", "1:7: name: expected a name of letters", ["'my rack'"]),
    ("name: rack", "name: [rack]", "1:7: name: expected a name of letters", ["found a list"]),
    ("name: rack\n", "", "1:1: name: is missing", ["identity"]),
    ("kind: mock", "kind: moc", "2:7: kind: 'moc' is not known", ["did you mean 'mock'?"]),
    ("kind: mock", "kind:", "2:6: kind: is missing", ["mock", "virtual", "physical"]),
    ("kind: mock", "kind: mock\nstore: mysql://x", "3:8: store: expected 'sqlite'", ["postgresql://"]),
    ("kind: mock", "kind: mock\nstore: postgresql://me:pw@db/x", "3:8: store: a password", [".pgpass"]),
    ("kind: mock", "kind: mock\nstore: postgresql://me:p/w@db/x", "3:8: store: a password", [".pgpass"]),
    ("kind: mock", "kind: mock\nstore: postgresql://me:p?w@db/x", "3:8: store: a password", [".pgpass"]),
    ("kind: mock", "kind: mock\nstore: postgresql://me@db/x?password=pw", "3:8: store: a password", [".pgpass"]),
    ("kind: mock", "kind: mock\nstore: postgresql://db/x?a=b&sslpassword=pw", "3:8: store: a password", [".pgpass"]),
    ("kind: mock", "kind: mock\nstore: postgresql://me@db/x?%70assword=pw", "3:8: store: a password", [".pgpass"]),
    ("ports: 8}", "ports: eight}", "3:37: fabric.ports: expected a whole number from 2 to 4096", ["'eight'"]),
    ("ports: 8}", "ports: 8, pace: maybe}", "3:46: fabric.pace: expected true or false", ["'maybe'"]),
    ("ports: 8}", "ports: 8, control: {tcp: switch}}", "3:55: fabric.control.tcp: expected 'host:port'", ["auto"]),
    ("ports: 8}", "ports: 8, control: {tcp: 'a:70000'}}", "3:55: fabric.control.tcp: expected", ["'a:70000'"]),
    ("ports: 8}", "ports: 8, control: {serial: COM1}}", "3:58: fabric.control.serial: expected", ["/dev/ttyUSB0"]),
    ("driver: flexfabric", "driver: flexfabrik", "3:18: fabric.driver: 'flexfabrik'", ["did you mean 'flexfabric'?"]),
    ("srv1: {ports:", "d01: {ports:", "11:8: drives.d01: the name d01 is already given at servers.d01", ["rename"]),
    ("srv1: {ports:", "srv1: {stack: comrest, ports:", "5:17: servers.srv1.stack:", ["did you mean 'comreset'?"]),
    ("srv1: {ports:", "srv1: {prots: {}, ports:", "5:10: servers.srv1.prots: unknown key", ["did you mean 'ports'?"]),
    ("srv1: {ports: {p0: 1, p1: 2}", "srv1: {ports: {}", "5:17: servers.srv1.ports: is empty", ["at least one"]),
    ("srv1: {ports: {p0: 1,", "srv1: {ports: {p0: ,", "5:18: servers.srv1.ports.p0: give the number", ["{p0: 1}"]),
    ("srv1: {ports: {p0: 1,", "srv1: {ports: {p0: 1e0,", "5:22: servers.srv1.ports.p0: expected a whole", ["'1e0'"]),
    ("outlet: pdu1/1", "outlet: pdu1", "5:41: servers.srv1.outlet: expected an outlet", ["pdu1/1"]),
    ("outlet: pdu1/1", "outlet: pdu1/1, bmc: redfisch", "5:54: servers.srv1.bmc.driver:", ["'redfish'"]),
    ("outlet: pdu1/1", "outlet: pdu1/1, console: tyt", "5:58: servers.srv1.console.driver:", ["'tty'"]),
    ("outlet: pdu1/1", "outlet: pdu1/1, console: ipmi", "5:49: servers.srv1.console: is that of a bmc", ["has none"]),
    (
        "outlet: pdu1/1",
        "outlet: pdu1/1, bmc: ipmi, console: redfish",
        "5:60: servers.srv1.console: is that of a bmc with driver redfish",
        ["one with driver ipmi"],
    ),
    (
        "outlet: pdu1/1",
        "outlet: pdu1/1, console: {driver: ser2net, address: 'c:70000'}",
        "5:85: servers.srv1.console.address: expected 'host:port'",
        ["'c:70000'"],
    ),
    (
        "outlet: pdu1/1",
        "outlet: pdu1/1, console: {driver: tty, baud: 5}",
        "5:78: servers.srv1.console.baud: '5' is not known here",
        ["115200"],
    ),
    ("outlet: pdu1/1", "outlet: pdu1/1, bmc: [x]", "5:54: servers.srv1.bmc: expected a mapping", ["a list"]),
    ("size: 8 GiB, port", "size: 8, port", "11:69: drives.d01.size: expected a quantity in B", ["no unit"]),
    ("size: 8 GiB, port", "size: 8 Gib, port", "11:69: drives.d01.size: expected a quantity in B", ["'8 Gib'"]),
    ("size: 8 GiB, port", "size: 8 kB, port", "11:69: drives.d01.size: expected a size from 1 MiB", ["unit"]),
    ("size: 8 GiB, port", "size: 8000001 B, port", "11:69: drives.d01.size: ", ["512", "whole number of sectors"]),
    ("size: 8 GiB, port", "size: {}, port", "11:69: drives.d01.size: expected a size", ["found a mapping"]),
    ("wwn: 5000c500a0000001", "wwn: 5000c500a000000", "11:45: drives.d01.wwn: expected a WWN", ["16", "has 15"]),
    ("wwn: 5000c500a0000001", "wwn: 5000c500a000000g", "11:45: drives.d01.wwn: expected a WWN", ["hexadecimal"]),
    ("wwn: 5000c500a0000001", "eui64: 0025", "11:47: drives.d01.eui64: expected an EUI-64", ["16", "has 4"]),
    ("wwn: 5000c500a0000001", "nguid: 0025", "11:47: drives.d01.nguid: expected an NGUID", ["32", "has 4"]),
    ("wwn: 5000c500a0000001", f"eui64: {32 * '0'}", "11:47: drives.d01.eui64: ", ["looks like an NGUID", "nguid:"]),
    ("wwn: 5000c500a0000001", f"nguid: {16 * '0'}", "11:47: drives.d01.nguid: ", ["looks like an EUI-64", "eui64:"]),
    ("profile: sata-ssd", "profile: sata-sd", "11:18: drives.d01.profile: 'sata-sd' is not known", ["'sata-ssd'"]),
    ("profile: sata-ssd", "profile: own.yaml", "11:18: drives.d01.profile: there is no drive profile at", ["own.yaml"]),
    ("port: 3", "port: 3, timing: idle", "11:93: drives.d01.timing: expected model, ideal", ["did you mean 'ideal'?"]),
    ("serial: A1", "serial: ''", "11:36: drives.d01.serial: expected a text of 1", ["''"]),
    ("serial: A1, ", "", "11:3: drives.d01.serial: is missing", ["as the drive reports it"]),
    ("port: 3, scratch: true", "port: 3", "11:3: drives.d01.scratch: is missing", ["erase", "never written"]),
    ("port: 3, scratch: true", "port: 3, scratch: maybe", "11:94: drives.d01.scratch: expected true or false", []),
    ("  d01: {", "  1d: {", "11:3: drives['1d']: expected a name", ["a letter first"]),
    ("slots: 2}", "slots: 0}", "9:26: expanders.exp1.slots: expected a whole number from 1", ["'0'"]),
    ("driver: redfish, outlets: 2", "driver: ipmi, outlets: 2", "7:18: pdus.pdu1.driver: 'ipmi'", ["but for a bmc"]),
    (
        "driver: redfish, outlets: 2",
        "driver: apc, outlets: 2, verfy: no",
        "7:35: pdus.pdu1.verfy: unknown key",
        ["password"],
    ),
    (
        "driver: redfish, outlets: 2",
        "driver: cyberpower, outlets: 2, ca_file: ca.pem",
        "7:42: pdus.pdu1.ca_file: unknown key; SNMP with a community has no certificates: leave it out",
        ["network of its own"],
    ),
    (
        "driver: redfish, outlets: 2",
        "driver: redfish, outlets: 2, cipher_suite: 3",
        "7:39: pdus.pdu1.cipher_suite: unknown key; Redfish speaks HTTPS, which agrees on ciphers by itself: leave it",
        [],
    ),
    (
        "outlet: pdu1/1",
        "bmc: {driver: ipmi, verify: no}",
        "5:53: servers.srv1.bmc.verify: unknown key; IPMI has no certificates: leave it out",
        ["driver: redfish verifies certificates"],
    ),
    ("outlet: pdu1/1", "outlet: pdu1/1, tags: [1x]", "5:56: servers.srv1.tags[0]: expected a name", ["'1x'"]),
    ("outlet: pdu1/1", "outlet: pdu1/1, place: {unit: 0}", "5:63: servers.srv1.place.unit: expected a whole", []),
    ("driver: redfish, outlets: 2", "driver: apcc, outlets: 2", "7:18: pdus.pdu1.driver: 'apcc'", ["'apc'"]),
]

WRONG_WIRING = [
    ("p1: 2}", "p1: 1}", "5:29: servers.srv1.ports.p1: switch port 1 is already used", ["ports.p0", "(5:22)"]),
    (
        "port: 3",
        "port: 2",
        "11:82: drives.d01.port: switch port 2 is already used",
        ["servers.srv1.ports.p1", "(5:29)"],
    ),
    ("port: 3", "port: 9", "11:82: drives.d01.port: the switch has ports 1 to 8", ["9"]),
    ("ports: 8}", "ports: 3}", "3:37: fabric.ports: 4 server ports, drives and expanders", ["3 ports"]),
    ("port: 3", "port: 3, timing: {knd: 1}", "11:94: drives.d01.timing.knd: the profile sata-ssd", ["mean 'kind'?"]),
    ("port: 3", "port: 3, timing: {channels: }", "11:104: drives.d01.timing.channels: ", ["a number", "found nothing"]),
    ("port: 3", "port: 3, timing: {kind: 1}", "11:100: drives.d01.timing.kind: kind: expected a word", ["'1'"]),
    ("port: 3, ", "", "11:3: drives.d01: is plugged in nowhere", ["port:"]),
    ("p1: 2}", "p1: 2}, paths: {p2: pci-1}", "5:41: servers.srv1.paths.p2: no port of srv1 is named", ["'p2'"]),
    ("p1: 2}", "p1: 2}, paths: {p0: pci-1, p1: pci-1}", "5:56: servers.srv1.paths.p1: pci-1 is also", ["of p0"]),
    ("p1: 2}", "p1: 2}, paths: {p0: pci-1-ata-1, p1: pci-1-ata-1.0}", "5:45: servers.srv1.paths.p0: ", ["of p1"]),
    ("port: 3, ", "port: 3, expander: exp1, slot: 1, ", "11:85: drives.d01.expander: one plug", ["port is given"]),
    ("port: 3, ", "attached: srv1/p0, ", "11:76: drives.d01.attached: is for racks without a switch", ["port:"]),
    ("wwn: 5000c500a0000001, ", "", "11:3: drives.d01: has no identifier", ["wwn:"]),
    (
        "serial: A2",
        "serial: A1",
        "12:35: drives.d02.serial: the serial A1 is already",
        ["drives.d01.serial", "(11:36)"],
    ),
    ("0000002", "0000001", "12:44: drives.d02.wwn: the wwn 5000c500a0000001 is already", ["(11:45)"]),
    ("expander: exp1", "expander: exp2", "12:85: drives.d02.expander: no expander", ["did you mean 'exp1'?"]),
    ("slot: 0", "slot: 2", "12:97: drives.d02.slot: the slots of exp1 are numbered from 0 to 1", ["'2'"]),
    ("slot: 0", "slot: A", "12:97: drives.d02.slot: the slots of exp1 are numbered", ["'A'"]),
    ("slot: 0, ", "", "12:3: drives.d02: is in the expander exp1 without a slot", ["slot:"]),
    ("profile: sas-hdd", "profile: nvme-ssd", "12:86: drives.d02.expander: an NVMe drive", ["port:"]),
    ("exp1: {port: 8, ", "exp1: {", "9:3: expanders.exp1: is plugged in nowhere", ["port:"]),
    ("pdu1/1", "pdu2/1", "5:41: servers.srv1.outlet: no PDU is named 'pdu2'", ["did you mean 'pdu1'?"]),
    ("pdu1/1", "pdu1/3", "5:41: servers.srv1.outlet: pdu1 has outlets 1 to 2", ["3"]),
    ("pdu1/1}", "pdu1/1}\n  srv2: {ports: {p0: 4}, outlet: pdu1/1}", "6:34: servers.srv2.outlet:", ["servers.srv1"]),
    ("{p0: d01", "{p0: d03", "14:14: baseline.srv1.p0: no drive or expander is named 'd03'", ["did you mean"]),
    ("{p0: d01", "{p0: d02", "14:14: baseline.srv1.p0: d02 is behind the expander exp1", ["join the port to exp1"]),
    ("{p0: d01", "{p0: exp1", "14:24: baseline.srv1.p1: exp1 is already joined", ["baseline.srv1.p0", "(14:14)"]),
    ("{p0: d01", "{p2: d01", "14:10: baseline.srv1.p2: no port of srv1 is named 'p2'", ["known: p0, p1"]),
    ("  srv1: {p0", "  srv9: {p0", "14:3: baseline.srv9: no server is named 'srv9'", ["did you mean 'srv1'?"]),
    ("  exp1: {port", "  d01: {port", "9:8: expanders.d01: the name d01 is already given at drives.d01", ["rename"]),
    (
        "  d02: {profile",
        "  srv1: {profile",
        "12:9: drives.srv1: the name srv1 is already given at servers.srv1",
        ["rename"],
    ),
    ("  srv1: {ports", "  drive: {ports", "5:3: servers.drive: 'drive' means something else here", ["another name"]),
    ("  srv1: {ports", "  switch: {ports", "5:3: servers.switch: 'switch' means something else here", ["another name"]),
    ("  srv1: {ports", "  servers: {ports", "5:3: servers.servers: 'servers' means something", ["another name"]),
    (
        "name: rack\n",
        "name: rack\nquarantine: {failures: 5, tests: 2}\n",
        "2:24: quarantine.failures: 5 failures among 2 tests never happen",
        ["raise tests"],
    ),
    ("ports: 8}", "ports: 8, control: {baud: 115201}}", "3:56: fabric.control.baud: '115201' is not known", ["115200"]),
    ("5000c500a0000001", "5000e500", "11:45: drives.d01.wwn: expected a WWN of 16", ["which has 8"]),
]

PHYSICAL_NEEDS = [
    (
        "kind: physical\n",
        "kind: physical\ncontrollers: [ctl1, ctl2]\nstore: sqlite\n",
        "4:8: store: sqlite serves one machine, and 2 control this rack",
        ["postgresql://rackloop@db.lab.example/rackloop"],
    ),
    (", control: {tcp: 'switch:5025'}", "", "3:1: fabric.control: is missing", ["switch.lab.example:5025"]),
    ("{tcp: 'switch:5025'}", "{}", "3:39: fabric.control: is missing", ["/dev/ttyUSB0"]),
    ("'switch:5025'", "auto", "3:45: fabric.control.tcp: auto is for simulated labs", ["5025"]),
    (", known_hosts: known", "", "5:3: servers.srv1.known_hosts: is missing", ["ssh-keyscan"]),
    ("ssh: srv1, ", "", "5:3: servers.srv1.ssh: is missing", ["srv1.lab.example"]),
    ("ssh: srv1", "ssh: srv1, bmc: redfish", "5:42: servers.srv1.bmc.address: is missing", ["URL"]),
    ("ssh: srv1", "ssh: srv1, console: tty", "5:46: servers.srv1.console.device: is missing", ["/dev/ttyUSB0"]),
    ("ssh: srv1", "ssh: srv1, console: ser2net", "5:46: servers.srv1.console.address: is missing", ["2001"]),
    (
        "ssh: srv1",
        "ssh: srv1, bmc: {driver: redfish, address: b}, console: redfish",
        "5:82: servers.srv1.console.known_hosts: is missing",
        ["SSH key"],
    ),
    ("jump: gate", "jump: gaet", "5:63: servers.srv1.jump: no jump host is named 'gaet'", ["did you mean 'gate'?"]),
    ("jump: gate", "jump: gate, clock: srv1", "5:69: servers.srv1.clock: is reached from here", ["delete the key"]),
    ("jump: gate", "clock: 'a b'", "5:64: servers.srv1.clock: expected a host such as", ["'a b'"]),
    ("{ssh: 'gate:22', ", "{", "7:3: jump_hosts.gate.ssh: is missing", ["'host:port'"]),
    ("'gate:22', known_hosts: known", "gate", "7:3: jump_hosts.gate.known_hosts: is missing", ["SSH key"]),
    ("'gate:22'", "'a b'", "7:15: jump_hosts.gate.ssh: expected a host such as", ["'a b'"]),
    (
        "drives:",
        "pdus: {pdu1: {driver: apc, outlets: 8}}\ndrives:",
        "8:8: pdus.pdu1.address: is missing",
        ["host name"],
    ),
    (
        "ssh: srv1",
        "paths: {p0: /dev/sda}, ssh: srv1",
        "5:38: servers.srv1.paths.p0: expected the beginning of names in /dev/disk/by-path, found",
        ["/dev/sda"],
    ),
    ("model: M, ", "", "9:3: drives.d01.model: is missing", ["as the drive reports it"]),
    ("5000c500a0000001", "5000e500", "9:55: drives.d01.wwn: expected a WWN of 16", ["which has 8"]),
    (
        "ssh: srv1",
        "ssh: srv1, user: \"{{ lookup('pipe','id') }}\"",
        "5:43: servers.srv1.user: expected a user",
        ["letters"],
    ),
    ("ssh: srv1", 'ssh: srv1, user: "a b"', "5:43: servers.srv1.user: expected a user", ["'a b'"]),
    (
        "known_hosts: known, jump",
        'known_hosts: "k\\n  ProxyCommand id", jump',
        "5:50: servers.srv1.known_hosts: expected a file name without control characters",
        ["ProxyCommand"],
    ),
    (
        "known_hosts: known, jump",
        "known_hosts: 'k\"', jump",
        "5:50: servers.srv1.known_hosts: expected a file name without control characters",
        ['k"'],
    ),
]

STATIC_HAS_NO_SWITCH = [
    ("driver: static", "driver: static, ports: 8", "3:26: fabric.ports: a static fabric has no switch", ["delete"]),
    ("p0, p1}", "p0, p1: 2}", "5:26: servers.srv1.ports.p1: a static fabric has no switch ports", ["delete"]),
    ("attached: srv1/p0", "port: 3", "7:82: drives.d01.port: a static fabric has no switch ports", ["attach"]),
    ("attached: srv1/p0, ", "", "7:3: drives.d01: is plugged in nowhere", ["attached:"]),
    ("attached: srv1/p0", "attached: srv2/p0", "7:86: drives.d01.attached: no server is named 'srv2'", ["'srv1'"]),
    ("attached: srv1/p0", "attached: srv1/p2", "7:86: drives.d01.attached: no port of srv1 is named", ["'p2'"]),
    ("attached: srv1/p0", "attached: srv1", "7:86: drives.d01.attached: expected a server and its port", ["srv1/p0"]),
    (
        "drives:",
        "expanders: {e1: {attached: srv1/p0, slots: 4}}\ndrives:",
        "6:28: expanders.e1.attached:",
        ["drives.d01"],
    ),
    ("drives:", "baseline: {srv1: {p0: d01}}\ndrives:", "6:1: baseline: a rack without a switch", ["delete baseline"]),
]

TABLE = [
    *((RACK, *row) for row in WRONG_VALUES + WRONG_WIRING),
    *((PHYSICAL, *row) for row in PHYSICAL_NEEDS),
    *((STATIC, *row) for row in STATIC_HAS_NO_SWITCH),
]


@pytest.mark.parametrize(("text", "old", "new", "start", "words"), TABLE, ids=[f"{row[1]}>{row[2]}" for row in TABLE])
def test_a_mistake_is_reported_where_it_stands(
    text: str, old: str, new: str, start: str, words: list[str], tmp_path: Path
) -> None:
    assert old in text
    found = [problem for problem in problems_of(text.replace(old, new, 1), tmp_path) if problem.startswith(start)]
    assert len(found) == 1, problems_of(text.replace(old, new, 1), tmp_path)
    assert all(word in found[0] for word in words), found[0]
    assert "pydantic" not in found[0]
    assert "Input should" not in found[0]


def test_every_mistake_is_reported_in_one_pass(tmp_path: Path) -> None:
    """A bad value hides neither the bad wiring of the same drive nor that of others."""
    text = RACK.replace("kind: mock", "kind: moc").replace("8 GiB, port: 3", "8 furlongs, port: 1")
    text = text.replace("p1: exp1", "p1: d09").replace("slot: 0", "slot: 7") + "colour: red\n"
    assert [problem.split(": ")[1] for problem in problems_of(text, tmp_path)] == [
        "kind",
        "drives.d01.size",
        "drives.d01.port",
        "drives.d02.slot",
        "baseline.srv1.p1",
        "colour",
    ]


def test_a_broken_part_raises_no_false_alarm_elsewhere(tmp_path: Path) -> None:
    """What refers to a part with a problem of its own is not told that the part is not there."""
    for name in ("d01: {profile", "exp1: {port", "srv1: {ports", "pdu1: {driver"):
        key, _, rest = name.partition("{")
        found = problems_of(RACK.replace(name, f"{key}{{typo: 1, {rest}", 1), tmp_path)
        assert len(found) == 1
        assert "unknown key" in found[0]
    assert len(problems_of(RACK.replace("d01: {profile: sata-ssd", "d01: {profile: []"), tmp_path)) == 1


def test_a_thousand_drives_with_two_mistakes_each_are_two_thousand_lines(tmp_path: Path) -> None:
    drives = "".join(f"  x{n}: {{profile: sata-ssd, serial: S{n}, wwn: {n:016x}, size: 8 GiB}}\n" for n in range(1000))
    found = problems_of(RACK.replace("drives:\n", f"drives:\n{drives}"), tmp_path)
    assert len(found) == 2000
    assert {problem.split(": ", 2)[2].split(":")[0].split(";")[0] for problem in found} == {
        "is missing",
        "is plugged in nowhere",
    }


def test_a_section_that_is_not_there_has_no_names(tmp_path: Path) -> None:
    text = RACK.replace("pdus:\n  pdu1: {driver: redfish, outlets: 2}\n", "")
    assert problems_of(text, tmp_path) == ["5:41: servers.srv1.outlet: no PDU is named 'pdu1'; there are none"]
    text = text.replace("pdu1/1", "drives/1")
    assert problems_of(text, tmp_path) == ["5:41: servers.srv1.outlet: no PDU is named 'drives'; there are none"]


def test_one_problem_is_one_line(tmp_path: Path) -> None:
    text = RACK + '"line\\nbreak": 1\n"' + "x" * 500 + '": 2\nlong: "' + "y" * 500 + '"\n'
    text = text.replace("p1: exp1", "p1: nobody").replace("  exp1: {", '  "e\\np": {port: 7, slots: 1}\n  exp1: {')
    found = problems_of(text.replace("name: rack", 'name: "a\\nb"'), tmp_path)
    assert len(found) == 6
    assert all("\n" not in problem and len(problem) < 300 for problem in found)


def test_what_is_not_a_file_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "rack.yaml")
    [(_, found)] = check_files([tmp_path / "rack.yaml"])
    assert "is a pipe or a socket, not a file" in str(found)


def test_of_many_problems_the_first_are_shown_and_the_others_counted(tmp_path: Path) -> None:
    (tmp_path / "rack.yaml").write_text(RACK + "".join(f"key{number}: x\n" for number in range(80)))
    with pytest.raises(DescriptionError) as caught:
        load_lab(tmp_path / "rack.yaml")
    lines = str(caught.value).splitlines()
    assert len(lines) == 51
    assert lines[-1] == "and 30 more problems: mend these first"


def test_a_file_with_thousands_of_problems_is_given_up(tmp_path: Path) -> None:
    drives = "".join(f"  x{number}: *a\n" for number in range(10_000))
    (tmp_path / "rack.yaml").write_text(f"name: a\nkind: mock\nx: &a {{k: v}}\ndrives:\n{drives}")
    with pytest.raises(DescriptionError) as caught:
        load_lab(tmp_path / "rack.yaml")
    assert len(caught.value.problems) == 1000
