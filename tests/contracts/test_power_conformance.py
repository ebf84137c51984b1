"""Clients nobody here wrote get along with the simulated boxes: sushy, DMTF's redfish, curl, ipmitool, net-snmp."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
import redfish  # type: ignore[import-untyped]
import requests
import sushy  # type: ignore[import-untyped]
from pyghmi.ipmi.command import Command  # type: ignore[import-untyped]
from sushy.auth import SessionAuth  # type: ignore[import-untyped]

from rackloop_drivers.power.snmp import APC, CYBERPOWER, OutletMib, SnmpPdu
from tests.power_boxes import FEEDING, OUTLETS, PASSWORD, READ_COMMUNITY, USER, PowerBoxes, power_boxes

ENTERPRISE = {"apc": "1.3.6.1.4.1.318.1.1.12", "cyberpower": "1.3.6.1.4.1.3808.1.1.3"}


@pytest.fixture
def boxes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PowerBoxes]:
    with power_boxes(tmp_path_factory.mktemp("boxes")) as boxes:
        yield boxes


def run(*argv: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        argv, capture_output=True, text=True, timeout=60, check=False, env={**os.environ, "LC_ALL": "C", **environment}
    )


def printed(*argv: str, **environment: str) -> str:
    ran = run(*argv, **environment)
    assert ran.returncode == 0, f"{argv}: {ran.stderr}"
    assert "SDR" not in ran.stderr, f"{argv} misses sensor records: {ran.stderr}"
    return ran.stdout


def test_sushy_switches_a_system(boxes: PowerBoxes) -> None:
    auth = SessionAuth(USER, PASSWORD)
    root = sushy.Sushy(boxes.redfish_bmc.url, auth=auth, verify=str(boxes.ca_file))
    (system,) = root.get_system_collection().get_members()
    assert system.power_state == sushy.PowerState.ON
    for reset, is_on in (("FORCE_OFF", False), ("ON", True), ("POWER_CYCLE", True), ("GRACEFUL_SHUTDOWN", False)):
        system.reset_system(sushy.ResetType[reset])
        system.refresh(force=True)
        assert boxes.is_on() is is_on
        assert system.power_state == (sushy.PowerState.ON if is_on else sushy.PowerState.OFF)
    assert root.get_manager_collection().get_members()[0].manager_type == sushy.ManagerType.BMC
    assert root.get_chassis_collection().get_members()[0].identity == "1"
    assert set(system.get_allowed_reset_system_values()) >= {sushy.ResetType.NMI, sushy.ResetType.FORCE_RESTART}
    auth.close()


def test_sushy_sets_from_where_a_system_boots(boxes: PowerBoxes) -> None:
    auth = SessionAuth(USER, PASSWORD)
    root = sushy.Sushy(boxes.redfish_bmc.url, auth=auth, verify=str(boxes.ca_file))
    system = root.get_system("/redfish/v1/Systems/1")
    assert sushy.BOOT_SOURCE_TARGET_PXE in system.get_allowed_system_boot_source_values()
    system.set_system_boot_options(sushy.BOOT_SOURCE_TARGET_PXE, enabled=sushy.BOOT_SOURCE_ENABLED_ONCE)
    system.refresh(force=True)
    assert (system.boot.target, system.boot.enabled) == (
        sushy.BootSource.PXE,
        sushy.BootSourceOverrideEnabled.ONCE,
    )
    system.reset_system(sushy.ResetType.FORCE_RESTART)
    system.refresh(force=True)
    assert system.boot.enabled == sushy.BootSourceOverrideEnabled.DISABLED
    system.set_system_boot_options(sushy.BOOT_SOURCE_TARGET_HDD, enabled=sushy.BOOT_SOURCE_ENABLED_CONTINUOUS)
    system.reset_system(sushy.ResetType.FORCE_RESTART)
    system.refresh(force=True)
    assert system.boot.target == sushy.BootSource.HDD
    with pytest.raises(sushy.exceptions.BadRequestError, match="Floppy is no BootSourceOverrideTarget"):
        root._conn.patch(system.path, data={"Boot": {"BootSourceOverrideTarget": "Floppy"}})
    auth.close()


def test_a_redfish_service_keeps_the_protocol(boxes: PowerBoxes) -> None:
    """What DMTF's protocol validator asks for, and refused before (DSP0266: 6, 7, 13)."""
    with requests.Session() as session:

        def ask(path: str, method: str = "GET", **options: Any) -> Any:
            return session.request(method, boxes.redfish_bmc.url + path, verify=str(boxes.ca_file), **options)

        schemas = set(re.findall(r'Namespace="([^"]+)"', ask("/redfish/v1/$metadata").text))
        assert {entry["name"] for entry in ask("/redfish/v1/odata").json()["value"]} >= {"Service", "Systems"}
        assert ask("/redfish/v1/Systems/1").headers["WWW-Authenticate"].startswith("Basic ")
        known: dict[str, Any] = {"auth": (USER, PASSWORD)}
        for method, path, allow in (
            ("POST", "/redfish/v1/Systems/1", "GET, HEAD, PATCH"),
            ("DELETE", "/redfish/v1/", "GET, HEAD"),
            ("PATCH", "/redfish/v1/SessionService/Sessions", "GET, HEAD, POST"),
            ("GET", "/redfish/v1/Systems/1/Actions/ComputerSystem.Reset", "POST"),
        ):
            answer = ask(path, method, **known)
            assert (answer.status_code, answer.headers["Allow"]) == (405, allow)
        assert ask("/redfish/v1/Systems/1", headers={"OData-Version": "3.0"}, **known).status_code == 412
        system = ask("/redfish/v1/Systems/1", **known)
        assert system.headers["Link"].endswith("/ComputerSystem.v1_20_0.json>; rel=describedby")
        for role in ("Administrator", "Operator", "ReadOnly"):
            assert ask(f"/redfish/v1/AccountService/Roles/{role}", **known).json()["IsPredefined"] is True
        paths = [
            "/redfish/v1/",
            "/redfish/v1/Systems/1",
            "/redfish/v1/AccountService/Accounts/1",
            "/redfish/v1/Chassis",
        ]
        kinds = {ask(path, **known).json()["@odata.type"].removeprefix("#").rpartition(".")[0] for path in paths}
        assert kinds <= schemas


