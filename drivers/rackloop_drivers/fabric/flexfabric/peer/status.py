"""The status a connection keeps: IEEE 488.2-1992 registers (chapter 11) and the SCPI error queue."""

from __future__ import annotations

from collections import deque

from rackloop_drivers.fabric.flexfabric.dialect.scpi_errors import COMMAND_ERROR, QUEUE_OVERFLOW, QueuedError, ScpiError

QUEUE_DEPTH = 32

OPERATION_COMPLETE = 0x01
QUERY_ERROR = 0x04
DEVICE_ERROR = 0x08
EXECUTION_ERROR = 0x10
COMMAND_ERROR_EVENT = 0x20
POWER_ON = 0x80

ERRORS_WAITING = 0x04
MESSAGE_AVAILABLE = 0x10
EVENT_SUMMARY = 0x20
MASTER_SUMMARY = 0x40

_EVENT_OF_HUNDREDS = {1: COMMAND_ERROR_EVENT, 2: EXECUTION_ERROR, 3: DEVICE_ERROR, 4: QUERY_ERROR}
_NO_ERROR = QueuedError(0, "No error")


class Status:
    """Event status register and its mask, service request mask, and an error queue of 32 entries."""

    def __init__(self, *, events: int = 0) -> None:
        self._events = events
        self._errors: deque[QueuedError] = deque()
        self.event_enable = 0
        self._service_enable = 0

    @property
    def service_enable(self) -> int:
        """The service request mask; bit 6 cannot be set (IEEE 488.2 11.3.2)."""
        return self._service_enable

    @service_enable.setter
    def service_enable(self, mask: int) -> None:
        self._service_enable = mask & ~MASTER_SUMMARY

    def report(self, refusal: ScpiError) -> None:
        """Queue an error and set its event; a queue that is full ends in -350 (SCPI 21.8.1)."""
        self._events |= _EVENT_OF_HUNDREDS[-refusal.number // -COMMAND_ERROR]
        if len(self._errors) < QUEUE_DEPTH:
            self._errors.append(refusal.entry())
        else:
            self._errors[-1] = ScpiError(QUEUE_OVERFLOW).entry()

    def note_completion(self) -> None:
        """Set the operation-complete event."""
        self._events |= OPERATION_COMPLETE

    def take_events(self) -> int:
        """Read the event status register, which clears it."""
        events, self._events = self._events, 0
        return events

    def take_error(self) -> QueuedError:
        """The oldest error, or number 0 when there is none."""
        return self._errors.popleft() if self._errors else _NO_ERROR

    def error_count(self) -> int:
        """The number of errors that wait."""
        return len(self._errors)

    def clear(self) -> None:
        """``*CLS``: events and errors go, the masks stay."""
        self._events = 0
        self._errors.clear()

    def byte(self, *, message_available: bool) -> int:
        """The status byte as ``*STB?`` answers it; reading changes nothing."""
        summary = ERRORS_WAITING if self._errors else 0
        summary |= MESSAGE_AVAILABLE if message_available else 0
        summary |= EVENT_SUMMARY if self._events & self.event_enable else 0
        return summary | (MASTER_SUMMARY if summary & self._service_enable else 0)
