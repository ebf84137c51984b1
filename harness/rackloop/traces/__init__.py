"""Block traces: read from any format, looked at, made and written."""

from rackloop.traces._columns import Op, columns

__all__ = ["Op", "columns"]
