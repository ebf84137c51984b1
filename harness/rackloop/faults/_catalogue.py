"""Every kind of fault, by its name."""

from __future__ import annotations

from collections.abc import Mapping

from rackloop.faults import _mechanisms as mechanisms
from rackloop.faults._kind import FaultKind, FaultSpec
from rackloop.lab import PartKind
from rackloop.parameters import Parameter

_DRIVE = frozenset({PartKind.DRIVE})
_SERVER = frozenset({PartKind.SERVER})
_SWITCH = frozenset({PartKind.SWITCH})
_PORT = frozenset({PartKind.PORT, PartKind.SWITCH_PORT, PartKind.DRIVE})
_SLOT = frozenset({PartKind.PORT, PartKind.DRIVE})
_FED = frozenset({PartKind.SERVER, PartKind.DRIVE, PartKind.OUTLET})

_SECTORS = {
    "lba": Parameter(0, "the first sector, in sectors of the drive", type=int),
    "sectors": Parameter(8, "how many sectors", least=1, type=int),
}
_LINES = {
    "match": Parameter("", "only lines that contain this text", type=str),
    "probability": Parameter(1.0, "the share of them", least=0.001, most=1),
}
_OF_SLOTS = (
    ("hot_unplug", "the kernel of a server loses a drive, as if it were pulled out", "removed"),
    ("slot_power_loss", "the slot of a drive loses its power", "slot_power_off"),
    ("device_off", "an enclosure switches a drive off", "device_off"),
    ("link_disable", "the link of a PCIe port is switched off", "link_disabled"),
)
_OF_SERVERS = (
    ("server_crash", "a server's kernel panics; it keeps its power and its drives' links", "crash"),
    ("server_nmi", "a server's controller pulses an NMI, at which its kernel panics", "nmi"),
    ("server_hang", "a server stops all it does, and goes on where it was when the fault ends", "hang"),
)
_OF_CONTROL = (
    ("control_lost", "the switch does not hear lines of its control link", "lost"),
    ("control_garbled", "the switch answers lines of its control link with noise", "garbled"),
)
_LONGEST_DROP_S = 3600
_SLOWER = "how much longer, in microseconds; 5000 without factor"
_UNTIL_IT_ENDS = "how long, in seconds; until the fault ends where left out"

