"""``nvme list`` and ``nvme list-subsys``: what NVMe there is on a server, as nvme-cli 2.3 prints it."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any

from rackloop_labs.mock_hosts._view import AttachedDrive, HostView
from rackloop_labs.mock_hosts.tools._nvme_drive import blocks, subsystem_nqn
from rackloop_labs.mock_hosts.tools._sizes import binary_size, si_size

_COLUMNS = {
    "Node": 21,
    "Generic": 21,
    "SN": 20,
    "Model": 40,
    "Namespace": 9,
    "Usage": 26,
    "Format": 16,
    "FW Rev": 8,
}
_SUBSYSTEM_COLUMNS = {"Subsystem": 16, "Subsystem-NQN": 96, "Controllers": 16}
_CONTROLLER_COLUMNS = {
    "Device": 8,
    "SN": 20,
    "MN": 40,
    "FR": 8,
    "TxPort": 6,
    "Address": 14,
    "Subsystem": 12,
    "Namespaces": 16,
}
_NAMESPACE_COLUMNS = {"Device": 12, "Generic": 12, "NSID": 8, "Usage": 26, "Format": 16, "Controllers": 16}


def nvme_drives(view: HostView) -> list[AttachedDrive]:
    """The NVMe drives of a server, by their number."""
    return sorted((drive for drive in view.drives if drive.protocol == "nvme"), key=lambda drive: drive.number)


def listed(view: HostView) -> dict[str, Any]:
    """``nvme list -o json``."""
    return {
        "Devices": [
            {
                "NameSpace": 1,
                "DevicePath": f"/dev/{drive.block_name}",
                "Firmware": drive.firmware,
                "ModelNumber": drive.model,
                "SerialNumber": drive.serial,
                **_sizes(drive),
            }
            for drive in nvme_drives(view)
        ]
    }


def listed_text(view: HostView) -> str:
    """``nvme list``."""
    rows = [
        [
            f"/dev/{drive.block_name}",
            f"/dev/{_generic(drive)}",
            drive.serial,
            drive.model,
            "1",
            _usage(drive),
            _format(drive),
            drive.firmware,
        ]
        for drive in nvme_drives(view)
    ]
    return _table(_COLUMNS, rows, pads_last=True)


def verbose(view: HostView) -> dict[str, Any]:
    """``nvme list -v -o json``."""
    drives = nvme_drives(view)
    subsystems = [
        {
            "Subsystem": f"nvme-subsys{drive.number}",
            "SubsystemNQN": subsystem_nqn(drive),
            "Controllers": [
                {
                    "Controller": drive.kernel_name,
                    "SerialNumber": drive.serial,
                    "ModelNumber": drive.model,
                    "Firmware": drive.firmware,
                    "Transport": "pcie",
                    "Address": drive.port.pci_address,
                    "Namespaces": [{"NameSpace": drive.block_name, "NSID": 1, **_sizes(drive)}],
                    "Paths": [],
                }
            ],
            "Namespaces": [],
        }
        for drive in drives
    ]
    return {"Devices": [{**_host(view), "Subsystems": subsystems}] if drives else []}


def verbose_text(view: HostView) -> str:
    """``nvme list -v``: a table each of subsystems, controllers and namespaces."""
    drives = nvme_drives(view)
    tables = [
        _table(
            _SUBSYSTEM_COLUMNS,
            [[f"nvme-subsys{drive.number}", subsystem_nqn(drive), drive.kernel_name] for drive in drives],
        ),
        _table(
            _CONTROLLER_COLUMNS,
            [
                [
                    drive.kernel_name,
                    drive.serial,
                    drive.model,
                    drive.firmware,
                    "pcie",
                    drive.port.pci_address,
                    f"nvme-subsys{drive.number}",
                    drive.block_name,
                ]
                for drive in drives
            ],
            pads_title=True,
        ),
        _table(
            _NAMESPACE_COLUMNS,
            [
                [
                    f"/dev/{drive.block_name}",
                    f"/dev/{_generic(drive)}",
                    "1",
                    _usage(drive),
                    _format(drive),
                    drive.kernel_name,
                ]
                for drive in drives
            ],
            pads_title=True,
        ),
    ]
    return "\n".join(tables)


def subsystems(view: HostView, drives: Sequence[AttachedDrive]) -> list[dict[str, Any]]:
    """``nvme list-subsys -o json`` of some of a server's drives."""
    listed = [
        {
            "Name": f"nvme-subsys{drive.number}",
            "NQN": subsystem_nqn(drive),
            "Paths": [
                {
                    "Name": drive.kernel_name,
                    "Transport": "pcie",
                    "Address": drive.port.pci_address,
                    "State": "live",
                }
            ],
        }
        for drive in drives
    ]
    return [{**_host(view), "Subsystems": listed}] if nvme_drives(view) else []


def subsystems_text(drives: Sequence[AttachedDrive]) -> str:
    """``nvme list-subsys`` of some of a server's drives."""
    return "".join(
        f"nvme-subsys{drive.number} - NQN={subsystem_nqn(drive)}\n\\\n"
        f" +- {drive.kernel_name} pcie {drive.port.pci_address} live\n"
        for drive in drives
    )


def _host(view: HostView) -> dict[str, str]:
    """The identifiers by which a server names itself to NVMe over Fabrics, the same for each of its boots."""
    nqn, host_id = (uuid.uuid5(uuid.NAMESPACE_DNS, f"{kind}.{view.server}") for kind in ("hostnqn", "hostid"))
    return {"HostNQN": f"nqn.2014-08.org.nvmexpress:uuid:{nqn}", "HostID": str(host_id)}


def _sizes(drive: AttachedDrive) -> dict[str, int]:
    return {
        "UsedBytes": drive.size_bytes,
        "MaximumLBA": blocks(drive),
        "PhysicalSize": drive.size_bytes,
        "SectorSize": drive.sector_bytes,
    }


def _generic(drive: AttachedDrive) -> str:
    return f"ng{drive.number}n1"


def _usage(drive: AttachedDrive) -> str:
    value, suffix = si_size(drive.size_bytes)
    return f"{value:6.2f} {suffix:>2}B / {value:6.2f} {suffix:>2}B"


def _format(drive: AttachedDrive) -> str:
    value, suffix = binary_size(drive.sector_bytes)
    return f"{value:3} {suffix:>2}B +  0 B"


def _table(
    columns: dict[str, int], rows: Sequence[Sequence[str]], *, pads_last: bool = False, pads_title: bool = False
) -> str:
    """Columns side by side; the last is padded throughout, in the title alone, or not at all."""
    widths = [*columns.values()]
    lines = [[*columns], ["-" * width for width in widths], *rows]
    padded = [" ".join(f"{cell:<{width}}" for cell, width in zip(line, widths, strict=True)) for line in lines]
    unpadded = [" ".join([*(f"{c:<{w}}" for c, w in zip(line[:-1], widths, strict=False)), line[-1]]) for line in lines]
    shown = padded if pads_last else [padded[0] if pads_title else unpadded[0], *unpadded[1:]]
    return "".join(f"{line}\n" for line in shown)
