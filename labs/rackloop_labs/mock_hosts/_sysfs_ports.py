"""The HBA ports in a mock server's /sys: PCI functions, SCSI hosts, PHYs, expanders."""

from __future__ import annotations

from typing import NamedTuple

from rackloop_labs.mock_hosts._kernel_log import ata_name
from rackloop_labs.mock_hosts._sysfs_drives import add_bsg, add_nvme, add_scsi, add_scsi_device
from rackloop_labs.mock_hosts._tree import Tree
from rackloop_labs.mock_hosts._view import AttachedDrive, AttachedExpander, HbaPort, HostView

_LINK_RATE = "6.0 Gbit"
_ROOT_BUS = "devices/pci0000:00"
_NO_ADDRESS = "0" * 16
_TARGETS = {"sas": "ssp", "nvme": "none"}
# PCI class, vendor, device and driver of a port's function, by the protocol of what is plugged in.
_FUNCTIONS = {
    "sas": ("0x010700", "0x1000", "0x0054", "mptsas"),
    "sata": ("0x010601", "0x8086", "0x2922", "ahci"),
    "nvme": ("0x010802", "0x1b36", "0x0010", "nvme"),
}


class AttachedDevice(NamedTuple):
    """The device attached to a PHY: ``none``, ``end device`` or ``edge expander``, its SAS address, its protocol."""

    kind: str
    address: str
    protocol: str


def build_tree(view: HostView) -> Tree:
    """Everything /sys has to tell of a server's ports, links and drives."""
    tree = Tree()
    for folder in ("block", "class/block", "class/nvme", "class/scsi_disk", "class/sas_phy", "class/sas_end_device"):
        tree.folder(folder)
    for folder in ("class/sas_expander", "class/enclosure", "class/scsi_host", "class/ata_port", "dev/block"):
        tree.folder(folder)
    for port in view.ports:
        _add_port(tree, port, view)
    tree.command("bus/pci/rescan", "rescan_bus")
    _add_bus(tree, _ROOT_BUS, "0000:00")
    return tree


def far_end(view: HostView, port: HbaPort) -> AttachedDevice:
    """The far end of a port's PHY."""
    for expander in view.expanders:
        if expander.port.index == port.index:
            return AttachedDevice("edge expander", expander.sas_address, "smp")
    for drive in view.drives:
        if drive.port.index == port.index:
            return AttachedDevice("end device", drive.sas_address, drive.protocol)
    return AttachedDevice("none", _NO_ADDRESS, "none")


def _add_port(tree: Tree, port: HbaPort, view: HostView) -> None:
    end = far_end(view, port)
    # An HBA stays what it is while nothing is plugged in.
    protocol = port.last_protocol if end.kind == "none" else end.protocol
    bridge = _add_bridge(tree, port, protocol)
    if not port.is_present:
        return
    function = _add_function(tree, port, protocol, bridge)
    host = f"{function}/host{port.index}"
    if protocol == "sata":
        ata = f"{function}/{ata_name(port)}"
        host = f"{ata}/host{port.index}"
        tree.files(f"{ata}/ata_port/{ata_name(port)}", {"idle_irq": 0, "nr_pmp_links": 0, "port_no": 1})
        tree.link(f"{ata}/ata_port/{ata_name(port)}/device", ata)
        tree.member(f"{ata}/ata_port/{ata_name(port)}", "class/ata_port")
    _add_host(tree, port, host, protocol)
    drives = [drive for drive in view.drives if drive.port.index == port.index]
    for expander in view.expanders:
        if expander.port.index == port.index:
            _add_expander(tree, expander, drives, host)
    for drive in drives:
        if drive.slot is None:
            _add_drive(tree, drive, function, host)
    phy = _add_phy(tree, f"{host}/phy-{port.index}:0", 0, end, _rate(port), port.phy_resets)
    if end.kind == "edge expander" or end.protocol == "sas":
        tree.link(f"{host}/phy-{port.index}:0/port", f"{host}/port-{port.index}:0")
        tree.link(f"{host}/port-{port.index}:0/phy-{port.index}:0", f"{host}/phy-{port.index}:0")
    _let_reset(tree, phy, port)
    tree.command(f"{phy}/enable", "enable", port.name, text=int(port.is_enabled))


def _add_bridge(tree: Tree, port: HbaPort, protocol: str) -> str:
    """The root port, and its slot: one that an NVMe drive is in, or was when it was switched off, can be switched."""
    bridge = f"{_ROOT_BUS}/{port.bridge_address}"
    tree.files(bridge, {"class": "0x060400", "vendor": "0x1b36", "device": "0x000c", "enable": 1})
    tree.member(bridge, "bus/pci")
    # That of a device is for the bus that it is on.
    tree.command(f"{bridge}/rescan", "rescan_bus")
    _add_bus(tree, bridge, port.pci_address.rpartition(":")[0], port.name)
    slot = f"bus/pci/slots/{port.index}"
    tree.file(f"{slot}/address", port.pci_address.rpartition(".")[0])
    if protocol == "nvme" or not port.is_slot_on:
        tree.command(f"{slot}/power", "pci_slot_power", port.name, text=int(port.is_linked))
    else:
        tree.file(f"{slot}/power", int(port.is_linked))
    return bridge