@pytest.mark.parametrize("auth", ["session", "basic"])
def test_the_client_of_dmtf_switches_a_system_and_an_outlet(auth: str, boxes: PowerBoxes) -> None:
    client = redfish.redfish_client(boxes.redfish_bmc.url, USER, PASSWORD, cafile=str(boxes.ca_file))
    client.login(auth=auth)
    system = client.get("/redfish/v1/Systems/1").dict
    reset = system["Actions"]["#ComputerSystem.Reset"]["target"]
    assert client.post(reset, body={"ResetType": "ForceOff"}).status == 204
    assert not boxes.is_on()
    for refused in ("PowerCycle", "Nmi"):
        assert client.post(reset, body={"ResetType": refused}).status == 409
    answer = client.post(reset, body={"ResetType": "Explode"})
    assert answer.status == 400
    assert "Explode is no ResetType" in answer.dict["error"]["message"]
    entries = client.get(f"{system['LogServices']['@odata.id']}/SEL/Entries").dict
    assert [entry["Message"] for entry in entries["Members"]] == ["The server was powered off."]
    assert [entry["SensorType"] for entry in entries["Members"]] == ["PowerUnit"], "as LogEntry of DSP8010 writes it"
    client.logout()

    pdu = redfish.redfish_client(boxes.redfish_pdu.url, USER, PASSWORD, cafile=str(boxes.ca_file))
    pdu.login(auth=auth)
    outlets = pdu.get("/redfish/v1/PowerEquipment/RackPDUs/1/Outlets").dict
    assert outlets["Members@odata.count"] == OUTLETS
    outlet = pdu.get(outlets["Members"][FEEDING - 1]["@odata.id"]).dict
    assert pdu.post(outlet["Actions"]["#Outlet.PowerControl"]["target"], body={"PowerState": "Off"}).status == 204
    assert pdu.get(outlet["@odata.id"]).dict["PowerState"] == "Off"
    pdu.logout()


