"""An md array of a guest's drives: made, served as an NBD export, its drives failed and given back."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from rackloop.clock import Clock, Deadline
from rackloop_drivers.block import NbdExport
from rackloop_drivers.block.nbd_session import NbdSession
from rackloop_drivers.host import SshHost
from rackloop_models.under_test import MdArray
from tests.linux_guest.machine import NBD_PORT
from tests.writable_drive import minted

MODULES = ("raid1", "raid456")
PROGRAMS = ("sbin/mdadm",)

_COMMAND_S = 60.0
# In a session of its own, or it would end with the command that starts it. It listens before it goes to the background;
# setsid waits for that only where it is not all that the shell has to do.
_SERVE = f"setsid nbdkit --ipaddr 0.0.0.0 --port {NBD_PORT} --pidfile /run/nbdkit.pid file /dev/md0 || exit"
# It writes its number once it is in the background. Killed, it is gone only when the kernel says so, and only then is
# the array free.
_WITHDRAW = """
until read pid </run/nbdkit.pid; do :; done 2>/dev/null
kill -9 $pid
while [ -d /proc/$pid ]; do :; done
rm /run/nbdkit.pid
"""


class MdGuest:
    """The array md0 of a guest, of the drives whose images are ``drives``, and what an administrator does with it.

    It is blocks, too: an NBD session of the project's own with what the guest exports at ``nbd``.
    """

    def __init__(self, host: SshHost, nbd: tuple[str, int], drives: Mapping[str, Path], clock: Clock) -> None:
        self.array = MdArray(host, "md0", clock)
        self.drives = drives
        self.size_bytes = 0
        self._host = host
        self._nbd = nbd
        self._clock = clock
        self._members: list[str] = []
        self._session: NbdSession | None = None
        self._export = ExitStack()

    def tell(self, command: str, *, may_fail: bool = False) -> str:
        """Run a command of the guest's shell; what it printed. Fails the test where the command does."""
        done = self._host.run(("sh", "-c", command), Deadline.after(self._clock, _COMMAND_S))
        assert may_fail or done.status == 0, f"{command}: {done.stderr}{done.stdout}"
        return done.stdout

    @contextmanager
    def made(self, level: int, drives: int, spares: int = 0) -> Iterator[None]:
        """An array of the first drives, in chunks of 16 KiB, without a bitmap, whole, as long as the block lasts."""
        self._members = list(self.drives)[: drives + spares]
        chunk = "" if level == 1 else "--chunk=16"
        self.tell(
            f"mdadm --create /dev/md0 --run --quiet --metadata=1.2 --bitmap=none --level={level} {chunk}"
            f" --raid-devices={drives} --spare-devices={spares} {_devices(self._members)}"
        )
        try:
            self.array.wait_idle(Deadline.after(self._clock, _COMMAND_S))
            self.size_bytes = 512 * int(self.tell("cat /sys/block/md0/size"))
            self._serve()
            yield
        finally:
            self._withdraw()
            self.tell(f"mdadm --stop --quiet /dev/md0 && mdadm --zero-superblock {_devices(self._members)}")

    def read(self, offset: int, length: int) -> bytes:
        """As the session does."""
        return self._opened().read(offset, length)

    def write(self, offset: int, data: bytes | bytearray | memoryview) -> None:
        """As the session does."""
        self._opened().write(offset, data)

    def flush(self) -> None:
        """As the session does."""
        self._opened().flush()

    def freeze(self) -> None:
        """Have nothing rebuilt until :meth:`thaw`, as mdadm does while it changes an array."""
        self.array.start("frozen")

    def thaw(self, kib_per_s: int = 1 << 20) -> None:
        """Have rebuilt what can be, at this speed at most."""
        self.array.rebuild(most_kib_per_s=kib_per_s)

    def fail(self, names: Collection[str]) -> None:
        """Have drives fail and take them out, as far as the kernel lets go of them."""
        # Of the drive that is one too many the kernel says EBUSY, and has it faulty all the same.
        each = (f"mdadm /dev/md0 --fail /dev/{name} && mdadm /dev/md0 --remove /dev/{name}" for name in names)
        self.tell("; ".join(each), may_fail=True)
        status = self.array.status()
        working = {member.name for member in status.members if "faulty" not in member.states}
        assert working.isdisjoint(names), f"{names} are to have failed: {status}"

    def give_back(self) -> None:
        """Have every drive in the array again, those that failed as if they were new.

        Of an array that has lost too many, those that were lost last are taken as they are.
        """
        status = self.array.status()
        if status.is_lost:
            self._withdraw()
            # It takes those that know most, and leaves out who was lost before them.
            self.tell(
                f"mdadm --stop --quiet /dev/md0 && mdadm --assemble --force --run /dev/md0 {_devices(self._members)}"
            )
            self._serve()
            status = self.array.status()
        faulty = [member.name for member in status.members if "faulty" in member.states]
        working = {member.name for member in status.members}.difference(faulty)
        commands = [f"mdadm /dev/md0 --remove /dev/{name}" for name in faulty]
        commands += [f"mdadm /dev/md0 --add /dev/{name}" for name in self._members if name not in working]
        self.tell(" && ".join(commands) or "true")

    def _opened(self) -> NbdSession:
        assert self._session is not None
        return self._session

    def _serve(self) -> None:
        self.tell(_SERVE)
        drive = self._export.enter_context(minted(NbdExport(self._nbd, "md0", self.size_bytes)))
        self._session = self._export.enter_context(NbdSession(drive, self._clock, within_s=_COMMAND_S))

    def _withdraw(self) -> None:
        if self._session is not None:
            self._session = None
            self._export.close()
            self.tell(_WITHDRAW)


def _devices(names: Iterable[str]) -> str:
    return " ".join(f"/dev/{name}" for name in names)
