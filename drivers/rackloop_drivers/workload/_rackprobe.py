"""rackprobe, the native I/O and timing probe: identified writes, verification, remap latency, watches, swaps."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rackloop.abilities import BlockDevice, Executor, WritableDrive
from rackloop.clock import Clock, Deadline
from rackloop.errors import GuardRefused
from rackloop.safety import place_of
from rackloop_drivers.host_tools import deliver_program
from rackloop_drivers.workload._mountable import SECTOR_BEHIND, make_file_system
from rackloop_drivers.workload._rackprobe_results import (
    Event,
    Expected,
    Verification,
    Written,
    build,
    parse_line,
)
from rackloop_drivers.workload._rackprobe_session import raise_failure
from rackloop_drivers.workload._rackprobe_sessions import ProbeTarget, RemapSession, SwapSession
from rackloop_drivers.workload._rackprobe_uevents import DeviceEvent, DeviceEvents
from rackloop_drivers.workload._rackprobe_watch import Watch

SECTOR_BYTES = 4096

_NOT_RIGHT = 1


class RackProbe:
    """Runs rackprobe where ``executor`` runs commands.

    ``binary`` is its path there; without one, the program of this machine is used, and a
    :class:`~rackloop.abilities.Host` is first given the build for its kind of machine. A device's ``probe_target`` is
    opened there. Addresses (``lba``) count sectors of 4 KiB. The probe stamps with CLOCK_MONOTONIC of the machine that
    it runs on; results have these stamps on the run's ``clock``, and how far they may be off.

    Every call raises BadInput where the probe refuses what it is given, LabError where the target fails,
    ToolError where the probe is missing or breaks, DeadlineExceeded where it does not end in time, ClockUnknown where
    the machine's clock cannot be related to the run's, and ProtocolError where the probe is of another version.
    """

    def __init__(self, executor: Executor, clock: Clock, binary: str | None = None) -> None:
        self._executor = executor
        self._clock = clock
        self._binary = binary

    def write(
        self,
        drive: WritableDrive,
        deadline: Deadline,
        *,
        start_lba: int = 0,
        sectors: int = 1,
        generation: int = 1,
        seed: int = 0,
        queue_depth: int = 4,
        block_bytes: int = 1 << 20,
    ) -> Written:
        """Write identified sectors and flush them. One sector labels a drive.

        Raises GuardRefused for anything but a WritableDrive.
        """
        target, permission = _permission(drive)
        argv = [
            *("write", target, f"--generation={generation}", f"--seed={seed}"),
            *(f"--serial={drive.serial}", *permission),
            *_range(start_lba, sectors, block_bytes),
            f"--queue-depth={queue_depth}",
        ]
        return build(Written, self._run(argv, deadline))

    def make_mountable(self, drive: WritableDrive, expected: Expected, deadline: Deadline) -> None:
        """Give the drive a small file system for a :class:`ProbeTarget` to mount, and an identified sector behind it.

        ``expected`` is what both carry. Raises NotSupported where this machine has no mkfs.
        """
        generation, seed = expected.generation, expected.seed or 0
        # The first to be written: a drive that is too small is refused whole.
        self.write(drive, deadline, start_lba=SECTOR_BEHIND, generation=generation, seed=seed)
        make_file_system(self._executor, drive, expected, deadline)

    def verify(
        self,
        device: BlockDevice,
        expected: Expected,
        deadline: Deadline,
        *,
        start_lba: int = 0,
        sectors: int = 1,
        queue_depth: int = 4,
        block_bytes: int = 1 << 20,
    ) -> Verification:
        """Read sectors back and say of each what it is. Wrong data and failed reads are results, not errors."""
        argv = [
            *("verify", device.probe_target(), *expected.options()),
            *_range(start_lba, sectors, block_bytes),
            f"--queue-depth={queue_depth}",
        ]
        return build(Verification, self._run(argv, deadline))

    def remap_session(
        self,
        targets: Sequence[ProbeTarget],
        deadline: Deadline,
        *,
        poll_us: int = 200,
        spin: bool = True,
        uevents: bool = False,
    ) -> RemapSession:
        """Open all targets, ready to wait for drives on them.

        While armed, a target is read every ``poll_us``. With ``spin``, a session of one target asks for its
        completions instead of sleeping until they come; one of several targets never does. Raises LabError where
        ``uevents`` are asked for and the kernel gives none.
        """
        argv = [self._program(deadline), "remap", *(["--uevents"] if uevents else [])]
        return RemapSession(self._executor, self._clock, argv, targets, deadline, poll_us=poll_us, spin=spin)

    def watch(
        self,
        device: BlockDevice,
        expected: Expected,
        deadline: Deadline,
        *,
        write_to: WritableDrive | None = None,
        start_lba: int = 0,
        sectors: int = 1,
        block_bytes: int = SECTOR_BYTES,
        pace_us: int = 0,
        spin: bool = False,
        interval_s: float = 1.0,
        duration_s: float | None = None,
        drain_s: float = 2.0,
    ) -> Watch:
        """Start reading ``sectors`` round and round, one block at a time, every ``pace_us`` or back to back.

        With ``write_to``, the permission to overwrite ``device``, each block is first written under a new
        generation; it stays open until the watch is over. It ends after ``duration_s`` or when its result is asked
        for; an I/O that does not complete within ``drain_s`` of the end is lost. Raises GuardRefused where
        ``write_to`` is no WritableDrive, or one of another device.
        """
        target, permission = "", list[str]()
        if write_to is not None:
            target, permission = _permission(write_to)
            if place_of(write_to.device) != place_of(device):
                raise GuardRefused(write_to.drive_id, [f"the permission is not for {device.probe_target()}"])
            permission.append("--write")
        argv = [
            *(self._program(deadline), "watch", target or device.probe_target(), *expected.options()),
            *_range(start_lba, sectors, block_bytes),
            f"--pace-us={pace_us}",
            f"--interval-ms={round(interval_s * 1000)}",
            f"--drain-ms={round(drain_s * 1000)}",
            *([] if duration_s is None else [f"--duration-ms={round(duration_s * 1000)}"]),
            *(["--spin"] if spin else []),
            *permission,
        ]
        return Watch(self._executor, self._clock, argv, deadline)

    def device_events(
        self,
        take: Callable[[DeviceEvent], None],
        ended: Callable[[str], None],
        deadline: Deadline,
        *,
        subsystems: Sequence[str] = (),
    ) -> DeviceEvents:
        """Stamp the device events of these subsystems, or of all; ``take`` is called with each as it comes.

        ``ended`` is called with the reason where they end before they are closed. Raises LabError where the kernel
        gives none.
        """
        argv = [self._program(deadline), "uevents", *(f"--subsystem={name}" for name in subsystems)]
        return DeviceEvents(self._executor, self._clock, argv, deadline, take=take, ended=ended)

    def swap_session(
        self,
        device: BlockDevice,
        expected: Expected,
        deadline: Deadline,
        *,
        reads: int,
        start_lba: int = 0,
        sectors: int | None = None,
        block_bytes: int = SECTOR_BYTES,
    ) -> SwapSession:
        """Start the worst case: block reads between which the caller swaps the drive behind ``device``.

        Reads go through ``sectors`` (one block by default) and start again at their end, or where the caller says.
        """
        argv = [
            *(self._program(deadline), "swap", device.probe_target(), *expected.options(), f"--reads={reads}"),
            *_range(start_lba, sectors or block_bytes // SECTOR_BYTES, block_bytes),
        ]
        return SwapSession(self._executor, self._clock, argv, deadline)

    def _program(self, deadline: Deadline) -> str:
        """The probe's path where it runs; it is brought to a host once."""
        if self._binary is None:
            self._binary = deliver_program(self._executor, "rackprobe", deadline)
        return self._binary

    def _run(self, argv: Sequence[str], deadline: Deadline) -> Event:
        completed = self._executor.run([self._program(deadline), *argv], deadline)
        if completed.status not in {0, _NOT_RIGHT} or not completed.stdout:
            raise_failure(completed)
        return parse_line(completed.stdout.splitlines()[-1])


def _permission(drive: WritableDrive) -> tuple[str, list[str]]:
    """The target that may be written, and the options that say so to the probe."""
    if not isinstance(drive, WritableDrive):
        raise GuardRefused(
            getattr(drive, "serial", repr(drive)),
            ["rackprobe writes to a WritableDrive, which the guard alone can mint"],
        )
    return drive.device.probe_target(), [f"--allow-write={drive.serial}", *(["--claimed"] if drive.is_claimed else [])]


def _range(start_lba: int, sectors: int, block_bytes: int) -> list[str]:
    return [f"--start-lba={start_lba}", f"--sectors={sectors}", f"--block={block_bytes}"]
