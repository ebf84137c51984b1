"""Block traces: reading, statistics, synthesis and writing in all formats."""

from typing import TYPE_CHECKING

from rackloop.lazy_exports import lazy_getattr

if TYPE_CHECKING:
    from rackloop_traces._columns import Op as Op
    from rackloop_traces._columns import columns as columns
    from rackloop_traces._format import Clock as Clock
    from rackloop_traces._format import Format as Format
    from rackloop_traces._format import Origin as Origin
    from rackloop_traces._lines import Malformed as Malformed
    from rackloop_traces._lines import MalformedLine as MalformedLine
    from rackloop_traces._profile import TraceProfile as TraceProfile
    from rackloop_traces._recognise import FORMATS as FORMATS
    from rackloop_traces._shipped import find_trace as find_trace
    from rackloop_traces._statistics import HeatMap as HeatMap
    from rackloop_traces._statistics import TraceMeter as TraceMeter
    from rackloop_traces._statistics_result import Gaps as Gaps
    from rackloop_traces._statistics_result import Statistics as Statistics
    from rackloop_traces._statistics_result import read_statistics as read_statistics
    from rackloop_traces._synthetic import synthesize as synthesize
    from rackloop_traces._trace import MAX_MALFORMED as MAX_MALFORMED
    from rackloop_traces._trace import Trace as Trace
    from rackloop_traces._trace import open_trace as open_trace
    from rackloop_traces._write import WrittenReport as WrittenReport
    from rackloop_traces._write import format_for as format_for
    from rackloop_traces._write import write_trace as write_trace

__getattr__ = lazy_getattr(__name__)
