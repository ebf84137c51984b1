"""A session with a running rackprobe that stamps the device events of its host."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from threading import Thread

from rackloop.abilities import Executor
from rackloop.clock import Clock, Deadline
from rackloop_drivers.host_clock import Moment
from rackloop_drivers.workload._rackprobe_results import build
from rackloop_drivers.workload._rackprobe_session import ProbeSession

_END_GRACE_S = 5.0


@dataclass(frozen=True)
class DeviceEvent:
    """An event of a device, told by the ``kernel``, and by ``udev`` once it has given the device its ``devlinks``.

    ``t_ns`` is on the host's clock, and ``waited_ns`` by how much the event can have been earlier: until then the probe
    was ready and had no core, or took the events before it; None where the kernel does not say. ``devpath`` is the
    device's place under ``/sys``. None stands where an event does not say. The two events of one change have one
    ``seqnum``.
    """

    t_ns: int
    waited_ns: int | None
    source: str
    action: str
    subsystem: str | None
    devpath: str
    devtype: str | None
    devname: str | None
    devlinks: tuple[str, ...]
    seqnum: int | None


class DeviceEvents(ProbeSession):
    """Stamps every device event of a host until it is closed. Made by :meth:`RackProbe.device_events`.

    ``take`` is called with each, by a thread of its own; ``ended`` once, with the reason, where they end by themselves:
    the connection was lost, or the kernel had no room for events, so that some are missing.
    """

    def __init__(
        self,
        executor: Executor,
        clock: Clock,
        argv: Sequence[str],
        deadline: Deadline,
        *,
        take: Callable[[DeviceEvent], None],
        ended: Callable[[str], None],
    ) -> None:
        super().__init__(executor, clock, argv)
        self._take = take
        self._ended = ended
        self._is_closed = False
        try:
            self._ready(deadline)
        except BaseException:
            self._process.kill()
            raise
        self._reader = Thread(target=self._follow, name="device events", daemon=True)
        self._reader.start()

    def moment(self, event: DeviceEvent) -> Moment:
        """The moment of an event on the run's clock. Raises ClockUnknown where it is not known."""
        return self.host_clock.moment(event.t_ns)

    def close(self) -> None:
        """Stamp no more. Closing twice does nothing."""
        self._is_closed = True
        super().close()
        self._reader.join(_END_GRACE_S)

    def _follow(self) -> None:
        try:
            for event in self._followed():
                if event.get("event") == "lost":
                    self._ended("its kernel had no room for all its device events")
                    return
                self._take(build(DeviceEvent, event))
        except Exception as error:  # noqa: BLE001 - whoever asks the log is told
            if not self._is_closed:
                self._ended(str(error))
