"""setpci of a mock server: one register, one bit."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from rackloop_labs.mock_hosts._view import HbaPort, HostView
from rackloop_labs.mock_hosts.tools.setpci import setpci

PORTS = (
    HbaPort("p0", 0, 1, "0" * 16, is_linked=True, phy_resets=0),
    HbaPort("p1", 1, 2, "0" * 16, is_linked=False, phy_resets=1, is_enabled=False),
)
VIEW = HostView("srv1", "boot", 1.0, PORTS, ())


@dataclass
class NotedActs:
    """What would be done to links."""

    done: list[tuple[str, str]] = field(default_factory=list)

    def disable_link(self, port: HbaPort) -> None:
        self.done.append(("disable", port.name))

    def enable_link(self, port: HbaPort) -> None:
        self.done.append(("enable", port.name))


def said(*argv: str) -> tuple[str, str, int, list[tuple[str, str]]]:
    acts = NotedActs()
    answer = setpci(argv, VIEW, acts)  # type: ignore[arg-type]  # it does nothing but this
    return answer.stdout, answer.stderr, answer.status, acts.done


@pytest.mark.parametrize(("slot", "value"), [("0000:00:10.0", "0040"), ("00:11.0", "0050")])
def test_the_register_is_read(slot: str, value: str) -> None:
    assert said("-s", slot, "CAP_EXP+10.w") == (f"{value}\n", "", 0, [])


def test_a_slot_has_hot_plug_and_no_power_controller() -> None:
    assert said("-s", "0000:00:11.0", "CAP_EXP+14.l") == ("00080060\n", "", 0, [])


@pytest.mark.parametrize(
    ("operand", "done"),
    [
        ("CAP_EXP+10.w=10:10", [("disable", "p0")]),
        ("CAP_EXP+10.w=0050", [("disable", "p0")]),
        ("cap_exp+0x10.W=00:10", [("enable", "p0")]),
        ("CAP_EXP+10.w=10:01", []),
    ],
)
def test_a_bit_is_written_where_the_mask_has_it(operand: str, done: list[tuple[str, str]]) -> None:
    assert said("-s", "0000:00:10.0", operand) == ("", "", 0, done)


@pytest.mark.parametrize(
    ("argv", "named"),
    [
        (("-s", "0000:00:1f.0", "CAP_EXP+10.w"), "No devices selected"),
        (("-s", "0000:00:10.0", "CAP_EXP+12.w"), "Unknown register"),
        (("-s", "0000:00:10.0"), "setpci [<options>]"),
        (("CAP_EXP+10.w",), "setpci [<options>]"),
        (("-z",), "invalid option"),
    ],
)
def test_what_it_does_not_know_is_refused(argv: tuple[str, ...], named: str) -> None:
    out, error, status, done = said(*argv)
    assert (out, status, done) == ("", 1, [])
    assert named in error