_ALL = (
    FaultKind(
        "phy_drop",
        "a port has no signal, for a time or until the fault ends",
        _PORT,
        mechanisms.DropSignal(),
        {"down_s": Parameter(None, _UNTIL_IT_ENDS, most=_LONGEST_DROP_S, unit="s")},
        ends_after_s=lambda given: given.get("down_s"),
    ),
    FaultKind(
        "phy_flap",
        "a port loses its signal again and again",
        _PORT,
        mechanisms.DropSignal(),
        {
            "down_s": Parameter(0.05, "how long it is away each time, in seconds", most=_LONGEST_DROP_S, unit="s"),
            "up_s": Parameter(0.2, "how long it is there in between, in seconds", most=_LONGEST_DROP_S, unit="s"),
            "count": Parameter(5, "how many times", least=1, most=10_000, type=int),
        },
        # After the last the signal is back at once.
        ends_after_s=lambda given: given["count"] * given["down_s"] + (given["count"] - 1) * given["up_s"],
    ),
    FaultKind(
        "slow_training",
        "a port's link takes longer to come up, from its next training on",
        _PORT,
        mechanisms.BreakPart(PartKind.SWITCH_PORT, "slow_training"),
        {"factor": Parameter(4.0, "how many times longer", least=1, most=1000)},
    ),
    FaultKind(
        "stuck_port",
        "a port of the switch keeps its circuit, whatever map is executed",
        _PORT,
        mechanisms.BreakPart(PartKind.SWITCH_PORT, "stuck"),
    ),
    FaultKind(
        "miswire",
        "two cables are swapped at the switch",
        _PORT,
        mechanisms.SwapCables(),
        {"with": Parameter(None, "the other port or drive, named as targets are", type=str, is_required=True)},
        endangers_data=True,
    ),
    FaultKind(
        "fail_stop",
        "a drive fails every request at once; its link stays up",
        _DRIVE,
        mechanisms.BreakPart(PartKind.DRIVE, "dead"),
        endangers_data=True,
    ),
    FaultKind(
        "fail_slow",
        "a drive takes longer for each request",
        _DRIVE,
        mechanisms.SlowDown(),
        {
            "extra_us": Parameter(None, _SLOWER, least=1, most=60e6, unit="us"),
            "factor": Parameter(None, "how many times as long it is at work, queueing included", least=1, most=1e6),
        },
    ),
    FaultKind(
        "hang",
        "a drive answers nothing; its link stays up",
        _DRIVE,
        mechanisms.BreakPart(PartKind.DRIVE, "hang"),
        endangers_data=True,
    ),
    FaultKind(
        "media_error",
        "sectors cannot be read until they are rewritten",
        _DRIVE,
        mechanisms.BreakSectors("media_error"),
        {
            **_SECTORS,
            "mode": Parameter(
                "until_rewritten",
                "when it ends by itself: after one failed request, so many times, or sector by sector when rewritten",
                type=str,
                choices=("once", "times", "until_rewritten"),
            ),
            "times": Parameter(None, "how many requests fail, with mode times", least=1, most=1e6, type=int),
            "on": Parameter("read", "which requests fail", type=str, choices=("read", "write", "both")),
        },
        endangers_data=True,
    ),
    FaultKind(
        "corrupt",
        "reads of sectors bring wrong bytes and no error",
        _DRIVE,
        mechanisms.BreakSectors("corrupt"),
        _SECTORS,
        endangers_data=True,
    ),
    FaultKind(
        "crash_on_remap",
        "a drive's firmware crashes when its link is lost; it answers again after a power cycle",
        _DRIVE,
        mechanisms.BreakPart(PartKind.DRIVE, "crash_on_remap"),
        endangers_data=True,
    ),
    *(
        FaultKind(name, does, _SERVER, mechanisms.BreakPart(PartKind.SERVER, how, mended_by_power=how != "hang"))
        for name, does, how in _OF_SERVERS
    ),
    FaultKind("power_loss", "a server, a drive or what an outlet feeds loses its power", _FED, mechanisms.CutPower()),
    FaultKind(
        "partition",
        "nothing on the network reaches a server, and it reaches nothing",
        _SERVER,
        mechanisms.BreakPart(PartKind.NETWORK, "partition"),
    ),
    FaultKind(
        "switch_power_loss", "the switch loses its power, and with it its live map", _SWITCH, mechanisms.CutPower()
    ),
    *(
        FaultKind(name, does, _SWITCH, mechanisms.BreakPart(PartKind.CONTROL, how, adds_up=True), _LINES)
        for name, does, how in _OF_CONTROL
    ),
    FaultKind(
        "bmc_unreachable",
        "a server's management controller answers no request",
        _SERVER,
        mechanisms.BreakPart(PartKind.BMC, "unreachable"),
    ),
    *(
        FaultKind(name, about, _SLOT, mechanisms.BreakPart(PartKind.SLOT, how, takes_links=True), endangers_data=True)
        for name, about, how in _OF_SLOTS
    ),
    FaultKind(
        "phy_disable", "a PHY of a server's HBA is switched off", _SLOT, mechanisms.SwitchOffPhy(), endangers_data=True
    ),
)

KINDS: Mapping[str, FaultKind] = {kind.name: kind for kind in _ALL}
"""Every kind of fault by its name."""


def commanded_s(spec: FaultSpec) -> float | None:
    """For how long a fault is told to stand by its own parameters, such as ``down_s``; None where until it is ended."""
    kind = KINDS.get(spec.kind)
    return None if kind is None else kind.ends_after_s(kind.completed(spec))
