"""Notice to a server that the drives at some of its ports are about to be switched."""

from __future__ import annotations

import math
from collections.abc import Sequence
from importlib.resources import files

from rackloop.abilities import Host
from rackloop.clock import Deadline
from rackloop.errors import LabError
from rackloop_drivers.failed_command import failure_of

_BY_PATH = "/dev/disk/by-path/"


def tell_of_switch(host: Host, paths: Sequence[str], deadline: Deadline, *, looks_s: float) -> None:
    """Tell a server that other drives are about to come to these ports, each given by its path.

    It then has its kernel look at once and again, more and more rarely, until another drive is there or ``looks_s`` are
    over: by a scan of an AHCI port, which is a COMRESET, or of an NVMe drive's own PCI bus; a SAS HBA looks by itself.
    Needs root on the server; raises LabError where that is missing. Returns before it has looked.
    """
    script = files("rackloop_drivers.host_tools").joinpath("notice.sh").read_text(encoding="utf-8")
    ports = [path.removeprefix(_BY_PATH) for path in paths]
    completed = host.run(["sh", "-c", script, "notice", script, "begin", str(math.ceil(looks_s)), *ports], deadline)
    if completed.status:
        said = failure_of(completed)
        raise LabError(f"{host.name} could not be told that drives are about to be switched: {said}; it takes root")
