"""Block traces: read from any format, looked at, made and written."""

from typing import TYPE_CHECKING

from rackloop.door import opening

if TYPE_CHECKING:
    from rackloop.traces._columns import Op, columns
    from rackloop.traces._format import Clock, Format, Origin
    from rackloop.traces._lines import Malformed, MalformedLine
    from rackloop.traces._recognise import FORMATS
    from rackloop.traces._trace import Trace, open_trace

__all__ = ["FORMATS", "Clock", "Format", "Malformed", "MalformedLine", "Op", "Origin", "Trace", "columns", "open_trace"]

__getattr__ = opening(
    __name__,
    {
        "FORMATS": "_recognise",
        "Clock": "_format",
        "Format": "_format",
        "Malformed": "_lines",
        "MalformedLine": "_lines",
        "Op": "_columns",
        "Origin": "_format",
        "Trace": "_trace",
        "columns": "_columns",
        "open_trace": "_trace",
    },
)
