"""Snapshots of each mock server on request, and its control over its links and drives."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from threading import RLock
from typing import Any

from rackloop.clock import Clock, Deadline
from rackloop.errors import LabError, NotConnected
from rackloop.lab import Lab, Part
from rackloop_drivers.rackd import RackdControl
from rackloop_labs._fixed_cabling import CABLES
from rackloop_labs._rackd_config import NBD_SOCKET
from rackloop_labs.mock_hosts._firmware import Firmware
from rackloop_labs.mock_hosts._kernel import Kernel
from rackloop_labs.mock_hosts._truth_events import EVENTS, RackTruth
from rackloop_labs.mock_hosts._view import AttachedDrive, AttachedExpander, Counters, HbaPort, HostActs, HostView

_ANSWER_S = 5.0
# Most records of a rack that moves drives are of no interest to its servers: they are passed over before they are read.
_NOTICED = re.compile(rb'(?<!\\)"event": ?"(?:%s)"' % "|".join(sorted(EVENTS)).encode())
_NS_PER_S = 1e9
# A COMRESET takes the signal away for about a millisecond.
_RESET_MS = 1.0
# rackd's longest drop, and its shortest, which ends the longest.
_FOR_EVER_MS = 1e9
_AT_ONCE_MS = 0.001
# Every simulated drive erases itself, and has a limit of its error recovery.
_FIRMWARE = Firmware(sanitizes=True, marks=True, limits=(0, 0))


class HostWatch:
    """The servers of a mock lab, followed through rackd's truth log from its first record.

    ``truth_log`` is the file of the rackd behind ``control``; both must be there. ``nbd`` is where its exports
    are. Every call returns within milliseconds and is safe from several threads. Raises NotConnected where rackd does
    not answer, LabError once its truth log lacks a record: what the servers see is not known then.
    """

    def __init__(self, lab: Lab, control: Path, truth_log: Path, clock: Clock) -> None:
        self._clock = clock
        # Behind a switch a drive has its power from where it is, and a server's slot gives it none.
        self.slots_feed_drives = lab.fabric.driver == CABLES
        self.nbd = control.with_name(NBD_SOCKET)
        self._truth = RackTruth(lab)
        self._lock = RLock()
        self._rackd = RackdControl(control, clock)
        try:
            self._records = truth_log.open("rb")
        except OSError as error:
            self._rackd.close()
            raise NotConnected(f"rackd's truth log {truth_log} cannot be read: {error.strerror}") from error
        self._partial = b""
        self._firmware: dict[str, Firmware] = {}

    def boot(self, server: str, boot_id: str) -> None:
        """The server boots now: its kernel finds what is there, under new names, and its log starts afresh."""
        acts = self.acts(server)
        with self.kernel(server) as kernel:
            kernel.boot(self._clock.now_ns(), boot_id)
            # A machine that starts enables every PHY and every slot it has.
            for port in list(kernel.ports.values()):
                acts.enable_link(port)
                acts.power_pci_slot(port, on=True)

    def halt(self, server: str) -> None:
        """The server crashed: it has no drives and no log until it boots. Cut power does so by itself."""
        with self.kernel(server) as kernel:
            kernel.halt()

    def up_us(self, server: str) -> int:
        """Microseconds since the server's boot, 0 where it has not booted."""
        with self.kernel(server) as kernel:
            return 0 if kernel.boot_id is None else (self._clock.now_ns() - kernel.boot_ns) // 1000

    def catch_up(self) -> None:
        """Have every kernel know, and say, what happened until now."""
        with self._lock:
            self._catch_up()

    def is_on(self, server: str) -> bool:
        """Whether the server has power."""
        with self.kernel(server):
            return server not in self._truth.servers_off

    def changes(self, server: str) -> int:
        """A number that grows whenever something changes at a server's links, drives or power."""
        with self.kernel(server) as kernel:
            return kernel.changes

    def view(self, server: str) -> HostView:
        """The server now: whatever rackd did before this was called is in it.

        The counters of a drive are those of when they are first looked at; NotConnected may come then. Raises LabError
        where the server has not booted.
        """
        with self.kernel(server) as kernel:
            if kernel.boot_id is None:
                raise LabError(f"{server} has not booted; give it power")
            # Read together: the moment of the boot, their difference, must not change from view to view.
            now_ns, now = self._clock.now_ns(), self._clock.wall()
            return HostView(
                server=server,
                boot_id=kernel.boot_id,
                up_s=(now_ns - kernel.boot_ns) / _NS_PER_S,
                ports=tuple(kernel.ports.values()),
                drives=tuple(self._counted(drive) for drive in kernel.drives(self._truth.off_slots)),
                expanders=tuple(kernel.expanders(self._truth.off_slots)),
                kernel_log=kernel.log,
                now=now,
                changes=kernel.changes,
            )

    def acts(self, server: str) -> HostActs:
        """The acts of a command on the server."""
        return ServerActs(self, server)

    @contextmanager
    def kernel(self, server: str) -> Iterator[Kernel]:
        """The server's kernel, up to date and locked while the block lasts."""
        with self._lock:
            self._catch_up()
            yield self._truth.kernels[server]

    def drive_in(self, expander: str, slot: int) -> str | None:
        """The drive that sits in an expander's slot, with power or without."""
        return self._truth.drive_in(expander, slot)

    def now_ns(self) -> int:
        """The time that kernel logs are stamped with."""
        return self._clock.now_ns()

    def ask(self, op: str, **fields: Any) -> dict[str, Any]:
        """Have rackd do something. Raises RackdRefused where it does not."""
        return self._rackd.request(op, Deadline.after(self._clock, _ANSWER_S), **fields)

    def keep(self, drive_id: str, change: Callable[[Firmware], Firmware]) -> None:
        """Have a drive's firmware keep something, whichever server has it later."""
        with self._lock:
            self._firmware[drive_id] = change(self._firmware.get(drive_id, _FIRMWARE))

    def close(self) -> None:
        """Let go of rackd."""
        self._rackd.close()
        self._records.close()

    def _counted(self, drive: AttachedDrive) -> AttachedDrive:
        """With what the drive counts, which rackd is asked for once it is looked at: most tools are about one drive."""
        counters = Counters(lambda: self.ask("drive_stats", drive=drive.drive_id))
        firmware = self._firmware.get(drive.drive_id, _FIRMWARE).at(self._clock.now_ns(), counters)
        failed = self._truth.failed_lbas(drive.drive_id)
        return replace(drive, counters=counters, failed_lbas=failed, firmware_state=firmware)

    def _catch_up(self) -> None:
        """Apply every record of what rackd did before now. Raises LabError where some never came to be written."""
        if lost := self.ask("settle")["lost"]:
            raise LabError(
                f"rackd could not write {lost} records of what it did, so that it is not known what the servers of "
                "this lab see; make room on its disk, and bring the lab down and up again"
            )
        *lines, self._partial = (self._partial + self._records.read()).split(b"\n")
        for line in lines:
            if is_noticed(line):
                self._truth.apply(json.loads(line))


