"""The health of a server, in one command: its drives and PHYs as in a survey, and its kernel messages."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator

from rackloop.abilities import Executor
from rackloop.clock import Deadline
from rackloop.inspection.health import HostHealth, KernelLine, KernelPosition
from rackloop_drivers.host_tools._sections import Section
from rackloop_drivers.host_tools._survey import Answers

_LINE = re.compile(r"<(\d+)>\[ *(\d+)\.(\d{6})\] ?(.*)")
_PRIORITIES = 8
_FUNCTION = re.compile(r"[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
# Asks where a log ends, and for none of its lines.
_END = "end"


def read_health(executor: Executor, since: KernelPosition | None, deadline: Deadline) -> HostHealth:
    """The drives, PHYs and kernel log of the server behind ``executor``.

    Of the log come the lines after ``since``; all there are where the server restarted meanwhile, none where ``since``
    is None. Raises as :func:`survey_host` does; a log that the account may not read is no error but said.
    """
    last = ("", _END) if since is None else (since.boot_id, f"{since.at_us / 1e6:.6f}")
    answers = Answers(executor, ("health.sh", "survey.sh"), last, deadline)
    log, end = answers.listing("kernel"), answers.listing("position").stdout.strip()
    links = answers.listing("places").stdout + answers.listing("block").stdout
    return HostHealth(
        inventory=answers.inventory(),
        position=KernelPosition(answers.listing("boot").stdout.strip(), round(float(end) * 1e6) if end else -1),
        kernel=tuple(parse_kernel_log(log.stdout)),
        pci_functions=parse_pci_functions(links),
        log_unreadable=_complaint(log) if not end else None,
    )


def parse_kernel_log(raw: str) -> Iterator[KernelLine]:
    """The lines of ``dmesg -r``: ``<6>[   12.345678] text``; of what is continued the first line alone."""
    for found in map(_LINE.fullmatch, raw.splitlines()):
        if found:
            priority, seconds, micros, text = found.groups()
            yield KernelLine(int(seconds) * 1_000_000 + int(micros), int(priority) % _PRIORITIES, text)


def parse_pci_functions(links: str) -> dict[str, str]:
    """The PCI function of each device, from lines ``NAME LINK`` whose link leads to its place below /sys/devices.

    A bridge with one function behind it, a slot's root port, is known as that function too.
    """
    functions: dict[str, str] = {}
    behind: defaultdict[str, set[str]] = defaultdict(set)
    for line in links.splitlines():
        name, _, link = line.partition(" ")
        if path := _FUNCTION.findall(link):
            functions[name] = path[-1]
            for address in path:
                behind[address].add(path[-1])
    return functions | {address: found.pop() for address, found in behind.items() if len(found) == 1}


def _complaint(log: Section) -> str | None:
    """The reason why a log has no end: dmesg says so, or it is empty."""
    return log.stderr.strip().partition("\n")[0] or None
