"""Servers and drives of a simulated rack as heal looks at them."""

from __future__ import annotations

from typing import cast

from rackloop.abilities import Drive, DriveIdentity, Host
from rackloop.clock import Deadline
from rackloop.errors import LabError, NotConnected, RackloopError
from tests.unit.harness.journalled_bench import Bench
from tests.unit.harness.sim_rack import identity_of


class Looked:
    """Servers and drives as heal looks at them. Who is in ``silent`` does not answer; ``swapped`` drives are others."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.asked: list[str] = []
        self.silent: set[str] = set()
        self.swapped: dict[str, str] = {}
        self.failure: RackloopError | None = None

    def host(self, server: str) -> Host:
        looked = self

        class Server:
            def reconnect(self, deadline: Deadline) -> int:
                looked.asked.append(server)
                if server in looked.silent or deadline.is_over():
                    raise looked.failure or NotConnected("nobody there")
                return 0

        return cast("Host", Server())

    def drive(self, server: str, port: str) -> Drive:
        drive = {place: name for name, place in self.bench.lab.places.items()}[server, port]
        looked = self

        class Found:
            def identify(self, deadline: Deadline) -> DriveIdentity:
                looked.asked.append(drive)
                if drive in looked.silent or deadline.is_over():
                    raise looked.failure or LabError("no drive is online")
                return identity_of(looked.bench.lab, looked.swapped.get(drive, drive))

        return cast("Drive", Found())
