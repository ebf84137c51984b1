"""The events of a simulated rack that its servers notice."""

from __future__ import annotations

import inspect
import re

from rackloop_labs.mock_hosts._truth_events import EVENTS, RackTruth
from rackloop_labs.mock_hosts._watch import is_noticed


def test_servers_are_told_of_every_event_that_they_know() -> None:
    known = re.findall(r'"event": "(\w+)"', inspect.getsource(RackTruth.apply))
    assert set(known) == EVENTS


def test_what_no_server_notices_is_passed_over_unread() -> None:
    assert is_noticed(b'{"t_ns":7,"event":"phy_up","server":"srv1","port":"p0","switch_port":1}')
    assert not is_noticed(b'{"t_ns":7,"event":"phy_train","server":"srv1","port":"p0","switch_port":1}')
    assert not is_noticed(b'{"t_ns":7,"event":"announce","ports":[1]}')
    # A text in a record has its quotes escaped.
    assert not is_noticed(rb'{"t_ns":7,"event":"stuck","key":"\"event\":\"phy_up\""}')
