"""The rules of health: the changes that alarm, what each means, whose fault it is, and what excuses it.

A rule excuses a change only where the test's own journalled acts reached what changed: a remap or a dropped PHY the
links of the ports it touched, a power cut what was fed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

from rackloop.measurement import Cause


class Excuse(StrEnum):
    """An act of a test that explains a change: it took away a link, or power."""

    LINK = "link"
    POWER = "power"


_LINK = frozenset({Excuse.LINK, Excuse.POWER})
_POWER = frozenset({Excuse.POWER})
# A port says as its kernel starts that it will report errors.
_PCIE_ERROR = r"\bAER: (?!enabled with IRQ)|PCIe Bus Error"
# A kernel that gave a drive up refuses what comes then; that its link was lost it has said before.
_IO_ERROR = r"\bI/O (error, dev |to offline)"


@dataclass(frozen=True)
class Rule:
    """The meaning and the cause of a change of ``name``, unless the test did one of ``excused_by``.

    ``pattern`` finds the kernel messages of the rule; None where it is about a counter or a fact. A counter that
    ``may_fall`` is a state rather than a sum: that it falls is good news.
    """

    name: str
    meaning: str
    cause: Cause
    excused_by: frozenset[Excuse] = frozenset()
    may_fall: bool = False
    pattern: str | None = None


_PRODUCT, _LAB = Cause.PRODUCT, Cause.LAB

COUNTERS: Mapping[str, Rule] = {
    rule.name: rule
    for rule in (
        # Of drives: NVMe, ATA and SCSI.
        Rule("critical_warning", "the drive itself warns", _PRODUCT, may_fall=True),
        Rule("crc_errors", "the link corrupts what it carries", _LAB, _LINK),
        Rule("grown_defects", "the medium wears out under the test", _PRODUCT),
        Rule("media_errors", "data could not be read back, or not be written", _PRODUCT),
        Rule("pending_sectors", "sectors cannot be read and wait for a rewrite", _PRODUCT, may_fall=True),
        Rule("phy_resets", "the link was lost during the test", _LAB, _LINK),
        Rule("power_cycles", "the drive lost its power, or restarted, during the test", _LAB, _POWER),
        Rule("reallocated", "the medium wears out under the test", _PRODUCT),
        Rule("reallocated_sectors", "the medium wears out under the test", _PRODUCT),
        Rule("uncorrectable_errors", "data could not be read back", _PRODUCT),
        Rule("unsafe_shutdowns", "the drive lost its power during the test", _LAB, _POWER),
        # Of SAS PHYs.
        Rule(
            "invalid_dword_count", "the link carries what is no SAS: a cable, a connector or a PHY is bad", _LAB, _LINK
        ),
        Rule("running_disparity_error_count", "bits flip on the link", _LAB, _LINK),
        Rule("loss_of_dword_sync_count", "the link was lost during the test", _LAB, _LINK),
        Rule("phy_reset_problem_count", "the link did not come up at the first try", _LAB, _LINK),
    )
}
"""Counters that work alone does not move, by name."""

KERNEL_MESSAGES: Mapping[str, Rule] = {
    rule.name: rule
    # The first that matches names the message: the graver stand first.
    for rule in (
        Rule(
            "kernel.panic_on_storage",
            "the server's kernel gave up because its storage failed",
            _PRODUCT,
            _LINK,
            pattern=r"(?<!\[ end )Kernel panic.*(EXT4-fs|XFS|[Bb][Tt][Rr][Ff][Ss]|F2FS|I/O error|nvme|scsi|\bata\d)",
        ),
        Rule("kernel.panic", "the server's kernel gave up", _LAB, pattern=r"(?<!\[ end )Kernel panic"),
        Rule(
            "kernel.mce",
            "the server's processor or memory reports an error",
            _LAB,
            pattern=r"\bmce: .*(Hardware Error|Machine [Cc]heck)|Machine check events logged|\[Hardware Error\]|"
            r"\bEDAC .*\b[CU]E\b",
        ),
        Rule(
            "kernel.oops",
            "the server's kernel broke",
            _LAB,
            pattern=r"\bOops\b|\bBUG: (?!\w+ lockup)|general protection fault(?! ip:)|unable to handle (kernel|page)|"
            r"kernel BUG at",
        ),
        Rule("kernel.oom", "the server ran out of memory", _LAB, pattern=r"Out of memory|oom-kill:|oom_reaper"),
        Rule(
            "kernel.stall",
            "something on the server waits for ever",
            _LAB,
            _LINK,
            pattern=r"blocked for more than \d+ seconds|(soft|workqueue) lockup|hard LOCKUP|rcu\w*:? .*stall",
        ),
        Rule("kernel.pcie_aer", "the PCIe link corrupts what it carries", _LAB, _LINK, pattern=_PCIE_ERROR),
        Rule(
            "kernel.medium_error",
            "a drive could not read or write a sector",
            _PRODUCT,
            pattern=r"critical medium error|Sense Key : Medium Error|Unrecovered Read Error|Write Fault \(sct",
        ),
        Rule(
            "kernel.target_error",
            "a drive refused or failed a command",
            _PRODUCT,
            _LINK,
            pattern=r"critical target error|Sense Key : (Hardware|Aborted|Illegal)",
        ),
        Rule(
            "kernel.controller_reset",
            "a controller did not answer and was reset",
            _PRODUCT,
            _LINK,
            pattern=r"nvme\d+: (controller is down|(?!Shutdown).*timeout|resetting controller|Device not ready)|"
            r"(mpt\w+|ioc\d+): .*(diag reset|fault_state|hard reset)",
        ),
        Rule(
            "kernel.command_timeout",
            "a drive did not answer a command in time",
            _PRODUCT,
            _LINK,
            pattern=r"attempting task abort|hostbyte=DID_TIME_OUT|timing out command|qc timeout|Device offlined - not|"
            r"exception Emask 0x0 .*\bSErr 0x0 .*frozen",
        ),
        Rule(
            "kernel.link_slow",
            "a link has trouble coming up",
            _LAB,
            _LINK,
            pattern=r"link is slow to respond|COMRESET failed|limiting SATA link speed",
        ),
        Rule(
            "kernel.link_lost",
            "a link was lost",
            _LAB,
            _LINK,
            # Without an error of the bus it is of a command alone: one that failed, or was not answered in time.
            pattern=r"SError: \{|exception Emask (?!0x0 .*\b(SErr|action) 0x0\b)|SATA link down|"
            r"Slot\([^)]*\): (Link Down|Card not present)|mptsas: ioc\d+: (removing|delete)|removing handle",
        ),
        Rule("kernel.io_error", "a request to a drive failed", _PRODUCT, _LINK, pattern=_IO_ERROR),
    )
}
"""A kernel's messages that something is wrong, by the rule's name; others are kept without an alarm."""

BOOT_ID = Rule("boot_id", "the server restarted during the test", _LAB, _POWER)
MISSING = Rule("missing", "it could be read before the test, and cannot be afterwards", _LAB)
UNREACHABLE = Rule("unreachable", "the server does not answer after the test", _LAB)

_MESSAGE_NAMES = tuple(KERNEL_MESSAGES)


# Drives that come and go, and a server that reboots in a circle, have a kernel say the same things again and again.
@lru_cache(maxsize=8192)
def broken_rule(message: str, names: tuple[str, ...] = _MESSAGE_NAMES) -> Rule | None:
    """The first of these rules that a kernel's message breaks, without the time that stands before it."""
    rules = (KERNEL_MESSAGES[name] for name in names)
    return next((rule for rule in rules if rule.pattern and re.search(rule.pattern, message)), None)


def rule_names() -> frozenset[str]:
    """The names of all rules: what a plan may declare as expected."""
    return frozenset({*COUNTERS, *KERNEL_MESSAGES, *(rule.name for rule in (BOOT_ID, MISSING, UNREACHABLE))})
