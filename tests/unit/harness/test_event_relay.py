"""Events of other processes in one stream."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from multiprocessing.connection import Client
from pathlib import Path

import pytest

from rackloop.clock import RealClock
from rackloop.errors import LabError
from rackloop.record import Attached, EventLog, EventRelay, RelayAddress, RelayedEvents, read_events
from tests.unit.harness.test_events import fill_the_disk

EVENTS_EACH = 200


def attached(name: str) -> Attached:
    return Attached("a::b", name, "x", "text/plain")


@pytest.fixture
def log(tmp_path: Path) -> Iterator[EventLog]:
    with closing(EventLog(tmp_path / "events.jsonl", RealClock())) as log:
        yield log


@pytest.fixture
def relay(log: EventLog) -> Iterator[EventRelay]:
    with closing(EventRelay(log)) as relay:
        yield relay


SENDER = """
import sys
from rackloop.record import RelayAddress, RelayedEvents
from rackloop.record import Attached
sender, times, socket, key = sys.argv[1:]
events = RelayedEvents(RelayAddress(socket, key))
for number in range(int(times)):
    events.write(Attached("a::b", f"{sender} {number}", "x", "text/plain"), durable=number % 50 == 0)
events.close()
"""


def test_two_processes_write_one_stream(log: EventLog, relay: EventRelay) -> None:
    address = (relay.address.socket, relay.address.key)
    senders = [subprocess.Popen([sys.executable, "-c", SENDER, name, str(EVENTS_EACH), *address]) for name in "ab"]
    assert [sender.wait(timeout=60) for sender in senders] == [0, 0]
    stream = list(read_events(log.path))
    assert [stamped.seq for stamped in stream] == list(range(1, 2 * EVENTS_EACH + 1))
    names = [stamped.event.name for stamped in stream if isinstance(stamped.event, Attached)]
    for sender in "ab":
        assert [name for name in names if name[0] == sender] == [f"{sender} {n}" for n in range(EVENTS_EACH)]


def test_an_event_stands_when_write_returns(log: EventLog, relay: EventRelay) -> None:
    with closing(RelayedEvents(relay.address)) as events:
        events.write(attached("now"))
        assert '"now"' in log.path.read_text()


def test_a_log_that_refuses_is_said_to_the_sender(log: EventLog, relay: EventRelay) -> None:
    with closing(RelayedEvents(relay.address)) as events:
        log.close()
        with pytest.raises(LabError, match="has ended"):
            events.write(attached("late"))


def test_a_full_disk_is_said_to_the_sender(log: EventLog, relay: EventRelay) -> None:
    fill_the_disk(log.path)
    with closing(RelayedEvents(relay.address)) as events:
        events.write(attached("lost"))
        assert events.problem is not None
        assert events.problem == log.problem
        with pytest.raises(LabError, match="No space left on device"):
            events.write(attached("announced"), durable=True)


def test_a_closed_relay_takes_nothing(log: EventLog, relay: EventRelay) -> None:
    with closing(RelayedEvents(relay.address)) as events:
        events.write(attached("in time"))
        relay.close()
        with pytest.raises(LabError, match="has ended"):
            events.write(attached("late"))
    with pytest.raises(LabError, match="does not answer"):
        RelayedEvents(relay.address)
    assert len(list(read_events(log.path))) == 1


def test_a_stranger_is_refused_and_harms_nobody(log: EventLog, relay: EventRelay) -> None:
    with pytest.raises(LabError, match="does not answer"):
        RelayedEvents(RelayAddress(relay.address.socket, "00" * 16))
    Client(relay.address.socket, family="AF_UNIX").close()
    with closing(RelayedEvents(relay.address)) as events:
        events.write(attached("mine"))
    assert len(list(read_events(log.path))) == 1