def test_every_link_of_the_redfish_services_leads_somewhere(boxes: PowerBoxes) -> None:
    boxes.loop.run(boxes.chassis.cycle())
    for url in (boxes.redfish_bmc.url, boxes.redfish_pdu.url):
        client = redfish.redfish_client(url, USER, PASSWORD, cafile=str(boxes.ca_file))
        client.login(auth="basic")
        seen, waiting = set[str](), ["/redfish/v1/"]
        while waiting:
            path = waiting.pop()
            if path not in seen:
                seen.add(path)
                answer = client.get(path)
                assert answer.status == 200, f"{path}: {answer.status}"
                assert answer.dict["@odata.id"].rstrip("/") == path.rstrip("/")
                waiting += re.findall(r'"@odata\.id": "([^"]+)"', answer.text)
        assert len(seen) > 10
        client.logout()


def test_curl_is_let_in_with_a_password_and_not_without(boxes: PowerBoxes) -> None:
    url = f"{boxes.redfish_bmc.url}/redfish/v1"
    curl = ("curl", "--silent", "--cacert", str(boxes.ca_file), "--write-out", "\n%{http_code}")
    assert printed(*curl, url).endswith("\n200")
    assert printed(*curl, f"{url}/Systems/1").endswith("\n401")
    assert '"PowerState": "On"' in printed(*curl, "--user", f"{USER}:{PASSWORD}", f"{url}/Systems/1")
    assert printed(*curl, "--user", f"{USER}:{PASSWORD}", f"{url}/Systems/2").endswith("\n404")
    assert printed(*curl, "--user", f"{USER}:{PASSWORD}", "--data", "{", f"{url}/SessionService/Sessions").endswith(
        "\n400"
    )


@pytest.mark.parametrize(
    "shown",
    [
        ("--header", "X-Auth-Token: nobody's"),
        ("--header", "Authorization: Basic =="),
        ("--data", r'{"UserName": "\ud800", "Password": "\ud800"}'),
    ],
    ids=["token", "scheme", "account"],
)
def test_what_no_account_can_be_is_refused_as_any_other(shown: tuple[str, str], boxes: PowerBoxes) -> None:
    path = "SessionService/Sessions" if shown[0] == "--data" else "Systems/1"
    curl = ("curl", "--silent", "--cacert", str(boxes.ca_file), "--write-out", "\n%{http_code}", *shown)
    assert printed(*curl, f"{boxes.redfish_bmc.url}/redfish/v1/{path}").endswith("\n401")


def test_a_long_log_comes_in_pages(boxes: PowerBoxes) -> None:
    for _ in range(60):
        boxes.loop.run(boxes.chassis.interrupt())
    client = redfish.redfish_client(boxes.redfish_bmc.url, USER, PASSWORD, cafile=str(boxes.ca_file))
    client.login(auth="session")
    first = client.get("/redfish/v1/Systems/1/LogServices/SEL/Entries").dict
    second = client.get(first["Members@odata.nextLink"]).dict
    client.logout()
    numbers = [int(entry["Id"]) for page in (first, second) for entry in page["Members"]]
    assert numbers == list(range(1, 61))
    assert "Members@odata.nextLink" not in second


def ipmitool(boxes: PowerBoxes, *command: str, suite: int = 17) -> str:
    host, _, port = boxes.ipmi_bmc.address.partition(":")
    where = ("-H", host, "-p", port, "-U", USER, "-E", "-C", str(suite))
    return printed("ipmitool", "-I", "lanplus", *where, *command, IPMITOOL_PASSWORD=PASSWORD)


