"""Entries of small plans. Limits never depend on speed: a busy machine must not fail a test."""

from __future__ import annotations

from typing import Any

REMAP = {
    "test": "fabric/remap_latency",
    "with": {"remaps": 12, "quick_remaps": 12},
}
IDENTITY: dict[str, Any] = {
    "test": "fabric/identity",
    "with": {"remaps": 30, "check_every": 15},
    "limits": [
        {"measure": "identity.wrong", "quantile": "max", "max": "0"},
        {"measure": "identity.map_wrong", "quantile": "max", "max": "0"},
    ],
}
THROUGHPUT = {
    "test": "fabric/switched_throughput",
    "with": {"blocks": ["4 KiB", "64 KiB"], "reads": 2},
}
UNDISTURBED: dict[str, Any] = {
    "test": "fabric/undisturbed_io",
    "with": {"remaps": 6, "size": "4 MiB"},
    "limits": [
        {"measure": "undisturbed.errors", "quantile": "max", "max": "0"},
        {"measure": "undisturbed.lost", "quantile": "max", "max": "0"},
        {"measure": "undisturbed.wrong", "quantile": "max", "max": "0"},
    ],
}
PHY: dict[str, Any] = {
    "test": "fabric/phy_drop",
    "with": {"drops": 1, "flaps": 1},
    "limits": [
        {"measure": "phy.errors", "quantile": "max", "max": "0"},
        {"measure": "phy.lost", "quantile": "max", "max": "0"},
        {"measure": "phy.wrong", "quantile": "max", "max": "0"},
        {"measure": "phy.miscounted", "quantile": "max", "max": "0"},
        {"measure": "phy.bystander_errors", "quantile": "max", "max": "0"},
    ],
}
# A count: how late the machine is has no part in it.
IMPOSSIBLE = IDENTITY | {"limits": [{"measure": "identity.remaps", "quantile": "max", "max": "0"}]}
TOO_FEW = REMAP | {"limits": [{"measure": "remap.latency", "quantile": "p99", "max": "1 h"}]}

# Long enough to be stopped in the middle, however fast the machine is.
ENDLESS = IDENTITY | {"with": {"remaps": 1_000_000, "check_every": 50}}
