"""The notes of faults on a server: on its disk before anything is broken there."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import pytest

from rackloop.abilities import Completed, Host
from rackloop.clock import Deadline
from rackloop.errors import FaultRefused, GuardRefused, LabError, NotConnected, NotSupported, RackloopError
from rackloop_drivers.fail_fast import FailFast
from rackloop_drivers.host_tools import FaultDispatcher, HostFaults
from tests.deadlines import soon

OUT = {"kind": "out"}
# Each notes that it was called, and with what, before it does it.
SPY = """#!/bin/sh
echo "${{0##*/}} $*" >>{log}
PATH=${{PATH#*:}}
exec "${{0##*/}}" "$@"
"""


class ThisMachine:
    """A server whose commands run here, with spies before ``sync`` and ``mv``; ``folder`` is its /var/lib/rackloop."""

    name = "srv9"

    def __init__(self, folder: Path) -> None:
        self._var = str(folder)
        self.log = folder / "log"
        self._bin = folder / "bin"
        self._bin.mkdir()
        for tool in ("mv", "sync"):
            (self._bin / tool).write_text(SPY.format(log=self.log))
            (self._bin / tool).chmod(0o755)

    def run(self, argv: Sequence[str], _deadline: Deadline, *, stdin: str = "") -> Completed:
        path = f"{self._bin}:{os.environ['PATH']}"
        own = [word.replace("/var/lib/rackloop", self._var) for word in argv]
        done = subprocess.run(
            own, input=stdin, capture_output=True, text=True, timeout=60, check=False, env={**os.environ, "PATH": path}
        )
        return Completed(tuple(argv), done.returncode, done.stdout, done.stderr)


class Lamp:
    """Something that burns, or not; it notes when it was put out."""

    kinds = frozenset({"out"})

    def __init__(self, log: Path) -> None:
        self._log = log
        self.is_out = False
        self.refusal: RackloopError | None = None
        self.breaks_first = False
        self.untold: dict[str, RackloopError] = {}

    def prepare(self, _fault: Mapping[str, Any], _deadline: Deadline) -> dict[str, Any]:
        return {}

    def start(self, _note: Mapping[str, Any], _deadline: Deadline) -> None:
        self.is_out = self.refusal is None or self.breaks_first
        if self.refusal is not None:
            raise self.refusal
        with self._log.open("a") as log:
            log.write("out\n")

    def stands(self, note: Mapping[str, Any], _deadline: Deadline) -> bool:
        if (error := self.untold.get(note["key"])) is not None:
            raise error
        return self.is_out

    def end(self, _note: Mapping[str, Any], _deadline: Deadline) -> None:
        self.is_out = False


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


def test_a_note_is_on_the_disk_before_anything_is_broken(folder: Path) -> None:
    """A server that loses its power at once must still know what it did."""
    server = ThisMachine(folder)
    HostFaults(cast("Host", server), "lamp", Lamp(server.log)).break_as("run/1", {"kind": "out"}, soon())
    notes = folder / "faults/lamp"
    assert server.log.read_text().splitlines() == [
        f"sync {notes}/.run%2F1.json.new",
        f"mv {notes}/.run%2F1.json.new {notes}/run%2F1.json",
        f"sync {notes} {folder}/faults",
        "out",
    ]


def test_nothing_is_broken_where_the_note_does_not_reach_the_disk(folder: Path) -> None:
    server = ThisMachine(folder)
    (folder / "bin/sync").write_text("#!/bin/sh\necho no space >&2\nexit 1\n")
    lamp = Lamp(server.log)
    with pytest.raises(LabError, match=r"srv9: the note of a fault in .* failed: no space"):
        HostFaults(cast("Host", server), "lamp", lamp).break_as("run/1", {"kind": "out"}, soon())
    assert not lamp.is_out


@pytest.mark.parametrize("text", ["", "{", '{"key": "run/2"}', '{"fault": "out"}', "[1]", "a\nb\n"])
def test_a_note_that_cannot_be_read_blocks_its_own_key_alone(folder: Path, text: str) -> None:
    server = ThisMachine(folder)
    lamp = Lamp(server.log)
    part = HostFaults(cast("Host", server), "lamp", lamp)
    part.break_as("run/1", {"kind": "out"}, soon())
    half = folder / "faults/lamp/run%2F2.json"
    half.write_text(text)
    note = "/var/lib/rackloop/faults/lamp/run%2F2.json"
    why = f"the note {note} cannot be read: {text.replace(chr(10), ' ')!r}"
    assert part.standing(soon()) == {"run/1": OUT, "run/2": {"kind": "unreadable", "note": note, "why": why}}
    with pytest.raises(LabError, match="cannot be read"):
        part.mend("run/2", soon())
    part.mend("run/1", soon())
    assert (lamp.is_out, set(part.standing(soon()))) == (False, {"run/2"})


def test_a_note_of_what_is_over_keeps_no_later_fault_from_being_ended(folder: Path) -> None:
    """As of a server that was started anew, which ended its fault and not the note."""
    server = ThisMachine(folder)
    lamp = Lamp(server.log)
    part = HostFaults(cast("Host", server), "lamp", lamp)
    part.break_as("run/1", OUT, soon())
    lamp.is_out = False
    part.break_as("run/2", OUT, soon())
    assert part.standing(soon()) == {"run/2": OUT}
    part.break_as("run/3", OUT, soon())
    part.mend("run/3", soon())
    assert lamp.is_out, "it was ended under run/3, and stands under run/2"
    part.mend("run/2", soon())
    assert (lamp.is_out, part.standing(soon())) == (False, {})


def test_a_note_of_what_is_over_stays_until_another_is_on_the_disk(folder: Path) -> None:
    server = ThisMachine(folder)
    lamp = Lamp(server.log)
    part = HostFaults(cast("Host", server), "lamp", lamp)
    part.break_as("run/1", OUT, soon())
    lamp.is_out = False
    (folder / "bin/sync").write_text("#!/bin/sh\necho no space >&2\nexit 1\n")
    with pytest.raises(LabError, match="no space"):
        part.break_as("run/2", OUT, soon())
    assert [note.name for note in (folder / "faults/lamp").glob("*.json")] == ["run%2F1.json"]


@pytest.mark.parametrize(
    "refusal", [GuardRefused("d01", ["in use"]), FaultRefused("out of d01", ["no"]), NotSupported("it has none")]
)
def test_what_was_refused_leaves_no_note(folder: Path, refusal: RackloopError) -> None:
    """The journal has a refusal as an act that was not made, which is never undone."""
    server = ThisMachine(folder)
    lamp = Lamp(server.log)
    lamp.refusal = refusal
    with pytest.raises(type(refusal)):
        HostFaults(cast("Host", server), "lamp", lamp).break_as("run/1", OUT, soon())
    assert list((folder / "faults/lamp").glob("*.json")) == []


def test_what_was_refused_halfway_is_an_error_that_is_undone(folder: Path) -> None:
    server = ThisMachine(folder)
    lamp = Lamp(server.log)
    lamp.refusal, lamp.breaks_first = NotSupported("sector 9 is beyond it"), True
    part = HostFaults(cast("Host", server), "lamp", lamp)
    with pytest.raises(LabError, match="sector 9 is beyond it; and it is broken all the same"):
        part.break_as("run/1", OUT, soon())
    assert part.standing(soon()) == {"run/1": OUT}
    part.mend("run/1", soon())
    assert not lamp.is_out


def test_a_fault_of_which_the_server_cannot_tell_blocks_its_own_key_alone(folder: Path) -> None:
    server = ThisMachine(folder)
    lamp = Lamp(server.log)
    part = HostFaults(cast("Host", server), "lamp", lamp)
    for key in ("run/1", "run/2"):
        part.break_as(key, OUT, soon(60))
    lamp.untold = {"run/2": LabError("drive d02 is gone")}
    note = "/var/lib/rackloop/faults/lamp/run%2F2.json"
    untold = {"kind": "unreadable", "note": note, "why": "drive d02 is gone"}
    assert part.standing(soon(60)) == {"run/1": OUT, "run/2": untold}
    lamp.untold = {"run/2": NotConnected("no route to host")}
    with pytest.raises(NotConnected):
        part.standing(soon(60))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('{"fault": {"kind": "fail_fast"}, "serial": "S1", "protocol": "sata", "before": "70,70"}', "has no node"),
        ('{"fault": {"kind": "melted"}}', "'melted', which this version cannot end"),
    ],
)
def test_a_note_of_another_version_that_lacks_what_is_needed_blocks_its_own_key_alone(
    folder: Path, text: str, why: str
) -> None:
    server = ThisMachine(folder)
    host, lamp = cast("Host", server), Lamp(server.log)
    part = HostFaults(host, "lamp", FaultDispatcher(lamp, FailFast(host, "/dev/none", serial="", move=False)))
    part.break_as("run/1", OUT, soon(60))
    other = folder / "faults/lamp/run%2F2.json"
    other.write_text(text)
    standing = part.standing(soon(60))
    assert standing.keys() == {"run/1", "run/2"}
    assert standing["run/2"]["kind"] == "unreadable"
    assert re.search(why, standing["run/2"]["why"])
    with pytest.raises(LabError, match=why):
        part.mend("run/2", soon(60))
    part.mend("run/1", soon(60))
    assert (lamp.is_out, other.read_text()) == (False, text)