@pytest.mark.parametrize("suite", [3, 17])
def test_ipmitool_switches_a_chassis(suite: int, boxes: PowerBoxes) -> None:
    assert "is on" in ipmitool(boxes, "chassis", "power", "status", suite=suite)
    for act, is_on in (("off", False), ("on", True), ("cycle", True), ("reset", True), ("soft", False)):
        ipmitool(boxes, "chassis", "power", act, suite=suite)
        assert boxes.is_on() is is_on
    assert re.search(r"System Power +: off", ipmitool(boxes, "chassis", "status", suite=suite))
    assert re.search(r"IPMI Version +: 2.0", ipmitool(boxes, "mc", "info", suite=suite))
    assert "System GUID" in ipmitool(boxes, "mc", "guid", suite=suite)


def test_ipmitool_may_do_what_its_privilege_level_allows(boxes: PowerBoxes) -> None:
    host, port = boxes.ipmi_bmc.address.split(":")
    argv = ["ipmitool", "-I", "lanplus", "-H", host, "-p", port, "-U", USER, "-P", PASSWORD, "-C", "17", "-L"]
    assert printed(*argv, "USER", "power", "status") == "Chassis Power is on\n"
    for command in (["power", "off"], ["sel", "clear"]):
        refused = run(*argv, "USER", *command)
        assert refused.returncode != 0
        assert "nsufficient privilege" in refused.stderr + refused.stdout
    assert boxes.is_on()
    printed(*argv, "OPERATOR", "power", "off")
    assert not boxes.is_on()


def test_ipmitool_cannot_cycle_what_is_off(boxes: PowerBoxes) -> None:
    ipmitool(boxes, "chassis", "power", "off")
    host, _, port = boxes.ipmi_bmc.address.partition(":")
    where = ("-H", host, "-p", port, "-U", USER, "-E", "-C", "17")
    ran = run("ipmitool", "-I", "lanplus", *where, "chassis", "power", "cycle", IPMITOOL_PASSWORD=PASSWORD)
    assert ran.returncode == 1
    assert "not supported in present state" in ran.stderr
    assert not boxes.is_on()


@pytest.mark.parametrize(
    ("command", "names"),
    [
        ("list", ["Power Unit #0x01", "System ACPI Power State #0x02", "Critical Interrupt #0x04"]),
        ("elist", ["Power Unit Power", "System ACPI Power State ACPI State", "Critical Interrupt NMI"]),
    ],
)
def test_ipmitool_reads_the_log(command: str, names: list[str], boxes: PowerBoxes) -> None:
    power, state, interrupt = names
    boxes.loop.run(boxes.chassis.turn_off())
    boxes.feed(on=False)
    boxes.feed(on=True)
    boxes.loop.run(boxes.chassis.turn_on())
    boxes.loop.run(boxes.chassis.interrupt())
    boxes.feed(on=False)
    boxes.feed(on=True)
    said = [line.split(" | ")[3:5] for line in ipmitool(boxes, "sel", command).splitlines()]
    assert said == [
        [power, "Power off/down"],
        [state, "S0/G0: working"],
        [interrupt, "NMI/Diag Interrupt"],
        [power, "AC lost"],
        [state, "S0/G0: working"],
    ]
    assert re.search(r"Entries +: 5", ipmitool(boxes, "sel", "info"))
    ipmitool(boxes, "sel", "clear")
    assert "Log area reset/cleared" in ipmitool(boxes, "sel", command)
    assert re.search(r"Entries +: 1", ipmitool(boxes, "sel", "info"))


def test_pyghmi_switches_a_chassis(boxes: PowerBoxes) -> None:
    host, _, port = boxes.ipmi_bmc.address.partition(":")
    session = Command(bmc=host, port=int(port), userid=USER, password=PASSWORD, keepalive=False)
    assert session.get_power() == {"powerstate": "on"}
    assert session.set_power("off", wait=True) == {"powerstate": "off"}
    assert not boxes.is_on()
    assert [(event["component"], event["event"]) for event in session.get_event_log()] == [("Power", "Power off")]
    session.ipmi_session.logout()


