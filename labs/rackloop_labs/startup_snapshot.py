"""The state of a rack at the start of a run, read once for every check that needs it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Self

from rackloop.clock import Deadline
from rackloop.errors import RackloopError
from rackloop.inspection.health import HealthSnapshot
from rackloop_labs.bench import Bench
from rackloop_labs.discovery import checked_ports, is_unchanged
from rackloop_labs.health import RackReading, read_rack


class StartupSnapshot:
    """Reads every server of ``bench`` beside other work; a context manager that on leaving waits for what still counts.

    Each server runs the command that ``besides`` has for it as well, which costs it less than a connection's next one.

    What it says is of the rack as it stood when it was made. A caller that changes the rack meanwhile calls
    :meth:`forget`; from then on, and where the rack cannot be asked, it knows nothing.
    """

    def __init__(self, bench: Bench, deadline: Deadline, besides: Callable[[str], Sequence[str]] | None = None) -> None:
        self._bench = bench
        self._deadline = deadline
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="startup-snapshot")
        self._reading: Future[RackReading] | None = None
        try:
            self._live = bench.equipment.fabric.live_map(deadline)
        except RackloopError:
            # The switch itself tells the next caller what is wrong.
            return
        self._reading = self._pool.submit(read_rack, bench, deadline, besides=besides)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # A reading that is not waited for any more may hang as long as its server does.
        self._pool.shutdown(wait=self._reading is not None, cancel_futures=True)

    def forget(self) -> None:
        """Say nothing more: the rack is no longer as it was read."""
        self._reading = None

    def answering(self) -> frozenset[str]:
        """The servers that answered, which therefore run."""
        reading = self._read()
        return frozenset(reading.servers) if reading is not None else frozenset()

    def besides(self) -> Mapping[str, str]:
        """The output of the command that was run besides, by server that answered; empty where it failed."""
        reading = self._read()
        return {name: server.besides for name, server in reading.servers.items()} if reading is not None else {}

    def as_described(self) -> HealthSnapshot | None:
        """The health of the rack, where every server answered and sees at each port what it should, else None.

        None as well where the map, as far as the bench shows it, is not the one that stood before the reading.
        """
        reading, bench = self._read(), self._bench
        if reading is None or reading.unreachable:
            return None
        try:
            if not is_unchanged(self._live, bench.equipment.fabric.live_map(self._deadline)):
                return None
        except RackloopError:
            return None
        seen = {name: server.inventory for name, server in reading.servers.items()}
        if any(check.disagreements for check in checked_ports(bench, self._live, seen)):
            return None
        return reading.snapshot(bench)

    def _read(self) -> RackReading | None:
        if self._reading is None:
            return None
        try:
            return self._reading.result()
        except RackloopError:
            return None
