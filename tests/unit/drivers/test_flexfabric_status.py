"""Registers, error queue and control lock of the switch."""

from __future__ import annotations

import pytest

from rackloop_drivers.fabric.flexfabric.dialect import scpi_errors as refusals
from rackloop_drivers.fabric.flexfabric.dialect.scpi_errors import ScpiError
from rackloop_drivers.fabric.flexfabric.peer import status
from rackloop_drivers.fabric.flexfabric.peer.control_lock import TRANSITIONS, ControlLock, LockEvent, LockState
from rackloop_drivers.fabric.flexfabric.peer.status import Status


@pytest.mark.parametrize(
    ("number", "event"),
    [
        (refusals.UNDEFINED_HEADER, status.COMMAND_ERROR_EVENT),
        (refusals.COMMAND_PROTECTED, status.EXECUTION_ERROR),
        (refusals.SETTINGS_CONFLICT, status.EXECUTION_ERROR),
        (refusals.QUEUE_OVERFLOW, status.DEVICE_ERROR),
        (refusals.BUFFER_OVERRUN, status.DEVICE_ERROR),
    ],
)
def test_an_error_sets_the_event_of_its_class_until_it_is_read(number: int, event: int) -> None:
    box = Status()
    box.report(ScpiError(number))
    assert box.take_events() == event
    assert box.take_events() == 0


def test_errors_come_out_in_order_and_then_none() -> None:
    box = Status()
    box.report(ScpiError(refusals.OUT_OF_RANGE, "port 161"))
    box.report(ScpiError(refusals.COMMAND_ERROR))
    assert box.error_count() == 2
    assert (box.take_error().number, box.take_error().number, box.take_error().number) == (-222, -100, 0)
    assert box.take_error().text == "No error"


def test_a_full_queue_ends_in_an_overflow() -> None:
    box = Status()
    for _ in range(status.QUEUE_DEPTH + 5):
        box.report(ScpiError(refusals.COMMAND_ERROR))
    assert box.error_count() == 32
    numbers = [box.take_error().number for _ in range(33)]
    assert numbers == [-100] * 31 + [-350, 0]


def test_a_detail_cannot_break_the_answer() -> None:
    entry = ScpiError(refusals.COMMAND_ERROR, 'a"b\n\x00' + "x" * 500).entry()
    assert entry.text.startswith("Command error;a?b??x")
    assert len(entry.text) < 120


def test_the_status_byte_sums_up() -> None:
    box = Status()
    assert box.byte(message_available=False) == 0
    assert box.byte(message_available=True) == status.MESSAGE_AVAILABLE
    box.report(ScpiError(refusals.COMMAND_ERROR))
    assert box.byte(message_available=False) == status.ERRORS_WAITING
    box.event_enable = status.COMMAND_ERROR_EVENT
    assert box.byte(message_available=False) == status.ERRORS_WAITING | status.EVENT_SUMMARY
    box.service_enable = 0xFF
    assert box.service_enable == 0xFF & ~status.MASTER_SUMMARY
    assert box.byte(message_available=False) & status.MASTER_SUMMARY
    box.clear()
    assert box.byte(message_available=False) == 0
    assert box.event_enable == status.COMMAND_ERROR_EVENT


def test_completion_is_an_event() -> None:
    box = Status(events=status.POWER_ON)
    box.note_completion()
    assert box.take_events() == status.POWER_ON | status.OPERATION_COMPLETE


def test_every_state_of_the_lock_knows_power_loss() -> None:
    assert set(TRANSITIONS) == set(LockState)
    assert all(following[LockEvent.POWER_LOSS] is LockState.FREE for following in TRANSITIONS.values())


def test_the_lock_follows_its_table() -> None:
    lock = ControlLock()
    assert lock.holder == 0
    assert lock.permits(None)
    lock.request(5)
    assert (lock.holder, lock.permits(5), lock.permits(None), lock.permits(4)) == (5, True, False, False)
    with pytest.raises(ScpiError):
        lock.request(4)
    lock.request(5)
    lock.request(7)
    assert lock.holder == 7
    for other in (5, 8):
        with pytest.raises(ScpiError):
            lock.release(other)
    lock.release(7)
    lock.release(7)
    assert (lock.holder, lock.highest, lock.permits(None)) == (0, 7, True)
    with pytest.raises(ScpiError):
        lock.request(6)
    lock.request(7)
    lock.lose_power()
    assert (lock.holder, lock.highest) == (0, 7)
