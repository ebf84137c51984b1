"""``setpci`` of pciutils 3.9 on the root ports of a mock server: the bit that disables a link, and the slots."""

from __future__ import annotations

import re
from collections.abc import Sequence

from rackloop_labs.mock_hosts._view import Answer, HbaPort, HostActs, HostView
from rackloop_labs.mock_hosts.tools._options import OptionError, Options

_USAGE = """Usage: setpci [<options>] (<device>+ <reg>[=<values>]*)*
Read or disable the link of a root port of a mock server: setpci -s 0000:00:10.0 CAP_EXP+10.w[=10:10]
Read what its slot can do: setpci -s 0000:00:10.0 CAP_EXP+14.l
"""
_HINT = "Try `setpci --help' for more information.\n"
# Link Control of a PCIe root port with a clock common to both ends (bit 6) and its link disabled (bit 4).
_ENABLED = 0x0040
_DISABLE = 0x0010
# Slot Capabilities: hot-plug (bits 5 and 6), and by no power controller, which would bring the link back.
_HOT_PLUG = 0x60
_SLOT = re.compile(r"CAP_EXP\+(?:0x)?14\.l", re.IGNORECASE)
_REGISTER = re.compile(r"CAP_EXP\+(?:0x)?10\.w(?:=([0-9a-f]+)(?::([0-9a-f]+))?)?", re.IGNORECASE)


def setpci(argv: Sequence[str], view: HostView, acts: HostActs) -> Answer:
    """The Link Control register of a root port, read, or its bit Link Disable written; its Slot Capabilities, read."""
    try:
        options = Options.of(argv, flags={"--help": "help"}, valued={"-s": "slot"})
    except OptionError as error:
        return Answer(stderr=f"setpci: {error}\n{_USAGE}", status=1)
    if "help" in options.flags:
        return Answer(_USAGE)
    slot = options.value("slot")
    if slot is None or len(options.operands) != 1:
        return Answer(stderr=_USAGE, status=1)
    (operand,) = options.operands
    register = _REGISTER.fullmatch(operand)
    if register is None and not _SLOT.fullmatch(operand):
        name = operand.partition("=")[0].rpartition(".")[0] or operand
        return Answer(stderr=f'setpci: Unknown register "{name}".\n{_HINT}', status=1)
    port = _port(view, slot)
    if port is None:
        return Answer(stderr=f'setpci: No devices selected for "{operand}".\n', status=1)
    if register is None:
        return Answer(f"{port.index << 19 | _HOT_PLUG:08x}\n")
    held = _ENABLED if port.is_enabled else _ENABLED | _DISABLE
    value, mask = register.groups()
    if value is None:
        return Answer(f"{held:04x}\n")
    if int(mask or "ffff", 16) & _DISABLE:
        (acts.disable_link if int(value, 16) & _DISABLE else acts.enable_link)(port)
    return Answer()


def _port(view: HostView, slot: str) -> HbaPort | None:
    """The port behind the root port of an address, which may lack its domain."""
    wanted = slot if slot.count(":") == 2 else f"0000:{slot}"
    return next((port for port in view.ports if port.bridge_address == wanted), None)
