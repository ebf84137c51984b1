"""The configuration of the rackd that simulates a lab."""

from __future__ import annotations

from typing import Any

from rackloop.lab import Drive, Lab

CONTROL_SOCKET = "control.sock"
NBD_SOCKET = "nbd.sock"
TRUTH_LOG = "truth.jsonl"
SAVED_MAP = "saved_map.json"


def rackd_config(lab: Lab, state_directory: str, seed: int) -> dict[str, Any]:
    """The document rackd reads (``docs/reference/rackd.md``) for a mock lab at its baseline map."""
    return {
        "schema": 1,
        "seed": seed,
        "state_dir": state_directory,
        "control": CONTROL_SOCKET,
        "nbd": NBD_SOCKET,
        "truth_log": TRUTH_LOG,
        "saved_map": SAVED_MAP,
        "ports": lab.fabric.ports,
        "servers": {name: {"stack": server.stack, "ports": dict(server.ports)} for name, server in lab.servers.items()},
        "expanders": {name: {"port": expander.port} for name, expander in lab.expanders.items()},
        "drives": [_drive(name, drive) for name, drive in lab.drives.items()],
        "map": [list(pair) for pair in lab.baseline_map()],
    }


def _drive(name: str, drive: Drive) -> dict[str, Any]:
    traits = drive.traits
    return {
        "id": name,
        "model": drive.model,
        "serial": drive.serial,
        "firmware": drive.firmware,
        "protocol": traits.protocol,
        "wwn": drive.wwn,
        "eui64": drive.eui64,
        "bytes": drive.size,
        "sector_bytes": traits.sector_bytes,
        "rotational": traits.is_rotational,
        "port": drive.port,
        "expander": drive.expander,
        "slot": drive.expander_slot,
        "backing": {"kind": "sparse"},
        "timing": dict(drive.simulated_timing),
    }
