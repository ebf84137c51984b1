"""The emulated tools of a mock server, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TypeAlias

from rackloop_labs.mock_hosts._view import Answer, HostActs, HostView
from rackloop_labs.mock_hosts.tools.dmesg import dmesg
from rackloop_labs.mock_hosts.tools.hdparm import hdparm
from rackloop_labs.mock_hosts.tools.lsblk import lsblk
from rackloop_labs.mock_hosts.tools.lsscsi import lsscsi
from rackloop_labs.mock_hosts.tools.nvme import nvme
from rackloop_labs.mock_hosts.tools.setpci import setpci
from rackloop_labs.mock_hosts.tools.sg_sanitize import sg_opcodes, sg_requests, sg_sanitize, sg_turs
from rackloop_labs.mock_hosts.tools.sg_ses import sg_ses
from rackloop_labs.mock_hosts.tools.sg_wr_mode import sg_wr_mode
from rackloop_labs.mock_hosts.tools.sg_write_long import sg_write_long
from rackloop_labs.mock_hosts.tools.smartctl import smartctl
from rackloop_labs.mock_hosts.tools.smp import smp_discover, smp_phy_control

Tool: TypeAlias = Callable[[Sequence[str], HostView, HostActs], Answer]
"""A command without its name (``argv[1:]``), the server it runs on and what it may do there, to what it prints."""

TOOLS: Mapping[str, Tool] = MappingProxyType(
    {
        "dmesg": dmesg,
        "hdparm": hdparm,
        "lsblk": lsblk,
        "lsscsi": lsscsi,
        "nvme": nvme,
        "setpci": setpci,
        "sg_opcodes": sg_opcodes,
        "sg_requests": sg_requests,
        "sg_sanitize": sg_sanitize,
        "sg_ses": sg_ses,
        "sg_turs": sg_turs,
        "sg_wr_mode": sg_wr_mode,
        "sg_write_long": sg_write_long,
        "smartctl": smartctl,
        "smp_discover": smp_discover,
        "smp_phy_control": smp_phy_control,
    }
)
"""Every emulated tool by the name it is called by."""
