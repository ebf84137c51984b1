"""The changes of a rack between two readings, judged by rules and by what the test disturbed."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from rackloop.drive_identifiers import PCI_ADDRESS
from rackloop.inspection.health._disturbance import Disturbed
from rackloop.inspection.health._rules import (
    BOOT_ID,
    COUNTERS,
    KERNEL_MESSAGES,
    MISSING,
    UNREACHABLE,
    Excuse,
    Rule,
    broken_rule,
)
from rackloop.inspection.health._snapshot import HealthSnapshot, KernelLine, ServerHealth
from rackloop.lab import Part, PartKind
from rackloop.record import HealthChange, Judgement

_HCTL = re.compile(r"\b(?:sd|scsi|ses) (\d+:\d+:\d+:\d+)")
_LETTER = re.compile(r"\bsd (\d+:\d+:\d+:\d+): \[(sd[a-z]+)\]")
_CONTROLLER = re.compile(rf"\bnvme (nvme\d+): pci function ({PCI_ADDRESS})")
_NAMESPACE = re.compile(r"(?<=\d)n\d+$")
_DEVICE = re.compile(rf"\b(?:ata\d+|nvme\d+(?:n\d+)?|sd[a-z]+|host\d+|phy-[0-9:]+|{PCI_ADDRESS})\b")
_BY_TEST = {Excuse.LINK: "the test took its link away", Excuse.POWER: "the test took its power away"}
_BY_FAULT = "the test broke it"
_BY_PLAN = "the plan expects it"


@dataclass(frozen=True)
class CounterChange:
    """One counter before and after; None where the drive did not report it."""

    counter: str
    before: int | None
    after: int | None

    @property
    def difference(self) -> int | None:
        """The distance it moved, from 0 where it was not reported before; None where it no longer is."""
        return None if self.after is None else self.after - (self.before or 0)

    @property
    def broken_rule(self) -> Rule | None:
        """The rule that says it must not have moved this way; None where none does."""
        rule, moved = COUNTERS.get(self.counter), self.difference
        return None if rule is None or not moved or (rule.may_fall and moved < 0) else rule

    @property
    def alarm(self) -> str | None:
        """The problem in words; None where there is none: a counter must not vanish, and some must not move."""
        if self.before is not None and self.after is None:
            return f"{self.counter} is no longer reported: it was {self.before}"
        rule, was = self.broken_rule, "not reported" if self.before is None else self.before
        return None if rule is None else f"{self.counter} went from {was} to {self.after}: {rule.meaning}"


def health_changes(before: Mapping[str, int], after: Mapping[str, int]) -> list[CounterChange]:
    """Every counter of either side, by name."""
    return [CounterChange(name, before.get(name), after.get(name)) for name in sorted({*before, *after})]


def compare(
    before: HealthSnapshot, after: HealthSnapshot, did: Disturbed, expected: Collection[str] = ()
) -> list[HealthChange]:
    """Every change between two snapshots, drives first; ``expected`` are rules that the plan lets be broken.

    Only what both snapshots could read is compared: a drive or server that ``after`` lacks is missing, one that
    ``before`` lacks says nothing.
    """
    judge = _Judge(did, frozenset(expected))
    return [
        *_drives(before, after, judge),
        *(change for server in before.servers for change in _server(server, before, after, judge)),
    ]


class _Judge:
    def __init__(self, did: Disturbed, expected: frozenset[str]) -> None:
        self.did = did
        self._expected = expected

    def __call__(
        self,
        rule: Rule | None,
        excuses: Collection[str],
        subject: str,
        what: str,
        before: int | str | None,
        after: int | str | None,
        sample: str = "",
    ) -> HealthChange:
        """The change, judged by its rule and by what the test did to its subject: excuses, and rules it broke there."""
        if rule is None:
            return HealthChange(subject, what, before, after, Judgement.NOTED, sample=sample)
        if (act := max(rule.excused_by.intersection(excuses), default=None)) is not None:
            return HealthChange(subject, what, before, after, Judgement.EXPECTED, None, _BY_TEST[act], sample)
        if rule.name in excuses:
            return HealthChange(subject, what, before, after, Judgement.EXPECTED, None, _BY_FAULT, sample)
        if rule.name in self._expected:
            return HealthChange(subject, what, before, after, Judgement.EXPECTED, None, _BY_PLAN, sample)
        return HealthChange(subject, what, before, after, Judgement.UNEXPECTED, rule.cause, rule.meaning, sample)

    def of_drive(self, drive: str) -> set[str]:
        """The test's acts on a drive."""
        return self._of({Part.drive(drive)}, Part.drive(drive))

    def of_ports(self, server: str, ports: Collection[str] | None) -> set[str]:
        """The test's acts on any of these ports of a server; None is every port of it."""
        own = [part for part in (*self.did.linked, *self.did.broken) if part.kind is PartKind.PORT]
        touched = {part for part in own if part.server_name == server and (ports is None or part.names[1] in ports)}
        return self._of(touched, Part.server(server))

    def _of(self, parts: Collection[Part], fed: Part) -> set[str]:
        holds = {Excuse.LINK: not self.did.linked.isdisjoint(parts), Excuse.POWER: fed in self.did.powered}
        return {name for name in holds if holds[name]}.union(*(self.did.broken.get(part, ()) for part in parts))


