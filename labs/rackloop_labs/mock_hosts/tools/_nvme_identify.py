"""``nvme id-ctrl`` and ``nvme id-ns``: the Identify structures, field by field in the order nvme-cli 2.3 has them."""

from __future__ import annotations

from typing import Any

from rackloop_labs.mock_hosts._view import AttachedDrive
from rackloop_labs.mock_hosts.tools import _nvme_drive as nvme

# Of the fields that are not zero on these drives, those that are printed in hexadecimal.
_HEXADECIMAL = frozenset(
    ["vid", "ssvid", "ver", "frmw", "sqes", "cqes", "oncs", "vwc", "sanicap", "sgls", "nsze", "ncap", "nuse", "nsfeat"]
)

_NS_START = (
    "nsze", "ncap", "nuse", "nsfeat", "nlbaf", "flbas", "mc", "dpc", "dps", "nmic", "rescap", "fpi", "dlfeat", "nawun",
    "nawupf", "nacwu", "nabsn", "nabo", "nabspf", "noiob", "nvmcap",
)  # fmt: skip
_NS_LIMITS = ("npwg", "npwa", "npdg", "npda", "nows", "mssrl", "mcl", "msrc", "nulbaf", "anagrpid")
_NS_JSON_ORDER = (*_NS_START, "nsattr", "nvmsetid", *_NS_LIMITS, "endgid", "eui64", "nguid")
_NS_TEXT_ORDER = (*_NS_START, *_NS_LIMITS, "nsattr", "nvmsetid", "endgid", "nguid", "eui64")


def controller(drive: AttachedDrive) -> dict[str, Any]:
    """Identify Controller as ``nvme id-ctrl -o json`` prints it."""
    zero = dict.fromkeys
    return {
        "vid": nvme.VENDOR_ID,
        "ssvid": nvme.SUBSYSTEM_VENDOR_ID,
        "sn": f"{drive.serial:20}",
        "mn": f"{drive.model:40}",
        "fr": f"{drive.firmware:8}",
        "rab": 6,
        "ieee": nvme.ieee_oui(drive),
        "cmic": 0,
        "mdts": nvme.MAX_TRANSFER_EXPONENT,
        "cntlid": 0,
        "ver": nvme.VERSION,
        **zero(("rtd3r", "rtd3e", "oaes", "ctratt", "rrls"), 0),
        "cntrltype": 1,
        "fguid": "00000000-0000-0000-0000-000000000000",
        **zero(("crdt1", "crdt2", "crdt3", "nvmsr", "vwci", "mec"), 0),
        "oacs": nvme.ADMIN_COMMANDS,
        "acl": 3,
        "aerl": 3,
        "frmw": nvme.FIRMWARE_UPDATES,
        "lpa": nvme.LOG_PAGES,
        "elpe": nvme.ERROR_LOG_ENTRIES - 1,
        **zero(("npss", "avscc", "apsta"), 0),
        "wctemp": nvme.WARNING_TEMPERATURE_K,
        "cctemp": nvme.CRITICAL_TEMPERATURE_K,
        **zero(("mtfa", "hmpre", "hmmin"), 0),
        "tnvmcap": str(drive.size_bytes),
        "unvmcap": "0",
        **zero(("rpmbs", "edstt", "dsto", "fwug", "kas", "hctma", "mntmt", "mxtmt"), 0),
        "sanicap": nvme.SANITIZE_CAPABILITIES if drive.firmware_state.sanitizes else 0,
        **zero(("hmminds", "hmmaxd"), 0),
        **zero(("nsetidmax", "endgidmax", "anatt", "anacap", "anagrpmax", "nanagrpid", "pels", "domainid"), 0),
        "megcap": "0",
        "sqes": 0x66,
        "cqes": 0x44,
        "maxcmd": 0,
        "nn": 1,
        "oncs": nvme.nvm_commands(drive),
        **zero(("fuses", "fna"), 0),
        "vwc": 7,
        **zero(("awun", "awupf", "icsvscc", "nwpc", "acwu", "ocfs"), 0),
        "sgls": 1,
        "mnan": 0,
        "maxdna": "0",
        "maxcna": 0,
        "subnqn": nvme.subsystem_nqn(drive),
        **zero(("ioccsz", "iorcsz", "icdoff", "fcatt", "msdbd", "ofcs"), 0),
        "psds": [
            {
                "max_power": nvme.MAX_POWER_CW,
                "flags": 0,
                "entry_lat": nvme.ENTRY_LATENCY_US,
                "exit_lat": nvme.EXIT_LATENCY_US,
                **zero(("read_tput", "read_lat", "write_tput", "write_lat", "idle_power", "idle_scale"), 0),
                **zero(("active_power", "active_power_work", "active_scale"), 0),
            }
        ],
    }