def _add_function(tree: Tree, port: HbaPort, protocol: str, bridge: str) -> str:
    """The PCI function behind a root port."""
    kind, vendor, device, driver = _FUNCTIONS.get(protocol, _FUNCTIONS["sas"])
    function = f"{bridge}/{port.pci_address}"
    tree.files(
        function,
        {
            "class": kind,
            "vendor": vendor,
            "device": device,
            "subsystem_vendor": vendor,
            "subsystem_device": "0x1000",
            "revision": "0x02",
            "enable": 1,
            "irq": 24 + port.index,
            "numa_node": -1,
            "current_link_speed": "8.0 GT/s PCIe" if port.is_linked else "Unknown",
            "current_link_width": 4 if port.is_linked else 0,
            "max_link_speed": "8.0 GT/s PCIe",
            "max_link_width": 4,
            "modalias": f"pci:v0000{vendor[2:].upper()}d0000{device[2:].upper()}",
            "uevent": f"DRIVER={driver}\nPCI_CLASS={int(kind, 16):X}\n"
            f"PCI_ID={vendor[2:].upper()}:{device[2:].upper()}\nPCI_SLOT_NAME={port.pci_address}",
        },
    )
    tree.member(function, "bus/pci")
    tree.link(f"{function}/driver", f"bus/pci/drivers/{driver}")
    tree.link(f"bus/pci/drivers/{driver}/{port.pci_address}", function)
    tree.command(f"{function}/remove", "remove_function", port.name)
    tree.command(f"{function}/rescan", "rescan_bus", port.name)
    return function


def _add_bus(tree: Tree, above: str, bus: str, *ports: str) -> None:
    """A bus below a bridge, or the root bus; a rescan looks for the functions of ``ports``, of all where none is."""
    folder = f"{above}/pci_bus/{bus}"
    tree.link(f"{folder}/device", above)
    tree.member(folder, "class/pci_bus")
    tree.command(f"{folder}/rescan", "rescan_bus", *ports)


def _add_host(tree: Tree, port: HbaPort, host: str, protocol: str) -> None:
    entry = f"{host}/scsi_host/host{port.index}"
    is_ahci = protocol == "sata"
    tree.files(
        entry,
        {
            "active_mode": "Initiator",
            "can_queue": 32 if is_ahci else 128,
            "cmd_per_lun": 1 if is_ahci else 7,
            "host_busy": 0,
            "proc_name": "ahci" if is_ahci else "mptsas",
            "sg_tablesize": 168,
            "state": "running",
            "supported_mode": "Initiator",
            "unique_id": port.index + 1,
        },
    )
    if is_ahci:
        tree.file(f"{entry}/link_power_management_policy", "max_performance")
    tree.command(f"{entry}/scan", "scan", port.name)
    tree.link(f"{entry}/device", host)
    tree.member(entry, "class/scsi_host")
    if not is_ahci:
        sas_host = f"{host}/sas_host/host{port.index}"
        tree.link(f"{sas_host}/device", host)
        tree.member(sas_host, "class/sas_host")
        add_bsg(tree, host, f"sas_host{port.index}")


def _add_drive(tree: Tree, drive: AttachedDrive, function: str, host: str) -> None:
    number = drive.port.index
    if drive.protocol == "nvme":
        add_nvme(tree, drive, function)
    elif drive.protocol == "sata":
        add_scsi(tree, drive, f"{host}/target{number}:0:0")
    else:
        end = f"{host}/port-{number}:0/end_device-{number}:0"
        _add_end_device(tree, end, drive.sas_address, phy=0)
        add_scsi(tree, drive, f"{end}/target{number}:0:0")


def _rate(port: HbaPort) -> str:
    if not port.is_enabled:
        return "Phy disabled"
    return _LINK_RATE if port.is_linked else "Link Rate failed"


def _add_phy(tree: Tree, folder: str, number: int, end: AttachedDevice, rate: str, losses: int = 0) -> str:
    """A PHY, and its folder of attributes. A lost link is a loss of dword synchronization, with a word not decoded."""
    entry = f"{folder}/sas_phy/{folder.rpartition('/')[2]}"
    tree.files(
        entry,
        {
            "device_type": end.kind,
            "enable": 1,
            "initiator_port_protocols": "none",
            "invalid_dword_count": losses,
            "loss_of_dword_sync_count": losses,
            "maximum_linkrate": _LINK_RATE,
            "maximum_linkrate_hw": _LINK_RATE,
            "minimum_linkrate": "1.5 Gbit",
            "minimum_linkrate_hw": "1.5 Gbit",
            "negotiated_linkrate": rate,
            "phy_identifier": number,
            "phy_reset_problem_count": 0,
            "running_disparity_error_count": 0,
            "sas_address": f"0x{end.address}",
            "target_port_protocols": _TARGETS.get(end.protocol, end.protocol),
        },
    )
    for name in ("link_reset", "hard_reset", "uevent"):
        tree.entries[f"{entry}/{name}"] = ""
    tree.link(f"{entry}/device", folder)
    tree.member(entry, "class/sas_phy")
    return entry


