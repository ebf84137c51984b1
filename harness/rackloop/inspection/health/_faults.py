"""The rules that each fault of a drive breaks by its nature."""

from __future__ import annotations

from collections.abc import Mapping

_SILENT = frozenset(
    {"kernel.stall", "kernel.command_timeout", "kernel.controller_reset", "kernel.io_error", "kernel.link_slow"}
)
_UNREADABLE = frozenset(
    {
        "critical_warning",
        "grown_defects",
        "media_errors",
        "pending_sectors",
        "reallocated",
        "reallocated_sectors",
        "uncorrectable_errors",
        "kernel.medium_error",
        "kernel.io_error",
    }
)

BROKEN_BY: Mapping[str, frozenset[str]] = {
    "media_error": _UNREADABLE,
    "dead": frozenset({"kernel.io_error", "kernel.target_error", "kernel.controller_reset"}),
    "hang": _SILENT | {"kernel.link_lost"},
    "slow": _SILENT,
    "crash_on_remap": _SILENT | {"kernel.link_lost"},
}
"""The rules that each fault of a drive breaks, by the kind its part gives it; one that is silent breaks none."""
