"""Measurements, the limits they are judged by, verdicts, and the load of the measuring machine."""

from typing import TYPE_CHECKING

from rackloop.lazy_exports import lazy_getattr

if TYPE_CHECKING:
    from rackloop.measurement._distribution import Distribution as Distribution
    from rackloop.measurement._distribution import Interval as Interval
    from rackloop.measurement._machine_load import ANSWERS_S as ANSWERS_S
    from rackloop.measurement._machine_load import STRETCHES_S as STRETCHES_S
    from rackloop.measurement._machine_load import MachineLoad as MachineLoad
    from rackloop.measurement._measurement import Finding as Finding
    from rackloop.measurement._measurement import Limit as Limit
    from rackloop.measurement._measurement import Measurement as Measurement
    from rackloop.measurement._measurement import Statistic as Statistic
    from rackloop.measurement._measurement import judge as judge
    from rackloop.measurement._steady_state import PTS as PTS
    from rackloop.measurement._steady_state import Criteria as Criteria
    from rackloop.measurement._steady_state import SteadySpan as SteadySpan
    from rackloop.measurement._steady_state import Window as Window
    from rackloop.measurement._steady_state import attained as attained
    from rackloop.measurement._steady_state import steady_spans as steady_spans
    from rackloop.measurement._steady_state import why_not_steady as why_not_steady
    from rackloop.measurement._verdict import Cause as Cause
    from rackloop.measurement._verdict import Verdict as Verdict
    from rackloop.measurement._verdict import exit_code as exit_code
    from rackloop.measurement._verdict import worst as worst

__getattr__ = lazy_getattr(__name__)