def _drives(before: HealthSnapshot, after: HealthSnapshot, judge: _Judge) -> Iterator[HealthChange]:
    for drive, counters in before.drives.items():
        if drive not in after.drives:
            # Where a server fell silent, that is what is wrong, not each of its drives.
            if any(drive in seen.drives and server in after.servers for server, seen in before.servers.items()):
                yield judge(MISSING, (), drive, MISSING.name, None, None, "; ".join(_newly_unreadable(before, after)))
            continue
        yield from _moved(health_changes(counters, after.drives[drive]), judge, judge.of_drive(drive), drive)


def _moved(changes: list[CounterChange], judge: _Judge, excuses: set[str], subject: str) -> Iterator[HealthChange]:
    for change in changes:
        if change.difference != 0:
            rule = MISSING if change.after is None else change.broken_rule
            yield judge(rule, excuses, subject, change.counter, change.before, change.after)


def _newly_unreadable(before: HealthSnapshot, after: HealthSnapshot) -> Iterator[str]:
    for server, seen in after.servers.items():
        known = before.servers[server].unreadable if server in before.servers else {}
        yield from (reason for node, reason in seen.unreadable.items() if "/" in node and node not in known)


def _server(name: str, before: HealthSnapshot, after: HealthSnapshot, judge: _Judge) -> Iterator[HealthChange]:
    was, now = before.servers[name], after.servers.get(name)
    if now is None:
        yield judge(UNREACHABLE, (), name, UNREACHABLE.name, None, None, after.unreachable.get(name, ""))
        return
    restarted = was.position.boot_id != now.position.boot_id
    if restarted:
        yield judge(BOOT_ID, judge.of_ports(name, None), name, BOOT_ID.name, was.position.boot_id, now.position.boot_id)
    for phy, counters in now.phys.items():
        ports = _ports_of(phy, was, now)
        # A kernel that starts anew counts from 0. What it could not read of a PHY before may be as old as its expander.
        known = {**counters, **was.phys.get(phy, {})} if not restarted else dict.fromkeys(counters, 0)
        subject = " ".join((name, *sorted(ports or ()), phy))
        yield from _moved(health_changes(known, counters), judge, judge.of_ports(name, ports), subject)
    yield from _kernel(name, was, now, judge)


def _kernel(server: str, was: ServerHealth, now: ServerHealth, judge: _Judge) -> Iterator[HealthChange]:
    """The alarming messages, one change for each rule and port."""
    found: dict[tuple[str, frozenset[str] | None], list[KernelLine]] = {}
    addresses: dict[str, str] = {}
    for line in now.kernel:
        addresses |= {name: address for address, name in _LETTER.findall(line.text)}
        addresses |= _CONTROLLER.findall(line.text)
        if (rule := broken_rule(line.text)) is not None:
            found.setdefault((rule.name, _about(line.text, addresses, was, now)), []).append(line)
    for (name, ports), lines in found.items():
        rule, subject = KERNEL_MESSAGES[name], " ".join((server, *sorted(ports or ())))
        yield judge(rule, judge.of_ports(server, ports), subject, name, None, len(lines), lines[0].text.strip())


def _about(text: str, addresses: Mapping[str, str], was: ServerHealth, now: ServerHealth) -> frozenset[str] | None:
    """The ports that a message is about; None where it names no device that is known.

    The SCSI address stays the same while a disk's letter may pass to another, so it goes first. ``addresses`` has those
    of letters and NVMe controllers that were named with one before, in which case only that is meant.
    """
    names = _HCTL.findall(text) or [addresses.get(_NAMESPACE.sub("", one), one) for one in _DEVICE.findall(text)]
    known = [ports for name in names if (ports := _ports_of(name, was, now)) is not None]
    return frozenset().union(*known) if known else None


def _ports_of(name: str, was: ServerHealth, now: ServerHealth) -> frozenset[str] | None:
    """The ports behind a kernel's name before or after, both where it passed on; None where it is not known.

    A SCSI address that is not known is one of its host. While nothing is plugged in, a name is less exact.
    """
    for known in (name, f"host{name.partition(':')[0]}"):
        if sides := sorted((frozenset(side.ports[known]) for side in (was, now) if known in side.ports), key=len):
            return sides[0] if sides[0] and sides[0] <= sides[-1] else sides[0] | sides[-1]
    return None
