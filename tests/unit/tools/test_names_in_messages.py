"""Messages name what was given, and what there is in the order of what is meant."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rackloop.errors import BadInput
from rackloop.lab import Part, load_lab
from rackloop.plan import load_plan, override
from rackloop_cli.power.verbs import _named
from rackloop_cli.trace import replay


def test_servers_and_outlets_come_before_a_racks_many_drives() -> None:
    lab = load_lab("mock")
    ports = [*map(Part.drive, lab.drives), Part.outlet("pdu1", 1), *map(Part.server, lab.servers)]
    with pytest.raises(BadInput) as caught:
        _named("zzz", [str(part) for part in ports])
    assert str(caught.value).endswith("; known: pdu1/1, srv1, srv2, srv3, srv4, and 32 more such as drive:d01")
    for text, meant in (("srvv1", "srv1"), ("d01", "drive:d01"), ("pdu1", "pdu1/1")):
        with pytest.raises(BadInput, match=f"did you mean '{meant}'"):
            _named(text, [str(part) for part in ports])


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("drive", "d99", "--drive d99: drive: lab mock has no drive 'd99'"),
        ("duration_s", -3.0, "--for -3: workload/trace_replay: expected a time"),
        ("from_s", -1.0, "--from -1: workload/trace_replay: expected a time"),
        ("speed", 0.0, "--speed 0: workload/trace_replay: expected a number"),
    ],
)
def test_a_replay_names_the_option_that_was_given(option: str, value: str | float, said: str) -> None:
    options = {"trace": "demo", "drive": None, "volume": None, "duration_s": None, option: value}
    with pytest.raises(BadInput) as caught:
        replay.run(options, "mock", out=None, seed=None, dry_run=True)
    assert said in str(caught.value)
    assert "--set" not in str(caught.value)


@given(st.floats(0, 31_536_000))
def test_a_replay_begins_to_the_digit_where_it_was_told_to(from_s: float) -> None:
    (entry,) = override(load_plan("replay"), [replay.setting_of("from_s", from_s)]).tests
    assert entry.parameters["from_s"] == from_s