def controller_text(drive: AttachedDrive) -> str:
    """Identify Controller as ``nvme id-ctrl`` prints it."""
    fields = controller(drive)
    (state,) = fields.pop("psds")
    watts = state["max_power"] / 100
    fields["ieee"] = f"{fields['ieee']:06x}"
    return "\n".join(
        [
            "NVME Identify Controller:",
            *(f"{name:<10}: {_shown(name, value)}" for name, value in fields.items()),
            f"ps      0 : mp:{watts:.2f}W operational enlat:{state['entry_lat']} exlat:{state['exit_lat']} rrt:0 rrl:0",
            "            rwt:0 rwl:0 idle_power:- active_power:-",
            "            active_power_workload:-",
            "",
        ]
    )


def namespace(drive: AttachedDrive) -> dict[str, Any]:
    """Identify Namespace as ``nvme id-ns -o json`` prints it; the drive has one LBA format, the one in use."""
    fields: dict[str, Any] = dict.fromkeys(_NS_JSON_ORDER, 0)
    granularity = nvme.preferred_granularity(drive)
    fields |= dict.fromkeys(("nsze", "ncap", "nuse"), nvme.blocks(drive))
    fields |= {"nsfeat": nvme.NAMESPACE_FEATURES, "dlfeat": 1, "nvmcap": str(drive.size_bytes)}
    fields |= {"npdg": granularity, "npda": granularity}
    fields |= {"eui64": drive.eui64 or "0" * 16, "nguid": drive.nguid or "0" * 32}
    return fields | {"lbafs": [{"ms": 0, "ds": drive.sector_bytes.bit_length() - 1, "rp": 0}]}


def namespace_text(drive: AttachedDrive) -> str:
    """Identify Namespace as ``nvme id-ns`` prints it."""
    fields = namespace(drive)
    (lba_format,) = fields["lbafs"]
    labels = {name: f"{name:<8}" for name in _NS_TEXT_ORDER} | {"nsattr": "nsattr\t"}  # a tab, in this line alone
    lines = [f"{labels[name]}: {_shown(name, fields[name])}" for name in _NS_TEXT_ORDER]
    return "\n".join(
        [
            "NVME Identify Namespace 1:",
            *lines,
            f"lbaf  0 : ms:{lba_format['ms']:<3} lbads:{lba_format['ds']:<2} rp:{lba_format['rp']} (in use)",
            "",
        ]
    )


def namespaces(first: int) -> dict[str, Any]:
    """The namespaces of a drive, which has one, from ``first`` on as ``nvme list-ns -o json`` prints them."""
    return {"nsid_list": [{"nsid": nsid} for nsid in (1,) if nsid >= first]}


def namespaces_text(listed: dict[str, Any]) -> str:
    """The same as ``nvme list-ns`` prints them."""
    return "".join(f"[{place:4}]:{one['nsid']:#x}\n" for place, one in enumerate(listed["nsid_list"]))


def _shown(name: str, value: int | str) -> str:
    return f"{value:#x}" if name in _HEXADECIMAL and value and isinstance(value, int) else str(value)