def pdu_of(boxes: PowerBoxes, kind: str) -> tuple[SnmpPdu, OutletMib]:
    return (boxes.apc, APC) if kind == "apc" else (boxes.cyberpower, CYBERPOWER)


@pytest.mark.parametrize("version", ["-v1", "-v2c"])
@pytest.mark.parametrize("kind", ["apc", "cyberpower"])
def test_net_snmp_switches_an_outlet(kind: str, version: str, boxes: PowerBoxes) -> None:
    pdu, _ = pdu_of(boxes, kind)
    agent = (version, "-On", "-c", PASSWORD, pdu.address)
    command, state = (f"{ENTERPRISE[kind]}.3.{table}.1.1.4.{FEEDING}" for table in (3, 5))
    for value, reads in (("2", "2"), ("1", "1"), ("3", "1")):
        assert printed("snmpset", *agent, command, "i", value).endswith(f"INTEGER: {value}\n")
        assert printed("snmpget", *agent, state).endswith(f"{state} = INTEGER: {reads}\n")
    walked = printed("snmpwalk", *agent, ENTERPRISE[kind])
    assert len(re.findall(r"\.3\.5\.1\.1\.4\.\d+ = INTEGER: 1\n", walked)) == OUTLETS
    assert f"{ENTERPRISE[kind]}.1.8.0 = INTEGER: {OUTLETS}\n" in walked


def test_net_snmp_switches_an_outlet_by_version_3(boxes: PowerBoxes) -> None:
    user = ("-v3", "-l", "authPriv", "-u", USER, "-a", "SHA", "-A", PASSWORD, "-x", "AES", "-X", PASSWORD)
    command = f"{ENTERPRISE['apc']}.3.3.1.1.4.{FEEDING}"
    printed("snmpset", *user, boxes.apc.address, command, "i", "2")
    assert printed("snmpget", *user, boxes.apc.address, command).endswith("INTEGER: 2\n")
    assert not boxes.is_on()


def test_net_snmp_is_refused_what_the_pdu_does_not_take(boxes: PowerBoxes) -> None:
    command = f"{ENTERPRISE['apc']}.3.3.1.1.4.{FEEDING}"
    for community, oid, kind, value, reason in (
        (READ_COMMUNITY, command, "i", "2", "notWritable"),
        (PASSWORD, f"{ENTERPRISE['apc']}.1.8.0", "i", "9", "notWritable"),
        (PASSWORD, command, "i", "8", "wrongValue"),
        (PASSWORD, command, "s", "off", "wrongType"),
    ):
        ran = run("snmpset", "-v2c", "-c", community, boxes.apc.address, oid, kind, value)
        assert ran.returncode == 2
        assert reason in ran.stderr
    assert "No Such Instance" in printed("snmpget", "-v2c", "-c", PASSWORD, boxes.apc.address, command + "9")
    assert boxes.is_on()
    assert "Timeout" in run("snmpget", "-v2c", "-r0", "-t0.2", "-c", "unknown", boxes.apc.address, command).stderr


def test_a_delayed_command_of_net_snmp_is_pending_and_may_be_cancelled(boxes: PowerBoxes) -> None:
    agent = ("-v1", "-Oqv", "-c", PASSWORD, boxes.apc.address)
    command, state, pending = (
        f"{ENTERPRISE['apc']}.3.{column}.{FEEDING}" for column in ("3.1.1.4", "5.1.1.4", "5.1.1.5")
    )
    boxes.loop.call(lambda: setattr(boxes.outlets["apc"], "delay_s", 3600.0))
    printed("snmpset", *agent, command, "i", "5")
    assert printed("snmpget", *agent, state, pending).split() == ["1", "1"]
    printed("snmpset", *agent, command, "i", "7")
    assert printed("snmpget", *agent, state, pending).split() == ["1", "2"]
    assert boxes.is_on()
