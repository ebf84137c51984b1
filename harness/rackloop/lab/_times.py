"""The times that things may take on a rack: those of its description, or else the usual ones of its kind."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal, TypeAlias

from rackloop.lab.yaml import Description, time_of

TimeName: TypeAlias = Literal["answer", "reconnect", "act", "online", "settle", "tools", "boot", "spin_up"]
_Time: TypeAlias = Annotated[
    float | None, time_of("a time of 100 ms at least", "5 s", "2 min", least_s=0.1, most_s=3600)
]


class Times(Description):
    """The times that things may take on this rack. A time that is not given is that of its kind of lab."""

    answer: _Time = None
    """The time for a server to open an SSH session, begin a command or kill one before it counts as hung."""
    reconnect: _Time = None
    """The time for one attempt to be let in by a server that is waited for."""
    act: _Time = None
    """The time for an act on the rack, or a question to it, in a test that says nothing else."""
    online: _Time = None
    """The time for a drive to answer, from when the switch acted."""
    settle: _Time = None
    """The time for servers to show what the switch's map says."""
    tools: _Time = None
    """The time for a server's tools to report all its drives."""
    boot: _Time = None
    """The time from the start of a server or the switch until it answers."""
    spin_up: _Time = None
    """The time for a server to have a drive that is plugged in or gets power, and to lose one."""


_QUICK_S: Mapping[TimeName, float] = {"answer": 3, "reconnect": 5, "act": 10, "online": 5, "settle": 5}
_SLOW_S: Mapping[TimeName, float] = {"answer": 20, "reconnect": 20, "act": 60, "online": 60, "settle": 60}
USUAL_S: Mapping[str, Mapping[TimeName, float]] = {
    "mock": {**_QUICK_S, "tools": 10, "boot": 600, "spin_up": 60},
    "virtual": {**_SLOW_S, "tools": 60, "boot": 600, "spin_up": 60},
    "physical": {**_QUICK_S, "tools": 40, "boot": 600, "spin_up": 60},
}
"""The times of each kind of lab, in seconds."""
