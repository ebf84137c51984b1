"""The time that heal gives what it mends, and what it waits for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from rackloop.clock import Deadline
from rackloop.errors import DeadlineExceeded, NotConnected
from rackloop.record.acts import Act, BreakPart, TurnOff
from rackloop.safety import HealReport, heal
from tests.unit.harness.journalled_bench import Bench
from tests.unit.harness.looked_at import Looked
from tests.unit.harness.sim_rack import SimPart, SimRegister


def healed_with(bench: Bench, register: type[SimRegister]) -> tuple[HealReport, Looked]:
    """A thorough heal where srv2 has such a register, and what it looked at."""
    of_srv2 = {"slot:srv2/p0": SimPart("slot_power_off", name="srv2/p0"), "drive:d03": SimPart("media_error")}
    equipment = replace(bench.rack.equipment, server_registers=(register(of_srv2),))
    looked = Looked(bench)
    deadline = Deadline.after(bench.clock, 60)
    report = heal(bench.lab, bench.journal, equipment, bench.clock, deadline, look_at=looked, thorough=True)
    return report, looked


def test_what_a_server_switched_off_has_longer_to_come_back_than_its_tools_take(bench: Bench) -> None:
    class Slot(SimPart):
        """A slot whose drive takes a minute to spin up."""

        def mend(self, key: str, deadline: Deadline) -> None:
            bench.clock.advance(60)
            assert not deadline.is_over()
            super().mend(key, deadline)

    slot = Slot("slot_power_off", name="srv1/p1")
    slot.broken["#off"] = {"kind": "slot_power_off"}
    breakable = {"slot:srv1/p1": slot}
    equipment = replace(bench.rack.equipment, breakable=breakable, server_registers=(SimRegister(breakable),))
    looked = Looked(bench)
    deadline = Deadline.after(bench.clock, 300)
    report = heal(bench.lab, bench.journal, equipment, bench.clock, deadline, look_at=looked)
    assert (report.problems, report.mended) == ((), ("slot_power_off of slot:srv1/p1",))
    assert set(looked.asked) == {"srv1", "srv2", "d01", "d02", "d03", "d04"}


def test_a_server_that_is_waited_for_takes_no_time_from_those_that_answer(bench: Bench) -> None:
    class Silent(SimRegister):
        """The register of a server that is off, which is waited for as long as may be."""

        def standing(self, deadline: Deadline) -> dict[str, dict[str, Mapping[str, Any]]]:
            bench.clock.advance(deadline.remaining_s())
            raise NotConnected("Connection refused")

    report, looked = healed_with(bench, Silent)
    (silent,) = report.problems
    assert silent.startswith("server srv2 does not answer: Connection refused; start it anew")
    assert set(looked.asked) == {"srv1", "d01", "d02"}, "what was waited for is not asked again, nor the drives it has"


@pytest.mark.parametrize(("act", "waits_s"), [(TurnOff(), 45), (BreakPart("k", {"kind": "restart"}), 45), (None, 10)])
def test_what_was_given_power_or_a_new_start_lately_has_time_to_boot(
    bench: Bench, act: Act | None, waits_s: float
) -> None:
    """The run that did it was killed when it had taken down that it was undone."""
    given: list[float] = []

    class Booting(SimRegister):
        """The register of a server that answers once it has booted."""

        def standing(self, deadline: Deadline) -> dict[str, dict[str, Mapping[str, Any]]]:
            given.append(deadline.remaining_s())
            return {}

    lab = bench.lab.name
    recent = [] if act is None else [bench.journal.intend(lab, "run-1", "server:srv2", what=act, inverse=[])]
    bench.journal.undone(recent)
    equipment = replace(bench.rack.equipment, server_registers=(Booting({}),))
    heal(bench.lab, bench.journal, equipment, bench.clock, Deadline.after(bench.clock, 60), recent=recent)
    assert given == [waits_s]


def test_a_server_whose_drive_hangs_is_not_called_silent(bench: Bench) -> None:
    class Hangs(SimRegister):
        """The register of a server that answers, one of whose drives does not."""

        def standing(self, deadline: Deadline) -> dict[str, dict[str, Mapping[str, Any]]]:
            raise DeadlineExceeded("smartctl did not end")

    report, looked = healed_with(bench, Hangs)
    assert report.problems == ("the faults that stand cannot be read: smartctl did not end",)
    assert set(looked.asked) >= {"srv2", "d03", "d04"}