def _let_reset(tree: Tree, phy: str, port: HbaPort) -> None:
    for name in ("link_reset", "hard_reset"):
        tree.command(f"{phy}/{name}", "link_reset", port.name)


def _add_end_device(tree: Tree, end: str, address: str, *, phy: int, protocol: str = "sas") -> None:
    name = end.rpartition("/")[2]
    device = f"{end}/sas_device/{name}"
    tree.files(
        device,
        {
            "bay_identifier": phy,
            "device_type": "end device",
            "enclosure_identifier": "0x0000000000000000",
            "initiator_port_protocols": "none",
            "phy_identifier": phy,
            "sas_address": f"0x{address}",
            "target_port_protocols": _TARGETS.get(protocol, protocol),
        },
    )
    tree.member(device, "class/sas_device")
    ports = f"{end}/sas_end_device/{name}"
    tree.files(ports, {"I_T_nexus_loss_timeout": 2000, "ready_led_meaning": 0, "tlr_enabled": 0, "tlr_supported": 0})
    tree.member(ports, "class/sas_end_device")


def _add_expander(tree: Tree, expander: AttachedExpander, drives: list[AttachedDrive], host: str) -> None:
    number = expander.port.index
    name = f"expander-{number}:0"
    folder = f"{host}/port-{number}:0/{name}"
    tree.files(
        f"{folder}/sas_device/{name}",
        {
            "device_type": "edge expander",
            "initiator_port_protocols": "smp",
            "phy_identifier": 0,
            "sas_address": f"0x{expander.sas_address}",
            "target_port_protocols": "smp",
        },
    )
    tree.member(f"{folder}/sas_device/{name}", "class/sas_device")
    tree.files(
        f"{folder}/sas_expander/{name}",
        {
            "component_id": 0,
            "component_revision_id": 0,
            "component_vendor_id": "",
            "level": 0,
            "product_id": "EXPANDER        ",
            "product_rev": "1.0 ",
            "vendor_id": "RACKLOOP",
        },
    )
    tree.member(f"{folder}/sas_expander/{name}", "class/sas_expander")
    add_bsg(tree, folder, name)
    by_slot = {drive.slot: drive for drive in drives}
    for slot in range(expander.slots):
        drive = by_slot.get(slot)
        end = AttachedDevice("none", _NO_ADDRESS, "none")
        if drive is not None:
            end = AttachedDevice("end device", drive.sas_address, drive.protocol)
        rate = "Unknown" if drive is None else _LINK_RATE
        _add_phy(tree, f"{folder}/phy-{number}:0:{slot}", slot, end, rate)
        if drive is not None:
            device = f"{folder}/port-{number}:0:{slot}/end_device-{number}:0:{slot}"
            _add_end_device(tree, device, end.address, phy=slot, protocol=drive.protocol)
            add_scsi(tree, drive, f"{device}/target{number}:0:{slot}")
    up = AttachedDevice("end device", expander.port.sas_address, "ssp")
    phy = _add_phy(tree, f"{folder}/phy-{number}:0:{expander.slots}", expander.slots, up, _LINK_RATE)
    _let_reset(tree, phy, expander.port)
    _add_enclosure(tree, expander, by_slot, f"{folder}/port-{number}:0:{expander.slots}")


def _add_enclosure(
    tree: Tree, expander: AttachedExpander, by_slot: dict[int | None, AttachedDrive], sas_port: str
) -> None:
    number, place = expander.port.index, f"{expander.port.index}:0:{expander.slots}"
    device = f"{sas_port}/end_device-{place}/target{place}/{expander.hctl}"
    _add_end_device(tree, f"{sas_port}/end_device-{place}", expander.sas_address, phy=expander.slots)
    add_scsi_device(tree, device, "RACKLOOP", "EXPANDER", "1.0", kind=13, generic=expander.generic)
    tree.link(f"{device}/driver", "bus/scsi/drivers/ses")
    tree.link(f"bus/scsi/drivers/ses/{expander.hctl}", device)
    enclosure = f"{device}/enclosure/{expander.hctl}"
    tree.files(enclosure, {"components": expander.slots, "id": f"0x{expander.sas_address}"})
    tree.link(f"{enclosure}/device", device)
    tree.member(enclosure, "class/enclosure")
    for slot in range(expander.slots):
        element = f"{enclosure}/Slot {slot:02}"
        is_off = slot in expander.off_slots
        drive = by_slot.get(slot)
        tree.files(
            element,
            {
                "active": 0,
                "fault": 0,
                "locate": 0,
                "slot": slot,
                "status": "OK" if drive is not None else "unavailable" if is_off else "not installed",
                "type": "array device",
            },
        )
        tree.command(f"{element}/power_status", "slot_power", expander.name, str(slot), text="off" if is_off else "on")
        if drive is not None:
            end = f"{sas_port.rpartition('/')[0]}/port-{number}:0:{slot}/end_device-{number}:0:{slot}"
            tree.link(f"{element}/device", f"{end}/target{number}:0:{slot}/{drive.hctl}")