def is_noticed(line: bytes) -> bool:
    """Whether a line of the truth log may be of an event that a server notices."""
    return _NOTICED.search(line) is not None


class ServerActs:
    """:class:`~rackloop_labs.mock_hosts._view.HostActs` of one server.

    Links lose their signal in rackd. rackd has no NVMe controllers to reset: that is a line in the kernel log.
    """

    def __init__(self, watch: HostWatch, server: str) -> None:
        self._watch = watch
        self._server = server

    def reset_link(self, port: HbaPort) -> None:
        """Take the signal away for as long as a COMRESET lasts; a link that was disabled is enabled."""
        self._drop(port, _RESET_MS, is_enabled=True)

    def disable_link(self, port: HbaPort) -> None:
        """Take the signal away until :meth:`enable_link`."""
        self._drop(port, _FOR_EVER_MS, is_enabled=False)

    def enable_link(self, port: HbaPort) -> None:
        """Give a disabled link its signal back; nothing where it was not disabled."""
        if not port.is_enabled:
            self._drop(port, _AT_ONCE_MS, is_enabled=True)

    def power_slot(self, expander: AttachedExpander, slot: int, *, on: bool) -> None:
        """Give or take the power of the drive in a slot; nothing where the slot is empty."""
        drive = self._watch.drive_in(expander.name, slot)
        if drive is not None:
            self._watch.ask("power", target=str(Part.drive(drive)), on=on)

    def reset_controller(self, drive: AttachedDrive) -> None:
        """Say in the kernel log that the controller was reset."""
        with self._watch.kernel(self._server) as kernel:
            kernel.reset_controller(self._watch.now_ns(), drive.kernel_name)

    def sanitize(self, drive: AttachedDrive, method: str, *, at_once: bool = False) -> None:
        """Have rackd erase the drive, which it does at once."""
        self._watch.ask("sanitize", drive=drive.drive_id, method=method)
        if not at_once:
            self._watch.keep(drive.drive_id, lambda kept: kept.erasing_by(method, self._watch.now_ns()))

    def set_password(self, drive: AttachedDrive, password: str | None) -> None:
        """Have the drive keep a password, or none; it is locked from its next power cycle on."""
        cycles = drive.counters["power_cycles"]
        self._watch.keep(drive.drive_id, lambda kept: kept.with_password(password, cycles))

    def limit_recovery(self, drive: AttachedDrive, reads: int, writes: int) -> None:
        """Have the drive keep these limits, which change nothing of its simulated times."""
        cycles = drive.counters["power_cycles"]
        self._watch.keep(drive.drive_id, lambda kept: kept.with_limits(reads, writes, cycles))

    def mark(self, drive: AttachedDrive, first: int, many: int) -> None:
        """Have rackd fail reads of the sectors until they are written."""
        fault = {"kind": "media_error", "lba": first, "sectors": many, "mode": "until_rewritten"}
        self._watch.ask("fault", drive=drive.drive_id, fault=fault)

    def remove(self, drive: AttachedDrive) -> None:
        """Have the kernel forget the drive."""
        with self._watch.kernel(self._server) as kernel:
            kernel.remove(self._watch.now_ns(), drive.kernel_name)

    def rescan(self, port: HbaPort, target: int | None = None) -> None:
        """Have the kernel find again what is online at the port, or one target of it."""
        with self._watch.kernel(self._server) as kernel:
            kernel.rescan(self._watch.now_ns(), port.name, target)

    def remove_function(self, port: HbaPort) -> None:
        """Have the kernel forget a port's PCI function."""
        with self._watch.kernel(self._server) as kernel:
            kernel.remove_function(self._watch.now_ns(), port.name)

    def rescan_bus(self, port: HbaPort | None = None) -> None:
        """Have the kernel find again the PCI functions that it forgot, or that of one port."""
        with self._watch.kernel(self._server) as kernel:
            kernel.rescan_bus(self._watch.now_ns(), None if port is None else port.name)

    def power_pci_slot(self, port: HbaPort, *, on: bool) -> None:
        """Give or take the power of the NVMe drive in a port's slot; nothing where there is none.

        Where the slot leads to the switch, the link goes and comes with its power.
        """
        with self._watch.kernel(self._server) as kernel:
            drive = kernel.switch_slot(port.name, is_on=on)
            if drive is not None and self._watch.slots_feed_drives:
                self._watch.ask("power", target=str(Part.drive(drive)), on=on)
            elif drive is not None:
                self._drop(port, _AT_ONCE_MS if on else _FOR_EVER_MS, is_enabled=on)

    def _drop(self, port: HbaPort, down_ms: float, *, is_enabled: bool) -> None:
        with self._watch.kernel(self._server) as kernel:
            kernel.enable(port.name, is_enabled=is_enabled)
            self._watch.ask("phy_drop", ports=[port.switch_port], down_ms=down_ms)
