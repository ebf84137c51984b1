"""Block traces: reading, statistics, synthesis and writing in all formats."""

from typing import TYPE_CHECKING

from rackloop.lazy_exports import lazy_getattr

if TYPE_CHECKING:
    from rackloop_traces._columns import Op, columns
    from rackloop_traces._format import Clock, Format, Origin
    from rackloop_traces._lines import Malformed, MalformedLine
    from rackloop_traces._profile import TraceProfile
    from rackloop_traces._recognise import FORMATS
    from rackloop_traces._statistics import HeatMap, TraceMeter
    from rackloop_traces._statistics_result import Gaps, Statistics, read_statistics
    from rackloop_traces._synthetic import synthesize
    from rackloop_traces._trace import MAX_MALFORMED, Trace, open_trace
    from rackloop_traces._write import WrittenReport, format_for, write_trace

__all__ = [
    "FORMATS",
    "MAX_MALFORMED",
    "Clock",
    "Format",
    "Gaps",
    "HeatMap",
    "Malformed",
    "MalformedLine",
    "Op",
    "Origin",
    "Statistics",
    "Trace",
    "TraceMeter",
    "TraceProfile",
    "WrittenReport",
    "columns",
    "format_for",
    "open_trace",
    "read_statistics",
    "synthesize",
    "write_trace",
]

__getattr__ = lazy_getattr(__name__)
