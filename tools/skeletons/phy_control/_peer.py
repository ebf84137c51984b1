"""The peer: the box, simulated. It refuses what the box would refuse."""

from __future__ import annotations

from dataclasses import dataclass

from rackloop.clock import Clock
from skeletons.line_box._codec import Answer, Refusal, Request
from skeletons.line_box._server import LineBox


@dataclass(frozen=True)
class Flap:
    """A signal that goes away ``count`` times, every ``period_ns`` from ``began_ns`` on."""

    began_ns: int
    period_ns: int
    count: int

    def drops_until(self, now_ns: int) -> int:
        """The number of drops that have begun."""
        return min(self.count, 1 + (now_ns - self.began_ns) // self.period_ns)


class SimExample(LineBox):
    """A box of ``ports`` ports, numbered from 1."""

    def __init__(self, clock: Clock, ports: int = 4) -> None:
        super().__init__()
        self._clock = clock
        self._flaps: dict[int, list[Flap]] = {port: [] for port in range(1, ports + 1)}
        self._ids: set[str] = set()

    def act(self, request: Request) -> Answer | Refusal:
        """See :meth:`LineBox.act`."""
        match request.verb, request.arguments:
            case "FLAP", (request_id, down_us, up_us, count, *ports):
                return self._flap(request_id, int(down_us) + int(up_us), int(count), list(map(int, ports)))
            case "COUNTS", ports:
                now_ns = self._clock.now_ns()
                return Answer(tuple(str(self._drops(int(port), now_ns)) for port in ports))
        return Refusal("no such verb")

    def _flap(self, request_id: str, period_us: int, count: int, ports: list[int]) -> Answer | Refusal:
        if not self._flaps.keys() >= set(ports):
            return Refusal(f"no such port, the last one is {len(self._flaps)}")
        if request_id not in self._ids:
            self._ids.add(request_id)
            for port in ports:
                self._flaps[port].append(Flap(self._clock.now_ns(), period_us * 1000, count))
        return Answer()

    def _drops(self, port: int, now_ns: int) -> int:
        return sum(flap.drops_until(now_ns) for flap in self._flaps.get(port, ()))
