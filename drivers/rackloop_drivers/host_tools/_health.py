"""The health of a server, in one command: its drives and PHYs as in a survey, and its kernel messages."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import groupby

from rackloop.abilities import Executor
from rackloop.clock import Deadline
from rackloop.drive_identifiers import PCI_ADDRESS, nvme_drive_of
from rackloop.inspection.health import HostHealth, KernelLine, KernelPosition
from rackloop_drivers.host_tools._sections import Section
from rackloop_drivers.host_tools._survey import Answers

_LINE = re.compile(r"<(\d+)>\[ *(\d+)\.(\d{6})\] ?(.*)")
_PRIORITIES = 8
_PCI = re.compile(PCI_ADDRESS)
# A name that stands for all of a PCI function.
_WHOLE = re.compile(rf"{PCI_ADDRESS}|host\d+|nvme\d+c\d+n\d+")
_NUMBERED = re.compile(r"\d")
_SAS_PORT = re.compile(r"^/sys/class/sas_phy/([^/]+)/device/port .*?(port-[0-9:]+)$", re.MULTILINE)
# Asks where a log ends, and for none of its lines.
_END = "end"


def read_health(
    executor: Executor, since: KernelPosition | None, deadline: Deadline, besides: Sequence[str] = ()
) -> HostHealth:
    """The drives, PHYs and kernel log of the server behind ``executor``.

    Of the log come the lines after ``since``; all there are where the server restarted meanwhile, none where ``since``
    is None. That it no longer has all of them is said. The command ``besides``, if there is one, is run there as well,
    and may take as long as a tool. Raises as :func:`survey_host` does; a log that the account may not read is no error
    but said.
    """
    last = ("", _END) if since is None else (since.boot_id, f"{since.at_us / 1e6:.6f}")
    answers = Answers(executor, ("health.sh", "survey.sh"), (*last, *besides), deadline)
    log = answers.listing("kernel")
    end, _, first = answers.listing("position").stdout.strip().partition("\n")
    links = answers.listing("places").stdout + answers.listing("block").stdout
    return HostHealth(
        inventory=answers.inventory(),
        position=KernelPosition(answers.listing("boot").stdout.strip(), round(float(end) * 1e6) if end else -1),
        kernel=tuple(parse_kernel_log(log.stdout)),
        paths=paths_behind(links, answers.by_paths),
        log_unreadable=_lacks(first) if end else _complaint(log),
        besides=_said(answers.listing("besides")) if besides else "",
    )


def parse_kernel_log(raw: str) -> Iterator[KernelLine]:
    """The lines of ``dmesg -r``: ``<6>[   12.345678] text``; of what is continued the first line alone."""
    for found in map(_LINE.fullmatch, raw.splitlines()):
        if found:
            priority, seconds, micros, text = found.groups()
            yield KernelLine(int(seconds) * 1_000_000 + int(micros), int(priority) % _PRIORITIES, text)


def paths_behind(links: str, by_paths: Mapping[str, Collection[str]]) -> dict[str, tuple[str, ...]]:
    """The by-path names of the drives behind each kernel name, from lines ``NAME LINK``; ``by_paths`` has the drives'.

    A link leads to the place of NAME below /sys/devices, or from the folder of a PHY to the SAS port that it is in. All
    that a drive's link passes by has its names: of an expander, those of all drives there. A PCI function and the SCSI
    host of an adapter stand for all of it, whatever is plugged in: they have what the names there begin with. A name
    without a drive has what the nearest above it has.
    """
    sas_ports = dict(_SAS_PORT.findall(links))
    drives: defaultdict[str, set[str]] = defaultdict(set)
    adapters: defaultdict[str, set[str]] = defaultdict(set)
    ways: dict[str, list[str]] = {}
    for line in links.splitlines():
        name, _, link = line.partition(" ")
        # The folder of a class, nvme in .../nvme/nvme0, is no device.
        way = [part for part in link.split("/") if _NUMBERED.search(part)]
        for path in by_paths.get(name, ()):
            for part in way if path.startswith("pci-") else ():
                drives[part].add(path)
        if function := _function(way):
            ways[name] = [*way, sas_ports.get(name, "")]
            # Each port of an AHCI controller has a SCSI host of its own.
            for part in filter((_PCI if "/ata" in link else _WHOLE).fullmatch, way):
                # The own folder of a drive of several paths is that of its subsystem.
                adapters[nvme_drive_of(part)].add(function)
    known = drives | adapters
    nearest = {name: next(known[part] for part in reversed(way) if part in known) for name, way in ways.items()}
    return {name: tuple(sorted(paths)) for name, paths in (nearest | known).items()}


def _function(way: list[str]) -> str:
    """The beginning of the by-path names of what is behind a PCI function, which behind Intel VMD has two addresses."""
    runs = groupby(way, lambda part: _PCI.fullmatch(part) is not None)
    return "-".join(f"pci-{[*run][-1]}" for is_pci, run in runs if is_pci)


def _said(section: Section) -> str:
    return section.stdout if section.status == 0 else ""


def _lacks(first: str) -> str | None:
    """Says that what stood before the ``first`` line, by its stamp, was never read; None where that is empty."""
    if not first:
        return None
    return (
        f"what it said before {first.strip()} s was overwritten before it was read; a larger log keeps it (log_buf_len)"
    )


def _complaint(log: Section) -> str | None:
    """The reason why a log has no end: dmesg says so, or it is empty."""
    return log.stderr.strip().partition("\n")[0] or None
