"""Running rackds with their control connections and truth streams."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from rackloop.clock import Deadline
from rackloop_drivers.rackd import RackdControl, RackdRefused, TruthStream
from tests.deadlines import CLOCK
from tests.nbd_wire import NbdWire
from tests.rackd_process import RunningRackd, running_rackd, small_rack

SLOW_S = 120.0


class Rack:
    """A running rackd with an open control connection and a subscription."""

    def __init__(self, process: RunningRackd, control: RackdControl, truth: TruthStream) -> None:
        self.process = process
        self.control = control
        self.truth = truth

    def ask(self, op: str, **fields: Any) -> dict[str, Any]:
        return self.control.request(op, Deadline.after(CLOCK, SLOW_S), **fields)

    def refused(self, op: str, **fields: Any) -> str:
        with pytest.raises(RackdRefused) as caught:
            self.ask(op, **fields)
        return caught.value.code

    def wait_for(self, event: str, **fields: Any) -> dict[str, Any]:
        """The next record of ``event`` with these fields."""
        deadline = Deadline.after(CLOCK, SLOW_S)
        while True:
            record = self.truth.next_before(deadline)
            if record["event"] == event and fields.items() <= record.items():
                return record

    def records_until_settled(self) -> list[dict[str, Any]]:
        self.ask("settle")
        return self.process.truth()

    def map(self, *pairs: tuple[int, int], **fields: Any) -> int:
        """Map, wait until every server port in ``pairs`` has its drive, and return the generation."""
        there = {tuple(pair) for pair in self.ask("get_map")["pairs"]}
        coming = {server_port for server_port, _ in set(pairs) - there}
        generation = int(self.ask("map", pairs=pairs, **fields)["generation"])
        while coming:
            coming.discard(self.wait_for("online", generation=generation)["switch_port"])
        return generation

    def open_export(self, export: str) -> NbdWire:
        return NbdWire(self.process.nbd, export)

    def wait_held(self, requests: int) -> None:
        """Return once rackd holds that many requests; they come from a socket, and not all at once."""
        self._wait_stats(lambda stats: stats["held"] == requests)

    def wait_lateness(self, acts: int) -> None:
        """Return once rackd has said of that many acts how late they were, which it does behind them."""
        self._wait_stats(lambda stats: stats["lateness"]["n"] >= acts)

    def wait_late(self, late_ns: int) -> None:
        """Return once rackd has said that it was late with something by at least so much."""
        self._wait_stats(lambda stats: stats["lateness"]["max"] >= late_ns)

    def _wait_stats(self, fits: Callable[[dict[str, Any]], bool]) -> None:
        deadline = Deadline.after(CLOCK, SLOW_S)
        while not fits(stats := self.ask("stats")):
            assert not deadline.is_over(), f"rackd still says {stats}"


Start = Callable[..., Rack]


@contextmanager
def rack_starter(directory: Path) -> Iterator[Start]:
    """A function that starts a small rack with changes to its configuration; all of them end with the block."""
    with ExitStack() as stack:

        def start(**changes: Any) -> Rack:
            process = stack.enter_context(running_rackd(directory, small_rack() | changes))
            control = process.connect()
            stack.callback(control.close)
            return Rack(process, control, stack.enter_context(control.subscribe()))

        yield start


def pattern(number: int, length: int = 4096) -> bytes:
    return bytes([number]) * length


def mark_drives(rack: Rack, *numbers: int) -> None:
    """Fill the beginning of each drive with its number."""
    for number in numbers:
        with rack.open_export(f"drive.d{number:02}") as wire:
            assert wire.write(0, pattern(number)) == 0
