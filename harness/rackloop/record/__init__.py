"""The record of a run: its events, the stream that they are written to, and the acts among them."""

from typing import TYPE_CHECKING

from rackloop.lazy_exports import lazy_getattr

if TYPE_CHECKING:
    from rackloop.record._event_log import ActLog as ActLog
    from rackloop.record._event_log import EventLog as EventLog
    from rackloop.record._event_log import EventSink as EventSink
    from rackloop.record._event_log import Stamped as Stamped
    from rackloop.record._event_log import read_events as read_events
    from rackloop.record._event_log import unwritable as unwritable
    from rackloop.record._events import ActAnnounced as ActAnnounced
    from rackloop.record._events import ActDone as ActDone
    from rackloop.record._events import Attached as Attached
    from rackloop.record._events import DriveSeen as DriveSeen
    from rackloop.record._events import EnvironmentSeen as EnvironmentSeen
    from rackloop.record._events import Event as Event
    from rackloop.record._events import EvidenceGathered as EvidenceGathered
    from rackloop.record._events import Exchange as Exchange
    from rackloop.record._events import FaultPhase as FaultPhase
    from rackloop.record._events import HealthCompared as HealthCompared
    from rackloop.record._events import IoSeries as IoSeries
    from rackloop.record._events import MeansChosen as MeansChosen
    from rackloop.record._events import Measured as Measured
    from rackloop.record._events import PartOut as PartOut
    from rackloop.record._events import RackHealed as RackHealed
    from rackloop.record._events import RetestDone as RetestDone
    from rackloop.record._events import RoundsMeasured as RoundsMeasured
    from rackloop.record._events import RunFinished as RunFinished
    from rackloop.record._events import RunStarted as RunStarted
    from rackloop.record._events import TaskRan as TaskRan
    from rackloop.record._events import TestFinished as TestFinished
    from rackloop.record._events import TestStarted as TestStarted
    from rackloop.record._health_change import HealthChange as HealthChange
    from rackloop.record._health_change import Judgement as Judgement
    from rackloop.record._remap_seen import RemapSeen as RemapSeen
    from rackloop.record._remap_seen import Stage as Stage

__getattr__ = lazy_getattr(__name__)
