"""The record of a run: its events, the stream that they are written to, and the acts among them."""

from typing import TYPE_CHECKING

from rackloop.lazy_exports import lazy_getattr

if TYPE_CHECKING:
    from rackloop.record._event_log import ActLog, EventLog, EventSink, Stamped, read_events, unwritable
    from rackloop.record._event_relay import EventRelay, RelayAddress, RelayedEvents
    from rackloop.record._events import (
        ActAnnounced,
        ActDone,
        Attached,
        DriveSeen,
        Event,
        EvidenceGathered,
        Exchange,
        FaultPhase,
        GearOut,
        HealthCompared,
        IoSeries,
        Measured,
        RetestDone,
        RoundsMeasured,
        RunFinished,
        RunStarted,
        TaskRan,
        TestFinished,
        TestStarted,
    )
    from rackloop.record._health_change import HealthChange, Judgement
    from rackloop.record._remap_seen import RemapSeen, Stage

__all__ = [
    "ActAnnounced",
    "ActDone",
    "ActLog",
    "Attached",
    "DriveSeen",
    "Event",
    "EventLog",
    "EventRelay",
    "EventSink",
    "EvidenceGathered",
    "Exchange",
    "FaultPhase",
    "GearOut",
    "HealthChange",
    "HealthCompared",
    "IoSeries",
    "Judgement",
    "Measured",
    "RelayAddress",
    "RelayedEvents",
    "RemapSeen",
    "RetestDone",
    "RoundsMeasured",
    "RunFinished",
    "RunStarted",
    "Stage",
    "Stamped",
    "TaskRan",
    "TestFinished",
    "TestStarted",
    "read_events",
    "unwritable",
]

__getattr__ = lazy_getattr(__name__)
